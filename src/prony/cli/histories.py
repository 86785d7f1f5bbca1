"""A command's options in; the histories of this home, or of a server, out, asked in the same words."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from prony.cli.remote import address
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.app.histories import Histories
    from prony.client import Client
    from prony.model.history import Acknowledgement, Baseline, Change, History, NewBaseline, Series

SERIES = ("ID", "NAME", "WHAT", "MACHINE", "STATE", "RESULTS", "LAST")
CHANGES = ("ID", "KIND", "STATE", "NOTICED", "METRIC", "BY", "WHAT", "MACHINE")


class Source(Protocol):
    def series(self, name: str | None) -> Sequence[Series]: ...
    def history(self, series_id: str, metric: str | None) -> History: ...
    def changes(self) -> Sequence[Change]: ...
    def ack(self, text: str, words: Acknowledgement) -> Change: ...
    def baseline(self, series_id: str) -> Baseline: ...
    def set_baseline(self, series_id: str, wanted: NewBaseline) -> Baseline: ...
    def clear_baseline(self, series_id: str) -> None: ...
    def rebuild(self) -> None: ...


@contextmanager
def histories(options: Namespace) -> Iterator[Source]:
    """Open the histories that the options mean."""
    if address(options):
        from prony.cli.remote import connect

        with connect(options) as client:
            yield _There(client)
        return
    from prony.app.api import Bench

    with Bench.open() as bench:
        yield _Here(bench.histories)


def one_series(source: Source, text: str) -> Series:
    """Return the one series that a person means."""
    found = source.series(text)
    if len(found) != 1:
        shown = ", ".join(one.id for one in found[:8])
        raise InputError(f"{text!r} has {len(found)} series: {shown}", hint="name one by its id", code="ambiguous")
    return found[0]


class _Here:
    def __init__(self, own: Histories) -> None:
        self._own = own

    def series(self, name: str | None) -> Sequence[Series]:
        return self._own.series(name)

    def history(self, series_id: str, metric: str | None) -> History:
        return self._own.history(series_id, metric)

    def changes(self) -> Sequence[Change]:
        return self._own.changes()

    def ack(self, text: str, words: Acknowledgement) -> Change:
        return self._own.ack(text, words)

    def baseline(self, series_id: str) -> Baseline:
        return self._own.baseline(series_id)

    def set_baseline(self, series_id: str, wanted: NewBaseline) -> Baseline:
        return self._own.set_baseline(series_id, wanted)

    def clear_baseline(self, series_id: str) -> None:
        self._own.clear_baseline(series_id)

    def rebuild(self) -> None:
        from prony.cli.output import print_note

        count = self._own.rebuild(_progress)
        print_note(f"{count} results are in their histories again")


class _There:
    def __init__(self, client: Client) -> None:
        self._client = client

    def series(self, name: str | None) -> Sequence[Series]:
        from functools import partial

        from prony.client.resolve_id import iterate_pages, series_named

        if name is None:
            return list(iterate_pages(self._client.series))
        found = list(iterate_pages(partial(self._client.series, name=name)))
        return found or [series_named(self._client, name)]

    def history(self, series_id: str, metric: str | None) -> History:
        return self._client.history(series_id, metric=metric)

    def changes(self) -> Sequence[Change]:
        from prony.client.resolve_id import iterate_pages

        return list(iterate_pages(self._client.changes))

    def ack(self, text: str, words: Acknowledgement) -> Change:
        from prony.client.resolve_id import change_named

        return self._client.ack(change_named(self._client, text), words)

    def baseline(self, series_id: str) -> Baseline:
        return self._client.baseline(series_id)

    def set_baseline(self, series_id: str, wanted: NewBaseline) -> Baseline:
        return self._client.set_baseline(series_id, wanted)

    def clear_baseline(self, series_id: str) -> None:
        self._client.clear_baseline(series_id)

    def rebuild(self) -> None:
        raise InputError("a server's histories are made again where its home is", hint="prony history --rebuild there")


def _progress(done: int, total: int) -> None:
    import sys

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
