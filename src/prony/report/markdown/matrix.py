"""Render a matrix as a Markdown document."""

from __future__ import annotations

from prony.model.matrix import MatrixReport
from prony.report import matrix_tables
from prony.report.markdown.text import escape_markdown, grid


def render(report: MatrixReport) -> str:
    lines = [f"# {escape_markdown(matrix_tables.title(report))}", ""]
    lines += grid(matrix_tables.headings(report), matrix_tables.lines(report))
    lines += [escape_markdown(matrix_tables.LEGEND), ""]
    worth = matrix_tables.worth_lines(report)
    if worth:
        lines += ["## Cost and energy", "", *grid(matrix_tables.worth_headings(), worth)]
    told = [*matrix_tables.sources(report), matrix_tables.pareto_sentence(report), *report.notes]
    lines += [f"- {escape_markdown(text)}" for text in told if text]
    return "\n".join(lines).rstrip() + "\n"
