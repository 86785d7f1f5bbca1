"""Plot throughput and latency against load, with the knee and the SLO limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.model.estimate import Estimate
from prony.model.sweep import Curve, Level
from prony.report import number
from prony.report.html.tags import Html
from prony.report.plots import figure as draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_TICKS = 10
_KNEE, _SLO = draw.COLOURS[1], draw.COLOURS[2]


@draw.with_style
def against_load(curve: Curve, name: str) -> Html | None:
    """Draw one curve; a level that takes no part in the claims is hollow."""
    points = [level for level in curve.levels if level.throughput is not None]
    if len(points) < 2:
        return None
    figure, panels = draw.canvas(draw.WIDE, 4.4, 7, panels=2)
    figure.subplots_adjust(top=1 - 0.5 / 4.4, hspace=0.28)  # the legend stands above the first title
    _points(panels[0], points, "throughput", colour=draw.COLOURS[0], label="throughput")
    _points(panels[0], points, "goodput", colour=draw.COLOURS[3], label="goodput")
    _points(panels[1], points, "p50", colour=draw.COLOURS[0], label=None)
    _points(panels[1], points, "p99", colour=draw.COLOURS[5], label=None)
    _limit(panels[0], curve)
    for axes in panels:
        _marks(axes, curve, named=axes is panels[0])
    draw.value_axis(panels[-1], [level.load for level in points], curve.noun, wide=8.0)
    if len(points) <= _MOST_TICKS:
        panels[-1].set_xticks([level.load for level in points], labels=[f"{level.load:g}" for level in points])
    panels[0].set_title("requests a second", loc="left", pad=3)
    panels[0].set_ylim(bottom=0)
    panels[1].set_title("end to end, ms: p50 (blue), p99 (red)", loc="left", pad=3)
    ends = [one.value for level in points for one in (level.p50, level.p99) if one is not None and one.value > 0]
    if ends:
        draw.value_axis(panels[1], ends, "", on="y")
        panels[1].set_ylabel("")
    draw.legend(figure, panels[0])
    return draw.svg(figure, f"sweep-{name}", f"Throughput and latency against load: {curve.title or curve.noun}")


def _points(axes: Axes, levels: Sequence[Level], name: str, *, colour: str, label: str | None) -> None:
    found: list[tuple[Level, Estimate]] = [(lv, one) for lv in levels if (one := getattr(lv, name)) is not None]
    if not found:
        return
    axes.plot([level.load for level, _ in found], [one.value for _, one in found], "-", color=colour, linewidth=1.2,
              label=label)  # fmt: skip
    for level, one in found:
        ends = number.interval_of(one)
        if ends is not None:
            axes.plot([level.load] * 2, ends, color=colour, linewidth=2.6, alpha=0.45, solid_capstyle="round")
        axes.plot([level.load], [one.value], "o", markersize=4.5, color=colour,
                  markerfacecolor="none" if level.excluded else colour)  # fmt: skip


def _limit(axes: Axes, curve: Curve) -> None:
    """Shade what goes through at most, where that was found."""
    ends = number.interval_of(curve.limit.estimate) if curve.limit.estimate is not None else None
    if curve.limit.state == "found" and ends is not None:
        axes.axhspan(*ends, color=draw.COLOURS[0], alpha=0.10, linewidth=0)


def _marks(axes: Axes, curve: Curve, *, named: bool) -> None:
    knee = curve.knee.estimate
    if knee is not None and knee.low is not None and knee.high is not None:
        axes.axvspan(knee.low, knee.high, color=_KNEE, alpha=0.22, linewidth=0)
        axes.axvline(knee.value, color=_KNEE, linewidth=1.4, label=f"knee at {knee.value:.3g}" if named else None)
    slo = curve.slo.estimate if curve.slo is not None else None
    if slo is not None:
        axes.axvline(slo.value, color=_SLO, linewidth=1.4, linestyle="--",
                     label=f"meets the SLO up to {slo.value:g}" if named else None)  # fmt: skip
