"""Plot a matrix as a heat map and a Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.model.matrix import MatrixReport, ParetoPoint
from prony.ports.metric_titles import metric_title
from prony.report import matrix_tables, number
from prony.report.html.tags import Html
from prony.report.plots import figure as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_IN = 0.42
_FRONT, _BEHIND = draw.COLOURS[2], draw.MUTED


@draw.with_style
def heat_map(report: MatrixReport) -> Html | None:
    """Draw a square for each cell, the paler the better, with the number in it; nothing of a single cell."""
    known = {(cell.row, cell.column): cell for cell in report.cells if cell.estimate is not None}
    values = [cell.estimate.value for cell in known.values() if cell.estimate is not None]
    if len(known) < 2 or not all(value > 0 for value in values):
        return None
    scale = number.common_scale([cell.estimate for cell in known.values() if cell.estimate is not None])
    rows, columns = report.rows, report.columns
    left = max(len(draw.shorten(row, 30)) for row in rows)
    figure, (axes,) = draw.canvas(draw.WIDE, 0.8 + _ROW_IN * len(rows), left)
    spread = math.log(max(values) / min(values)) or 1.0
    for (row, column), cell in known.items():
        assert cell.estimate is not None
        share = math.log(cell.estimate.value / min(values)) / spread
        worse = share if report.better == "lower" else 1 - share
        _square(axes, columns.index(column), rows.index(row), worse)
        mark = matrix_tables.MARKS[cell.mark]
        label = f"{number.written(cell.estimate, scale).value} {mark}".strip()
        axes.text(columns.index(column), rows.index(row), label, ha="center", va="center", color=draw.INK)
    draw.figure_rows(axes, [draw.shorten(row, 30) for row in rows])
    axes.set_xticks(range(len(columns)), labels=[draw.shorten(column, 18) for column in columns])
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(visible=False)
    axes.set_xlabel(matrix_tables.axis_titles(report)[1])
    axes.set_title(f"{metric_title(report.metric)}, {scale.symbol}", loc="left", pad=3)
    return draw.svg(figure, "matrix-heat", matrix_tables.title(report))


def _square(axes: Axes, x: int, y: int, worse: float) -> None:
    from matplotlib.patches import Rectangle

    alpha = 0.12 + 0.5 * worse
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=draw.COLOURS[1], alpha=alpha, linewidth=0))


@draw.with_style
def pareto(report: MatrixReport) -> Html | None:
    """Draw value against cost or power; those on the front are joined."""
    points = report.pareto
    if len(points) < 2:
        return None
    figure, (axes,) = draw.canvas(draw.WIDE, 3.4, 8)
    for on_front, colour in ((False, _BEHIND), (True, _FRONT)):
        mine = [point for point in points if point.is_front is on_front]
        for point in mine:
            x, y = number.interval_of(point.against), number.interval_of(point.value)
            line: dict[str, Any] = {"color": colour, "linewidth": 2.0, "alpha": 0.45, "solid_capstyle": "round"}
            if x is not None:
                axes.plot(x, [point.value.value] * 2, **line)
            if y is not None:
                axes.plot([point.against.value] * 2, y, **line)
        label = "on the front" if on_front else "behind it"
        if mine:
            axes.plot([one.against.value for one in mine], [one.value.value for one in mine], "o", markersize=5,
                      color=colour, label=label)  # fmt: skip
    ordered = sorted((one for one in points if one.is_front), key=lambda one: one.against.value)
    axes.plot([one.against.value for one in ordered], [one.value.value for one in ordered], "-", color=_FRONT,
              linewidth=1.0, alpha=0.7)  # fmt: skip
    _name(axes, points)
    unit = points[0].against.unit
    title = "power, W" if unit == "W" else f"{unit} for a million"
    draw.value_axis(axes, [one.against.value for one in points], title)
    draw.value_axis(axes, [one.value.value for one in points], f"{metric_title(report.metric)}, {report.unit}", on="y")
    axes.margins(x=0.12, y=0.12)
    draw.legend(figure, axes)
    return draw.svg(figure, "matrix-pareto", f"{metric_title(report.metric)} against {title}")


def _name(axes: Axes, points: Sequence[ParetoPoint]) -> None:
    """Write beside each point what it is: to its left on the right of the plot, and below it on the front."""
    highest = max(one.against.value for one in points)
    for point in points:
        is_right = point.against.value > 0.7 * highest
        offset = (-6 if is_right else 6, -11 if point.is_front else 5)
        axes.annotate(draw.shorten(f"{point.row} × {point.column}", 34), (point.against.value, point.value.value),
                      xytext=offset, textcoords="offset points", ha="right" if is_right else "left",
                      color=draw.MUTED)  # fmt: skip
