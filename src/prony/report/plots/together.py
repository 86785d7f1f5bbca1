"""Plot several jobs together: numbers along one setting with the hardware's bounds, or one number against another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prony.model.job_plot import JobPlot, PlotLine, PlotPoint
from prony.report.html.tags import Html
from prony.report.plots import figure as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT_IN = 3.3
_MOST_TICKS = 10


@draw.with_style
def job_plot(plot: JobPlot, name: str) -> Html | None:
    """Draw one picture; void results are hollow, and a bound is dashed in the colour of its line."""
    figure, (axes,) = draw.canvas(draw.WIDE, _HEIGHT_IN, 7)
    measured = [one for one in plot.lines if one.role in ("line", "points")]
    bounds = [one for one in plot.lines if one.role == "bound"]
    for place, line in enumerate(measured):
        _draw_measured(axes, line, draw.COLOURS[place % len(draw.COLOURS)])
    for line in bounds:
        place = next((n for n, one in enumerate(measured) if line.name.endswith(f", {one.name}")), 0)
        _draw_joined(axes, line, draw.COLOURS[place % len(draw.COLOURS)], "--")
    for line in (one for one in plot.lines if one.role == "front"):
        _draw_joined(axes, line, draw.COLOURS[2], "-")
    points = [point for line in plot.lines for point in line.points]
    xs = sorted({point.x for point in points})
    draw.value_axis(axes, xs, plot.x_title, wide=8.0)
    if plot.lines[0].role == "line" and len(xs) <= _MOST_TICKS:
        axes.set_xticks(xs, labels=[f"{x:g}" for x in xs])
    if not draw.value_axis(axes, [point.y for point in points], plot.y_title, on="y"):
        axes.set_ylim(bottom=0)
    axes.margins(x=0.08)
    draw.legend(figure, axes)
    return draw.svg(figure, f"together-{name}", plot.title)


def _draw_measured(axes: Axes, line: PlotLine, colour: str) -> None:
    xs, ys = [one.x for one in line.points], [one.y for one in line.points]
    if line.role == "line":
        axes.plot(xs, ys, "-", color=colour, linewidth=1.2, label=draw.shorten(line.name, 30))
    for one in line.points:
        _draw_interval(axes, one, colour)
        face = "none" if one.is_void else colour
        axes.plot([one.x], [one.y], "o", markersize=4.5, color=colour, markerfacecolor=face)
        if line.role == "points":
            is_right = one.x > 0.6 * max(xs)
            axes.annotate(draw.shorten(one.label, 34), (one.x, one.y), xytext=(-6 if is_right else 6, 5),
                          textcoords="offset points", ha="right" if is_right else "left", color=draw.MUTED)  # fmt: skip


def _draw_interval(axes: Axes, one: PlotPoint, colour: str) -> None:
    style: dict[str, Any] = {"color": colour, "linewidth": 2.4, "alpha": 0.45, "solid_capstyle": "round"}
    if one.y_low is not None and one.y_high is not None:
        axes.plot([one.x] * 2, [one.y_low, one.y_high], **style)
    if one.x_low is not None and one.x_high is not None:
        axes.plot([one.x_low, one.x_high], [one.y] * 2, **style)


def _draw_joined(axes: Axes, line: PlotLine, colour: str, dash: str) -> None:
    xs, ys = [one.x for one in line.points], [one.y for one in line.points]
    axes.plot(xs, ys, dash, color=colour, linewidth=1.1, alpha=0.8, label=draw.shorten(line.name, 40))
