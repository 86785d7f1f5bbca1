"""Series and changes as columns of the terminal, for every command that shows some."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from prony.errors import InputError

if TYPE_CHECKING:
    from prony.model.history import Change, Series
    from prony.ports.use_cases import UseCases

SERIES = ("ID", "NAME", "WHAT", "MACHINE", "STATE", "RESULTS", "LAST")
CHANGES = ("ID", "KIND", "STATE", "NOTICED", "METRIC", "BY", "WHAT", "MACHINE")


def one_series(bench: UseCases, text: str) -> Series:
    """Return the one series that a person means."""
    found = bench.histories.find(text)
    if len(found) != 1:
        shown = ", ".join(one.id for one in found[:8])
        raise InputError(f"{text!r} has {len(found)} series: {shown}", hint="name one by its id", code="ambiguous")
    return found[0]


def show_progress(done: int, total: int) -> None:
    """Say how many results were read, where a person looks."""
    if sys.stderr.isatty() and (done == total or done % 20 == 0):
        sys.stderr.write(f"\r{done}/{total} results" + ("\n" if done == total else ""))


def series_cells(series: Series) -> tuple[str, ...]:
    from prony.report.number import plain

    state = series.state.value
    if state == "learning":
        state = f"learning {series.learned}/{series.wanted}"
    last = "-" if series.last_value is None else plain(series.last_value, series.unit, 4)
    return (series.id, series.name, series.title, series.machine, state, str(series.runs), last)


def change_cells(change: Change) -> tuple[str, ...]:
    noticed = f"{change.noticed_at:%Y-%m-%d %H:%M}"
    by = f"{change.effect:+.1%}"
    return (change.id, change.kind, change.state.value, noticed, change.metric, by, change.title, change.machine)
