"""Markdown parts of a report that cover several jobs."""

from __future__ import annotations

from prony.model.analysed_experiment import AnalysedExperiment
from prony.model.comparison import Comparison
from prony.report import cost_tables, history_tables, matrix_tables
from prony.report.markdown.comparison import match_lines
from prony.report.markdown.text import escape_markdown, grid


def analysis_lines(analysis: AnalysedExperiment) -> list[str]:
    """Return the sides of a duet, the history, and the numbers along two axes."""
    lines: list[str] = []
    if analysis.comparison is not None:
        lines += _sides(analysis.comparison)
    if analysis.histories:
        shown = history_tables.lines(analysis.histories, analysis.experiment.id)
        lines += ["## In its history", "", *grid(history_tables.HEADINGS, shown)]
        lines += grid(history_tables.CHANGES, history_tables.change_lines(analysis.histories))
    if analysis.matrix is not None:
        lines += [f"## {escape_markdown(matrix_tables.title(analysis.matrix))}", ""]
        lines += grid(matrix_tables.headings(analysis.matrix), matrix_tables.lines(analysis.matrix))
        lines += [escape_markdown(matrix_tables.LEGEND), ""]
    return lines


def cost_lines(analysis: AnalysedExperiment) -> list[str]:
    """Return what it costs; nothing where nobody knows."""
    rows = cost_tables.lines(analysis)
    if not rows:
        return []
    told = [f"- {escape_markdown(text)}" for text in cost_tables.remarks(analysis)]
    return ["## Cost and energy", "", *grid(matrix_tables.worth_headings(), rows), *told, ""]


def _sides(found: Comparison) -> list[str]:
    lines = ["## The two sides", "", escape_markdown(found.sentence), ""]
    for match in found.matches:
        lines += match_lines(match)
    return [*lines, *(f"- {escape_markdown(text)}" for text in (*found.unmatched, *found.notes)), ""]
