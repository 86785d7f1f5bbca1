"""Format a matrix's table rows and sentences for every output format."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.estimate import Estimate
from prony.model.matrix import MatrixCell, MatrixReport, Worth
from prony.ports.metric_titles import metric_title
from prony.report import entry_fields, number
from prony.report.load_tables import FigureLine

_SIZES = (("million", 1e6),)
MARKS = {"best": "★", "as good": "≈", "": ""}
LEGEND = "★ is the best: its interval overlaps no other. ≈ is not distinguishable from the best."


def headings(report: MatrixReport) -> tuple[str, ...]:
    return (" \\ ".join(axis_titles(report)), *report.columns)


def axis_titles(report: MatrixReport) -> tuple[str, str]:
    """Return what stands in rows and in columns, as a reader says it."""
    return entry_fields.axis(report.terms.rows), entry_fields.axis(report.terms.columns)


def title(report: MatrixReport) -> str:
    return f"{metric_title(report.metric)} by {' and '.join(axis_titles(report))}"


def lines(report: MatrixReport) -> list[FigureLine]:
    """Return a line for each row: the number of each column with its interval, its mark and its verdict."""
    known = {(cell.row, cell.column): cell for cell in report.cells}
    return [FigureLine(row, tuple(_cell(known.get((row, column))) for column in report.columns)) for row in report.rows]


def worth_headings() -> tuple[str, ...]:
    return (
        "configuration", "of", "price an hour", "for a million", "for one unit of money", "power", "per joule",
        "energy of one",
    )  # fmt: skip


def worth_lines(report: MatrixReport) -> list[FigureLine]:
    """Return what each configuration costs; nothing where there is neither a price nor an energy counter."""
    return [line for cell in report.cells for worth in cell.worths if (line := worth_line(_name_cell(cell), worth))]


def worth_line(name: str, worth: Worth) -> FigureLine | None:
    """Return what one configuration costs; None where nobody knows."""
    if worth.price is None and worth.power_w is None:
        return None
    price = number.DASH if worth.price is None else f"{worth.price.per_hour:g} {worth.price.currency}"
    texts = [money(worth.per_million), _many(worth.per_money), money(worth.power_w), _many(worth.per_joule),
             money(worth.joules_each)]  # fmt: skip
    return FigureLine(name, (worth.things, price, *texts))


def sources(report: MatrixReport) -> list[str]:
    return sources_of([worth for cell in report.cells for worth in cell.worths])


def sources_of(worths: Sequence[Worth]) -> list[str]:
    """Return who named the prices."""
    prices = [worth.price for worth in worths if worth.price is not None]
    return list(dict.fromkeys(f"The price of {one.per_hour:g} {one.currency} an hour is from {one.source}."
                              for one in prices))  # fmt: skip


def pareto_sentence(report: MatrixReport) -> str:
    """Return who is on the front, in words; empty where there is none."""
    on = [f"{point.row} × {point.column}" for point in report.pareto if point.is_front]
    return (
        f"On the Pareto front of {metric_title(report.metric)} against {against(report)}: {', '.join(on)}."
        if on
        else ""
    )


def against(report: MatrixReport) -> str:
    unit = report.pareto[0].against.unit if report.pareto else ""
    return {"W": "power", "J": "energy"}.get(unit, "cost")


def _name_cell(cell: MatrixCell) -> str:
    return f"{cell.row} × {cell.column}"


def _cell(cell: MatrixCell | None) -> str:
    if cell is None:
        return ""
    if cell.estimate is None:
        return number.DASH
    symbol = "" if cell.grade is None else f" {entry_fields.SYMBOLS[cell.grade]}"
    return f"{number.format_number(cell.estimate)}{symbol} {MARKS[cell.mark]}".rstrip()


def _many(one: Estimate | None) -> str:
    """Return how many there are, in thousands or millions where that reads better; the head says of what."""
    if one is None:
        return number.DASH
    word, factor = next(((word, size) for word, size in _SIZES if abs(one.value) >= size), ("", 1.0))
    return number.format_number(one.model_copy(update={"unit": word}), number.Scale(word, 1 / factor))


def money(one: Estimate | None) -> str:
    return number.DASH if one is None else number.format_number(one)
