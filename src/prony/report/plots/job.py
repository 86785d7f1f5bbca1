"""Plot one job by itself: the distribution of its runs, a timeline of its samples, and telemetry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.model.experiment_data import Entry
from prony.report import entry_fields
from prony.report.html.tags import Html
from prony.report.plots import figure as draw
from prony.report.plots.series import PlottedRun, bands, counters

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_POINTS = 4000
_PANELS = 3


@draw.with_style
def distribution(entry: Entry, runs: Sequence[PlottedRun]) -> Html | None:
    """Draw each run as a row of its own: the samples that count, their density and median, and both spreads show."""
    import numpy as np

    shown = [run for run in runs if run.counted_ms.size]
    if not shown:
        return None
    figure, (axes,) = draw.canvas(draw.NARROW, 0.75 + 0.36 * min(len(shown), 14), 7)
    everything = np.concatenate([run.counted_ms for run in shown])
    is_log = draw.value_axis(axes, everything, "one inference, ms", wide=6.0)
    edges = _edges(everything, min(200, MOST_POINTS // len(shown)), is_log=is_log)
    for place, run in enumerate(shown):
        colour = draw.ALARM if run.repetition in entry.summary.excluded else draw.COLOURS[0]
        _ridge(axes, run.counted_ms, place, edges, colour=colour)
        if everything.size <= MOST_POINTS:
            # A fixed pattern of offsets keeps equal values apart, and the same in every rendering.
            offset = place + 0.07 + 0.03 * (np.arange(run.counted_ms.size) % 4)
            draw.dots(axes, run.counted_ms, offset, size=1.3, colour=colour, alpha=0.6)
    medians = [float(np.median(run.counted_ms)) for run in shown]
    ends = np.array([(x, place + end) for place, x in enumerate(medians) for end in (-0.8, 0.0)])
    draw.strokes(axes, ends, width=1.2, colour=draw.INK)
    draw.figure_rows(axes, [f"run {run.repetition}" for run in shown])
    axes.set_ylim(len(shown) - 0.7, -0.95)
    return draw.svg(figure, f"distribution-{entry.job.id}", f"Samples of each run of {entry_fields.label(entry)}")


def _edges(values: Any, count: int, *, is_log: bool) -> Any:
    import numpy as np

    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low * 0.99, high * 1.01 or 1.0
    return np.geomspace(low, high, count + 1) if is_log else np.linspace(low, high, count + 1)


def _ridge(axes: Axes, values: Any, place: int, edges: Any, *, colour: str) -> None:
    """Draw the smoothed histogram of one run, standing on its row."""
    import numpy as np

    heights, _ = np.histogram(values, bins=edges)
    smooth = np.convolve(heights, np.exp(-0.5 * (np.arange(-9, 10) / 3.0) ** 2), mode="same")
    drawn = np.flatnonzero(smooth > smooth.max() * 1e-3)
    x = ((edges[:-1] + edges[1:]) / 2)[drawn[0] : drawn[-1] + 1]
    y = place - 0.8 * smooth[drawn[0] : drawn[-1] + 1] / smooth.max()
    outline = np.column_stack([np.concatenate([x[:1], x, x[-1:]]), np.concatenate([[place], y, [place]])])
    draw.area(axes, outline, colour=colour, alpha=0.25)


@draw.with_style
def timeline(entry: Entry, runs: Sequence[PlottedRun]) -> Html | None:
    """Draw the samples in the order in which they were taken, run after run; warm-up shaded, outliers marked."""
    import numpy as np

    shown = [run for run in runs if run.ms.size]
    if not shown:
        return None
    figure, (axes,) = draw.canvas(draw.NARROW, 0.75 + 0.36 * 5, 5)
    sizes = [run.ms.size for run in shown]
    begins = [sum(sizes[:place]) for place in range(len(shown))]
    draw.spans(axes, [(b - 0.5, b + run.is_warmup.sum() - 0.5) for b, run in zip(begins, shown, strict=True)])
    for begin, run in zip(begins, shown, strict=True):
        _track(axes, run, begin, budget=MOST_POINTS // len(shown) if sum(sizes) > MOST_POINTS else run.ms.size)
        _mark_outliers(axes, entry, run, begin)
    draw.value_axis(axes, np.concatenate([run.ms for run in shown]), "ms", wide=10.0, on="y")
    word = "run " if len(shown) <= 8 else ""
    axes.set_xticks(begins, labels=[f"{word}{run.repetition}" for run in shown], ha="left")
    axes.set_xlim(-0.5, sum(sizes) - 0.5)
    axes.set_xlabel("samples in order; warm-up shaded")
    return draw.svg(figure, f"timeline-{entry.job.id}", f"Samples of {entry_fields.label(entry)} in order")


def _track(axes: Axes, run: PlottedRun, begin: int, *, budget: int) -> None:
    """Draw every sample, or the lowest, median and highest of stretches where there are more than the budget."""
    import numpy as np

    if run.ms.size <= budget:
        draw.dots(axes, begin + np.arange(run.ms.size), run.ms, size=1.6, colour=draw.COLOURS[0], alpha=0.75)
    else:
        place, low, middle, high = bands(run.ms, max(budget // 3, 2))
        _band(axes, begin + place, low, middle, high, draw.COLOURS[0])


def _band(axes: Axes, x: Any, low: Any, middle: Any, high: Any, colour: str) -> None:
    axes.fill_between(x, low, high, color=colour, alpha=0.3, linewidth=0)
    axes.plot(x, middle, color=colour, linewidth=0.9)


def _mark_outliers(axes: Axes, entry: Entry, run: PlottedRun, begin: int) -> None:
    """Circle the labelled samples; a label without an index speaks of the whole run."""
    import numpy as np

    mine = [one for one in entry.summary.outliers if one.repetition == run.repetition]
    named = [one.index for one in mine if one.index is not None and one.metric.startswith("inference_ms")]
    places = np.flatnonzero(np.isin(run.index, named))
    if places.size:
        axes.plot(begin + places, run.ms[places], "o", markerfacecolor="none", markeredgecolor=draw.ALARM, markersize=5)


@draw.with_style
def telemetry(entry: Entry) -> Html | None:
    """Draw what the machine did beside the runs, one after the other; the measured phases are shaded."""
    found, origins = counters(entry, _PANELS)
    if not found:
        return None
    figure, panels = draw.canvas(draw.NARROW, 0.6 + 0.72 * len(found), 5, panels=len(found))
    measured = [(one.phases["measure"], origins[one.index]) for one in entry.result.repetitions
                if "measure" in one.phases and one.index in origins]  # fmt: skip
    for axes, one in zip(panels, found, strict=True):
        draw.spans(axes, [((phase.begin_ns - at) / 1e9, (phase.end_ns - at) / 1e9) for phase, at in measured])
        _line(axes, one.at_s, one.value)
        axes.set_title(f"{one.probe} {one.name}{f', {one.unit}' if one.unit else ''}", loc="left", pad=3)
        axes.set_ylim(*_limits(one.value))
        axes.locator_params(axis="y", nbins=3)
    panels[0].set_xlim(min(float(one.at_s[0]) for one in found), max(float(one.at_s[-1]) for one in found))
    panels[-1].set_xlabel("seconds, run after run; measured phases shaded")
    return draw.svg(figure, f"telemetry-{entry.job.id}", f"Counters beside {entry_fields.label(entry)}")


def _limits(value: Any) -> tuple[float, float]:
    """Return limits that do not blow up the noise of a counter that hardly moves."""
    import numpy as np

    low, high = float(np.nanmin(value)), float(np.nanmax(value))
    margin = max(0.08 * (high - low), 0.02 * max(abs(low), abs(high)), 1e-9)
    return low - margin, high + margin


def _line(axes: Axes, at_s: Any, value: Any) -> None:
    """Draw one counter; the line breaks between runs, where the value is not a number."""
    import numpy as np

    if at_s.size * _PANELS <= MOST_POINTS:
        axes.plot(at_s, value, color=draw.COLOURS[2], linewidth=1.0)
        return
    good = np.isfinite(value)
    place, low, middle, high = bands(value[good], MOST_POINTS // (3 * _PANELS))
    _band(axes, at_s[good][place.astype(int)], low, middle, high, draw.COLOURS[2])
