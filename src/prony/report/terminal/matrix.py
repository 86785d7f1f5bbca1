"""Print a matrix on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prony.model.matrix import MatrixReport
from prony.ports.metric_titles import metric_title
from prony.report import matrix_tables
from prony.report.escaping import one_line
from prony.report.terminal.load import print_table

if TYPE_CHECKING:
    from rich.console import Console


def print_matrix(report: MatrixReport, console: Console) -> None:
    """Print the numbers, what they cost, and what must be known of them."""
    from rich.text import Text

    rows = [(line.name, *line.cells) for line in matrix_tables.lines(report)]
    print_table(console, metric_title(report.metric), matrix_tables.headings(report), rows)
    worth = [(line.name, *line.cells) for line in matrix_tables.worth_lines(report)]
    if worth:
        print_table(console, "Cost and energy", matrix_tables.worth_headings(), worth)
    told = [matrix_tables.LEGEND, *matrix_tables.sources(report), matrix_tables.pareto_sentence(report), *report.notes]
    for text in filter(None, told):
        console.print(Text(one_line(text), style="dim"))
