"""A Dossier in, the tables of its loads on the terminal out: throughput against load, latencies, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.dossier import Dossier, Entry
from prony.report import load_tables, pick
from prony.report.load_tables import Line
from prony.report.safe import one_line

if TYPE_CHECKING:
    from rich.console import Console

# Beyond so many jobs their own tables would bury the one that compares them; the report holds them all.
_MOST_SHOWN = 3


def print_loads(dossier: Dossier, console: Console) -> None:
    """Print what loads have beyond the table of all jobs; nothing where there is none."""
    found = load_tables.sweep(dossier)
    if found is not None:
        alone = len(found.curves) == 1
        headings = (*([] if alone else ["job"]), *load_tables.sweep_headings(found))
        rows = [(() if alone else (line.name,)) + line.cells for line in load_tables.sweep_lines(found)]
        _print(console, "Throughput against load", headings, rows)
        return
    mine = load_tables.loads(dossier)
    for entry in mine if len(mine) <= _MOST_SHOWN else ():
        _print_one(console, entry, is_named=len(mine) > 1)


def _print_one(console: Console, entry: Entry, *, is_named: bool) -> None:
    name = pick.label(entry) if is_named else ""
    latencies, figures = load_tables.latency_lines(entry), load_tables.figure_lines(entry)
    # Six intervals side by side fit no terminal: the values here, the intervals in the report.
    if latencies:
        _print(console, name, ("latency, ms", *load_tables.PERCENTILES), [_short(line) for line in latencies])
    if figures:
        _print(console, "" if latencies else name, ("figure", "value", "interval"), [_row(line) for line in figures])
    members = load_tables.member_lines(entry)
    if members:
        _print(console, "", load_tables.MEMBERS, [_row(line) for line in members])


def _row(line: Line) -> tuple[str, ...]:
    return (line.name, *line.cells)


def _short(line: Line) -> tuple[str, ...]:
    """Return the median with its interval, and the others as values."""
    first, *others = line.cells
    return (line.name, first, *(cell.partition(" [")[0] for cell in others))


def _print(console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        is_word = heading in ("job", "verdict", "figure", "latency, ms", "agent")
        table.add_column(heading, justify="left" if is_word else "right", no_wrap=place > 0)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    if title:
        console.print(Text(one_line(title), style="bold"))
    console.print(table)
    console.print()
