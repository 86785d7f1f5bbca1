"""Print the tables of an experiment's loads on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.experiment_data import Entry, ExperimentData
from prony.model.sweep import SweepReport
from prony.report import entry_fields, load_tables, sweep_tables
from prony.report.escaping import one_line
from prony.report.load_tables import FigureLine

if TYPE_CHECKING:
    from rich.console import Console

# Beyond so many jobs their own tables would bury the one that compares them; the report holds them all.
_MOST_SHOWN = 3


def print_loads(data: ExperimentData, console: Console) -> None:
    """Print what loads have beyond the table of all jobs; nothing where there is none."""
    if data.sweep is not None:
        print_sweep(data.sweep, console)
        return
    mine = load_tables.load_entries(data)
    for entry in mine if len(mine) <= _MOST_SHOWN else ():
        _print_one(console, entry, is_named=len(mine) > 1)


def print_sweep(found: SweepReport, console: Console) -> None:
    """Print the levels of each curve, and what is claimed of them."""
    from rich.text import Text

    for curve in found.curves:
        headings, rows = sweep_tables.narrow(curve)
        print_table(console, curve.title or "Throughput against load", headings, rows)
        for name, claim in sweep_tables.claims(curve):
            console.print(Text.assemble((f"{name}: ", "bold"), one_line(claim.text)))
        for text in sweep_tables.limits_of_levels(curve):
            console.print(Text(one_line(text), style="dim"))
        console.print()


def _print_one(console: Console, entry: Entry, *, is_named: bool) -> None:
    name = entry_fields.label(entry) if is_named else ""
    latencies, figures = load_tables.latency_lines(entry), load_tables.figure_lines(entry)
    # Six intervals side by side fit no terminal: the values here, the intervals in the report.
    if latencies:
        print_table(console, name, ("latency, ms", *load_tables.PERCENTILES), [_short(line) for line in latencies])
    if figures:
        print_table(
            console, "" if latencies else name, ("figure", "value", "interval"), [_row(line) for line in figures]
        )
    members = load_tables.member_lines(entry)
    if members:
        print_table(console, "", load_tables.MEMBERS, [_row(line) for line in members])


def _row(line: FigureLine) -> tuple[str, ...]:
    return (line.name, *line.cells)


def _short(line: FigureLine) -> tuple[str, ...]:
    """Return the median with its interval, and the others as values."""
    first, *others = line.cells
    return (line.name, first, *(cell.partition(" [")[0] for cell in others))


def print_table(console: Console, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one table under its title; an empty title is none."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for place, heading in enumerate(headings):
        is_word = heading in ("verdict", "SLO", "limited by", "figure", "latency, ms", "agent")
        table.add_column(
            heading, justify="left" if is_word else "right", no_wrap=place > 0, min_width=min(len(heading), 9)
        )
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    if title:
        console.print(Text(one_line(title), style="bold"))
    console.print(table)
    console.print()
