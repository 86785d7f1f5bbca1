"""Plot loads second by second and by latency percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.model.experiment_data import Entry
from prony.report import entry_fields
from prony.report.html.tags import Html
from prony.report.plots import figure as draw
from prony.report.plots.load_series import LoadRun

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]

# Where the axis of percentiles is marked: each step to the right is a tail ten times as thin.
_MARKS = {"50 %": 0.5, "90 %": 0.9, "99 %": 0.99, "99.9 %": 0.999, "99.99 %": 0.9999, "99.999 %": 0.99999}
_MOST_POINTS = 400
_GAP_S = 1.0


@draw.with_style
def over_time(entry: Entry, runs: Sequence[LoadRun]) -> Html | None:
    """Draw completions, latency and failures for each second, run after run; what counts is shaded."""
    shown = [run for run in runs if run.seconds.at_s.size]
    if not shown:
        return None
    failed = any(run.seconds.failed.any() for run in shown)
    figure, panels = draw.canvas(draw.NARROW, 2.3 + 0.72 * failed, 6, panels=3 if failed else 2)
    at = 0.0
    for run in shown:
        cut, x = run.seconds, run.seconds.at_s + at
        for axes in panels:
            draw.spans(axes, [(at + run.window_s[0], at + run.window_s[1])], alpha=0.10)
        panels[0].step(x, cut.succeeded, where="post", color=draw.COLOURS[0], linewidth=1.1)
        panels[1].plot(x, cut.p50_ms, color=draw.COLOURS[2], linewidth=1.1, label="p50" if run is shown[0] else None)
        panels[1].plot(x, cut.p99_ms, color=draw.COLOURS[1], linewidth=1.1, label="p99" if run is shown[0] else None)
        if failed:
            panels[2].step(x, cut.failed, where="post", color=draw.ALARM, linewidth=1.1)
        at += float(cut.at_s[-1]) + 1 + _GAP_S
    titles = ["successes a second", "latency by when it ended, ms: p50, p99", "failures a second"]
    for axes, title in zip(panels, titles, strict=False):
        axes.set_title(title, loc="left", pad=3)
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="y", nbins=3)
    panels[-1].set_xlabel("seconds, run after run; what counts is shaded")
    return draw.svg(figure, f"load-time-{entry.job.id}", f"Load of {entry_fields.label(entry)}, second by second")


@draw.with_style
def by_percentile(curves: Sequence[tuple[str, Sequence[LoadRun]]], name: str) -> Html | None:
    """Draw latency against percentile, a curve for each run: the further right, the thinner the tail."""
    import numpy as np

    known = [(label, run) for label, runs in curves for run in runs if run.ordered_ms.size > 1]
    if not known:
        return None
    figure, (axes,) = draw.canvas(draw.WIDE, 2.9, 6)
    labels = list(dict.fromkeys(label for label, _ in known))
    most = max(run.ordered_ms.size for _, run in known)
    named: set[str] = set()
    for label, run in known:
        tails, values = _tail(run.ordered_ms)
        colour = draw.COLOURS[labels.index(label) % len(draw.COLOURS)]
        word = draw.shorten(label) if len(labels) > 1 and label not in named else None
        axes.plot(1 / tails, values, color=colour, linewidth=1.1, alpha=0.8, label=word)
        named.add(label)
    axes.set_xscale("log")
    marks = {word: q for word, q in _MARKS.items() if 1 / (1 - q) <= most * 1.0001}
    axes.set_xticks([1 / (1 - q) for q in marks.values()], labels=list(marks))
    axes.xaxis.set_minor_locator(_none())
    values = np.concatenate([run.ordered_ms[[0, -1]] for _, run in known])
    draw.value_axis(axes, values, "end to end, ms", on="y")
    axes.set_xlabel("percentile")
    if len(labels) > 1:
        draw.legend(figure, axes)
    return draw.svg(figure, f"load-percentiles-{name}", "Latency by percentile")


def _tail(ordered_ms: Numbers) -> tuple[Numbers, Numbers]:
    """Return (share above, latency) at places that are even on the axis; the highest value stands at its own share."""
    import numpy as np

    count = ordered_ms.size
    tails = np.geomspace(1.0, 1 / count, min(count, _MOST_POINTS))
    ranks = np.clip(np.ceil(np.round((1 - tails) * count, 6)).astype(np.int64), 1, count) - 1
    ranks[-1] = count - 1
    return tails, ordered_ms[ranks]


def _none() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
