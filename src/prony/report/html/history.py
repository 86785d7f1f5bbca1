"""Render histories as part of an HTML page: their states, plots and changes."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.history import History
from prony.report import history_tables
from prony.report.html.tags import Html, add_caption, fold, grid, tag
from prony.report.plots.history import history_svg

# Each costs a good tenth of a second; the gravest are drawn.
_MOST_DRAWN = 6
_FEWEST_DRAWN = 4  # the table tells as much of fewer results
_ABOUT = (
    "Each dot is a result (grey: void), the ringed one belongs to this report; horizontal lines are the levels. "
    "A vertical line is the start of a change, dotted if only suspected."
)


def history_blocks(histories: Sequence[History], experiment_id: str) -> list[Html]:
    """Return the table of series, the pictures of the gravest, and the table of changes."""
    rows = [[line.name, *line.cells] for line in history_tables.lines(histories, experiment_id)]
    blocks = [grid(history_tables.HEADINGS, rows, numeric=(4, 5, 6))]
    long = [one for one in history_tables.gravest_first(histories) if len(one.points) >= _FEWEST_DRAWN]
    drawn = [(one, plot) for one in long[:_MOST_DRAWN] if (plot := history_svg(one, experiment_id)) is not None]
    for place, (one, plot) in enumerate(drawn):
        blocks.append(add_caption(f"{one.series.title} over time.", "" if place else _ABOUT, plot))
    left = len(long) - _MOST_DRAWN
    if left > 0:
        blocks.append(tag("p", f"{left} more series are not shown: see `prony history`.", class_="muted"))
    changes = [[line.name, *line.cells] for line in history_tables.change_lines(histories)]
    if changes:
        blocks.append(fold("Changes", grid(history_tables.CHANGES, changes, numeric=(4, 5)), is_open=True))
    return blocks
