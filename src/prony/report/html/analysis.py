"""HTML sections that cover several jobs: duet, history, costs and matrix."""

from __future__ import annotations

from prony.model.analysed_experiment import AnalysedExperiment
from prony.report import cost_tables, matrix_tables
from prony.report.html.comparison import comparison_blocks
from prony.report.html.history import history_blocks
from prony.report.html.matrix import number_blocks, pareto_block
from prony.report.html.tags import Html, grid, section, tag


def comparison_section(analysis: AnalysedExperiment) -> Html | None:
    """Tell how the sides of a duet stand: the ratios first, then every number."""
    found = analysis.comparison
    if found is None or not found.matches:
        return None
    drawing, pairs = comparison_blocks(found)
    notes = tag("ul", *(tag("li", text) for text in (*found.unmatched, *found.notes)))
    return section("sides", "The two sides", tag("p", found.sentence), drawing, *pairs, notes)


def history_section(analysis: AnalysedExperiment) -> Html | None:
    if not analysis.histories:
        return None
    return section("history", "In its history", *history_blocks(analysis.histories, analysis.experiment.id))


def cost_section(analysis: AnalysedExperiment) -> Html | None:
    """Tell what it costs and how many watts it takes, where somebody knows."""
    rows = [[line.name, *line.cells] for line in cost_tables.lines(analysis)]
    if not rows:
        return None
    front = pareto_block(analysis.matrix) if analysis.matrix is not None else None
    told = [tag("p", text, class_="muted") for text in cost_tables.remarks(analysis)]
    heads = matrix_tables.worth_headings()
    return section("cost", "Cost and energy", grid(heads, rows, numeric=range(2, len(heads))), *told, front)


def axes_section(analysis: AnalysedExperiment) -> Html | None:
    """Show the numbers in rows and columns where jobs differ in two things."""
    found = analysis.matrix
    if found is None:
        return None
    return section("axes", matrix_tables.title(found), *number_blocks(found))
