"""Render a matrix as an HTML page: numbers, heat map, Pareto front, costs and notes."""

from __future__ import annotations

from prony.model.matrix import MatrixReport
from prony.report import matrix_tables
from prony.report.html.tags import Child, Html, add_caption, grid, html_page, section, tag
from prony.report.plots import matrix

_PARETO = (
    "Each point is a configuration, the bars are its intervals. It is behind the front if another one is no worse "
    "on both axes and, by its whole interval, better on one."
)


def render(report: MatrixReport) -> str:
    """Return a whole page that refers to nothing outside itself."""
    told = [*matrix_tables.sources(report), matrix_tables.pareto_sentence(report), *report.notes]
    worth = [[line.name, *line.cells] for line in matrix_tables.worth_lines(report)]
    costs = grid(matrix_tables.worth_headings(), worth, numeric=range(2, 7)) if worth else None
    drawn = pareto_block(report)
    remarks = tag("ul", *(tag("li", text) for text in told if text), class_="found") if any(told) else None
    sections = [
        section("numbers", "Numbers", *number_blocks(report)),
        section("cost", "Cost and energy", costs, drawn) if costs is not None or drawn is not None else None,
        section("notes", "What to know", remarks) if remarks is not None else None,
    ]
    return html_page(
        matrix_tables.title(report), "Prony matrix", f"experiments {', '.join(report.experiments)}", *sections
    )


def number_blocks(report: MatrixReport) -> list[Child]:
    """Return the numbers in rows and columns, and their heat map."""
    rows = [[line.name, *line.cells] for line in matrix_tables.lines(report)]
    heads, heat = matrix_tables.headings(report), matrix.heat_map(report)
    return [
        grid(heads, rows, numeric=range(1, len(heads))), tag("p", matrix_tables.LEGEND, class_="muted"),
        None if heat is None else add_caption("Heat map.", "Darker is worse; the scale is logarithmic.", heat),
    ]  # fmt: skip


def pareto_block(report: MatrixReport) -> Html | None:
    front = matrix.pareto(report)
    return None if front is None else add_caption("Pareto front.", _PARETO, front)
