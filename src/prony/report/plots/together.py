"""Plot several jobs together: numbers along one setting with the hardware's bounds, or one number against another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.model.job_plot import JobPlot, PlotLine, PlotPoint
from prony.report.html.tags import Html
from prony.report.plots import figure as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLOT_IN, _LEGEND_ROW_IN = 3.0, 0.17
_LEGEND_LETTERS = 100
_MOST_TICKS = 10


@draw.with_style
def job_plot(plot: JobPlot, name: str) -> Html | None:
    """Draw one picture; void results are hollow, and a bound is dashed in the colour of its line."""
    measured = [one for one in plot.lines if one.role in ("line", "points")]
    names = _legend_names(plot)
    columns = max(1, _LEGEND_LETTERS // (max(len(one) for one in names.values()) + 6)) if names else 1
    above = 0.3 + _LEGEND_ROW_IN * math.ceil(len(names) / columns)
    figure, (axes,) = draw.canvas(draw.WIDE, _PLOT_IN + above, 5)
    figure.subplots_adjust(top=1 - above / (_PLOT_IN + above))
    for line in plot.lines:
        colour = draw.COLOURS[2 if line.role == "front" else _place_of(line, measured) % len(draw.COLOURS)]
        _draw_line(axes, line, colour, names.get(line.name))
    _name_axes(axes, plot)
    draw.legend(figure, axes, columns)
    return draw.svg(figure, f"together-{name}", plot.title)


def _legend_names(plot: JobPlot) -> dict[str, str]:
    """Return what the legend says of each line; a bound has the colour of its own line, so one name does for all."""
    bounds = [one.name for one in plot.lines if one.role == "bound"]
    named = [one.name for one in plot.lines if one.role in ("line", "front")]
    found = {name: draw.shorten(name, 40) for name in named}
    return found | {name: f"{name.partition(', ')[0]}, dashed" for name in bounds[:1]}


def _place_of(line: PlotLine, measured: Sequence[PlotLine]) -> int:
    return next((n for n, one in enumerate(measured) if line is one or line.name.endswith(f", {one.name}")), 0)


def _name_axes(axes: Axes, plot: JobPlot) -> None:
    from matplotlib.ticker import FuncFormatter

    points = [point for line in plot.lines for point in line.points]
    xs = sorted({point.x for point in points})
    draw.value_axis(axes, xs, plot.x_title, wide=8.0)
    if plot.lines[0].role == "line" and len(xs) <= _MOST_TICKS:
        axes.set_xticks(xs, labels=[f"{x:g}" for x in xs])
    is_log = draw.value_axis(axes, [point.y for point in points], plot.y_title, on="y")
    if not is_log:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short_number(value)))
    axes.set_title(axes.get_ylabel(), loc="left", pad=3)
    axes.set_ylabel("")
    axes.margins(x=0.08, y=0.12)


def _short_number(value: float) -> str:
    """Write thousands and millions short: ticks stand beside the plot."""
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e6 if letter == 'M' else 1e3):g}{letter}"
    return f"{value:g}"


def _draw_line(axes: Axes, line: PlotLine, colour: str, label: str | None) -> None:
    xs, ys = [one.x for one in line.points], [one.y for one in line.points]
    if line.role != "points":
        dash = "--" if line.role == "bound" else "-"
        axes.plot(xs, ys, dash, color=colour, linewidth=1.2, alpha=0.85, label=label)
    if line.role in ("line", "points"):
        for one in line.points:
            _draw_interval(axes, one, colour)
            face = "none" if one.is_void else colour
            axes.plot([one.x], [one.y], "o", markersize=4.5, color=colour, markerfacecolor=face)
    if line.role == "points":
        _name_points(axes, line)


def _name_points(axes: Axes, line: PlotLine) -> None:
    """Write beside each point which job it is: to its left on the right of the plot."""
    most = max(one.x for one in line.points)
    for one in line.points:
        is_right = one.x > 0.6 * most
        axes.annotate(draw.shorten(one.label, 34), (one.x, one.y), xytext=(-6 if is_right else 6, -11),
                      textcoords="offset points", ha="right" if is_right else "left", color=draw.MUTED)  # fmt: skip


def _draw_interval(axes: Axes, one: PlotPoint, colour: str) -> None:
    style: dict[str, Any] = {"color": colour, "linewidth": 2.4, "alpha": 0.45, "solid_capstyle": "round"}
    if one.y_low is not None and one.y_high is not None:
        axes.plot([one.x] * 2, [one.y_low, one.y_high], **style)
    if one.x_low is not None and one.x_high is not None:
        axes.plot([one.x_low, one.x_high], [one.y] * 2, **style)
