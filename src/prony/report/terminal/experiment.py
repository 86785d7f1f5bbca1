"""Print an experiment's table, notes and gates on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.estimate import Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.gate import GateOutcome, GateState
from prony.report import entry_fields, gate_tables
from prony.report.escaping import one_line
from prony.report.notes import Note, instrument, jobs_named, notes, sensitivity
from prony.report.table import Column, Row, Table, reading_tables, table
from prony.report.terminal.load import print_loads

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

# Three of Okabe and Ito's colours, which stay apart for every kind of colour blindness; symbol and word say it again.
_STYLES = {Grade.VALID: "bold #009e73", Grade.SUSPECT: "bold #e69f00", Grade.VOID: "bold #d55e00"}
_GATES = {GateState.PASSED: "bold #009e73", GateState.CANNOT_TELL: "bold #e69f00", GateState.FAILED: "bold #d55e00"}
_MOST_NAMED = 3


def print_experiment(data: ExperimentData, console: Console, *, is_wide: bool = False, is_kept: bool = True) -> None:
    """Print the table, its notes and one line on the instrument, for whatever width the console has.

    `is_wide` prints every column of the table, however wide that is; `is_kept`: the experiment can be shown again.
    """
    from rich.text import Text

    experiment = data.experiment
    console.print(Text.assemble((one_line(experiment.name), "bold"), (f"  {experiment.id}  {experiment.state}", "dim")))
    if experiment.confirms is not None:
        console.print(Text(f"runs that confirm change {one_line(experiment.confirms)}; not in the history", "dim"))
    console.print()
    shown = table(data)
    if shown.rows:
        _print_table(shown, console, data.experiment.id if is_kept else "", is_wide=is_wide)
    else:
        console.print("No job has a result yet.")
    console.print()
    _print_readings(data.entries, console)
    if data.gates:
        print_gates(data.gates, console)
    print_loads(data, console)
    console.print(_remarks(data, console))


def _print_readings(entries: Sequence[Entry], console: Console) -> None:
    """Print the tables of jobs whose numbers are too many for columns."""
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    for readings in reading_tables(entries):
        grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for place, heading in enumerate(readings.headings):
            is_number = place in readings.numeric
            grid.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number)
        for row in readings.rows:
            grid.add_row(*(Text(one_line(text)) for text in row))
        console.print(grid)
        console.print()


def print_gates(outcomes: Sequence[GateOutcome], console: Console) -> None:
    """Print each gate with its outcome, the worst first."""
    from rich.table import Table as Grid
    from rich.text import Text

    console.print(Text(gate_tables.summarise_gates(outcomes), style="bold"))
    grid = Grid.grid(padding=(0, 1))
    for one in gate_tables.worst_gates_first(outcomes):
        head = Text(f"{gate_tables.MARKS[one.state]} {one.state.word}", style=_GATES[one.state])
        grid.add_row(head, Text(one_line(f"{one.gate}  ({one.title})")), Text(one_line(one.text), style="dim"))
    console.print(grid)
    console.print()


def _print_table(shown: Table, console: Console, experiment_id: str, *, is_wide: bool) -> None:
    """Print the table and say which columns there was no room for."""
    from rich.text import Text

    if is_wide:
        grid, usual = _grid(shown, {one.key for one in shown.columns}, console), console.width
        console.width = max(usual, _width_of(grid, console))
        console.print(grid)
        console.width = usual
        return
    kept = _find_fitting(shown, console)
    console.print(_grid(shown, kept, console))
    left_out = [one.heading for one in shown.columns if one.key not in kept]
    if left_out:
        count = f"{len(left_out)} more column{'' if len(left_out) == 1 else 's'}"
        how = f"prony show {experiment_id} --wide" if experiment_id else "use a wider terminal"
        named = f"{count} ({', '.join(left_out)}): {how}"  # only where it stays one line
        console.print(Text(one_line(named if len(named) <= console.width else f"{count}: {how}"), style="dim"))


def _find_fitting(shown: Table, console: Console) -> set[str]:
    """Return as many columns as this width has room for, the most important first.

    Intervals are never dropped to make room: a number without its interval is not worth the space.
    """
    kept: set[str] = set()
    for column in sorted(shown.columns, key=lambda one: -one.importance):
        tried = _grid(shown, kept | {column.key}, console)
        if column.importance > 90 or _width_of(tried, console) <= console.width:
            kept.add(column.key)
    return kept


def _width_of(grid: Grid, console: Console) -> int:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=10_000), grid).maximum


def _grid(shown: Table, keys: set[str], console: Console) -> Grid:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    columns = [one for one in shown.columns if one.key in keys]
    for column in columns:
        grid.add_column(column.title, overflow="fold",
                        no_wrap=column.is_number or column.key == "verdict")  # fmt: skip
    dressed = [_style_column(column, shown.rows, console) for column in columns]
    for cells in zip(*dressed, strict=True):
        grid.add_row(*cells)
    return grid


def _style_column(column: Column, rows: Sequence[Row], console: Console) -> list[Text]:
    """Return one column's cells, numbers aligned at their decimal points and intervals at their brackets."""
    from rich.text import Text

    if column.key == "verdict":
        return [_verdict(row.entry, console) for row in rows]
    cells = [row.cells[column.key] for row in rows]
    texts = [one_line(cell.text) for cell in cells]
    if column.is_number:
        heads = [len(text.partition(".")[0]) for text in texts]
        tail = max(len(text) - head for text, head in zip(texts, heads, strict=True))
        texts = [_align(text, max(heads), tail) for text in texts]
    return [
        Text.assemble((text, _style(column, row)), (f" {cell.interval}" if cell.interval else "", "dim"))
        for text, cell, row in zip(texts, cells, rows, strict=True)
    ]


def _align(text: str, head: int, tail: int) -> str:
    whole, point, decimals = text.partition(".")
    return f"{whole:>{head}}{point + decimals:<{tail}}"


def _style(column: Column, row: Row) -> str:
    if row.entry.summary.verdict.grade is Grade.VOID and not column.keeps_when_void:
        return "dim"
    return "bold" if column.is_headline else ""


def _verdict(entry: Entry, console: Console) -> Text:
    from rich.text import Text

    grade, is_ascii = entry.summary.verdict.grade, "utf" not in console.encoding.lower()
    return Text(entry_fields.verdict_text(grade, entry.ended_early, is_ascii=is_ascii), style=_STYLES[grade])


def _symbol(grade: Grade, console: Console) -> str:
    symbols = entry_fields.SYMBOLS if "utf" in console.encoding.lower() else entry_fields.ASCII_SYMBOLS
    return symbols[grade]


def _remarks(data: ExperimentData, console: Console) -> Grid:
    """Return the notes and the line on the instrument, each hanging on its mark."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid.grid(padding=(0, 1))
    for note in notes(data):
        mark = "·" if note.grade is None else _symbol(note.grade, console)
        style = "dim" if note.grade is None else _STYLES[note.grade]
        grid.add_row(Text(mark, style=style), _note(note, len(data.entries)))
    if seen := sensitivity(data):
        grid.add_row("·", Text(f"Sensitivity: {seen}", style="dim"))
    if data.entries:  # nothing measured, nothing to doubt
        grid.add_row("·", Text(f"Instrument: {instrument(data.calibration)}", style="dim"))
    return grid


def _note(note: Note, job_count: int) -> Text:
    from rich.text import Text

    jobs = one_line(jobs_named(note, job_count, _MOST_NAMED))
    return Text.assemble((f"{jobs}: " if jobs else "", "bold"), one_line(note.text))
