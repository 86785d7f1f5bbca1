"""Plot all jobs of an experiment side by side: medians, cold against warm, memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry
from prony.model.metric import HEADLINE
from prony.report import entry_fields, number
from prony.report.html.tags import Html
from prony.report.plots import figure as draw
from prony.report.plots.series import PlottedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MARKERS = {Grade.VALID: "o", Grade.SUSPECT: "^", Grade.VOID: "X"}
# Beyond this many jobs the memory of loading is left to the tables.
_MOST_WITH_LOAD = 12


@draw.with_style
def comparison(entries: Sequence[Entry], runs: dict[str, list[PlottedRun]]) -> Html | None:
    """Draw the median inference of each job with its interval, and below it the median of each run."""
    import numpy as np

    timed = [
        (found, entry)
        for entry in entries
        if (found := entry_fields.find_estimate(entry.summary, HEADLINE)) is not None
    ]
    if not timed:
        return None
    scale = number.common_scale([found for found, _ in timed])
    labels = [draw.shorten(entry_fields.label(entry)) for _, entry in timed]
    figure, (axes,) = draw.canvas(draw.WIDE, 0.75 + 0.32 * len(timed), max(map(len, labels)))
    colours = _by_engine([entry for _, entry in timed])
    for place, (found, entry) in enumerate(timed):
        colour = colours[entry.job.workload.tool]
        for is_used in (False, True):
            mine = [one for one in runs.get(entry.job.id, []) if (one.repetition in entry.summary.used) is is_used]
            medians = np.array([np.median(run.counted_ms) for run in mine if run.counted_ms.size])
            height, shade = np.full(medians.size, place + 0.24), colour if is_used else draw.MUTED
            draw.dots(axes, medians * scale.factor, height, size=3.2, colour=shade, alpha=0.5)
        _point(axes, found, scale.factor, place, color=colour, marker=_MARKERS[entry.summary.verdict.grade])
    draw.figure_rows(axes, labels)
    values = [found.value * scale.factor for found, _ in timed]
    draw.value_axis(axes, values, f"median inference, {scale.symbol}", from_zero=True)
    return draw.svg(figure, "comparison", "Median inference of each job with its interval")


@draw.with_style
def cold_warm(entries: Sequence[Entry]) -> Html | None:
    """Draw loading, the first inference and the warm median; dots, because bars have no place on a log axis."""
    kinds = (("load_ms", "load", "s"), ("first_inference_ms", "first inference", "D"), (HEADLINE, "warm median", "o"))
    shown = [entry for entry in entries if any(entry_fields.find_estimate(entry.summary, key) for key, _, _ in kinds)]
    if not shown:
        return None
    labels = [draw.shorten(entry_fields.label(entry)) for entry in shown]
    figure, (axes,) = draw.canvas(draw.WIDE, 0.8 + 0.3 * len(shown), max(map(len, labels)))
    values = []
    for order, (key, name, marker) in enumerate(kinds):
        found = [
            (nth, one)
            for nth, entry in enumerate(shown)
            if (one := entry_fields.find_estimate(entry.summary, key)) is not None
        ]
        values += [one.value for _, one in found]
        for place, one in found:
            label = name if one is found[0][1] else None
            _point(axes, one, 1.0, place, color=draw.COLOURS[order], marker=marker, label=label)
    draw.figure_rows(axes, labels)
    draw.value_axis(axes, values, "milliseconds", from_zero=True)
    draw.legend(figure, axes)
    return draw.svg(figure, "cold-warm", "Loading, first inference and warm median of each job")


@draw.with_style
def memory(entries: Sequence[Entry]) -> Html | None:
    """Draw anonymous and file-backed memory at the end of each phase, with the baseline and the high-water mark."""
    phases = ("load", "measure") if len(entries) <= _MOST_WITH_LOAD else ("measure",)
    shown = [(entry, phase, sizes) for entry in entries for phase in phases if (sizes := _sizes(entry, phase))]
    if not shown:
        return None
    labels = [f"{draw.shorten(entry_fields.label(entry), 30)} · {phase}" for entry, phase, _ in shown]
    figure, (axes,) = draw.canvas(draw.WIDE, 0.8 + 0.24 * len(shown), max(map(len, labels)))
    places = list(range(len(shown)))
    anon, file, baseline, peak = (
        [sizes[name] for _, _, sizes in shown] for name in ("anon", "file", "baseline", "peak")
    )
    axes.barh(places, anon, height=0.56, color=draw.COLOURS[0], alpha=0.85, label="anonymous")
    axes.barh(places, file, left=anon, height=0.56, color=draw.COLOURS[4], alpha=0.7, label="file-backed")
    axes.plot(baseline, places, "|", color=draw.INK, markersize=11, label="baseline after import")
    axes.plot(peak, places, "D", color=draw.COLOURS[1], markersize=4, label="high-water mark")
    draw.figure_rows(axes, labels)
    draw.value_axis(axes, [], "resident memory, MiB", from_zero=True)
    draw.legend(figure, axes)
    return draw.svg(figure, "memory", "Resident memory by phase of each job")


def _sizes(entry: Entry, phase: str) -> dict[str, float]:
    """Return the medians over the repetitions that tell all four, in MiB; empty where none does."""
    from statistics import median

    told: list[tuple[float, float, float, float]] = []
    for one in entry.result.repetitions:
        seen = one.phases.get(phase)
        if seen is None or one.baseline_rss_kib is None:
            continue
        if seen.rss_anon_kib is not None and seen.rss_file_kib is not None and seen.rss_peak_kib is not None:
            told.append((seen.rss_anon_kib, seen.rss_file_kib, one.baseline_rss_kib, seen.rss_peak_kib))
    names = ("anon", "file", "baseline", "peak")
    columns = zip(names, zip(*told, strict=True), strict=True) if told else ()
    return {name: median(column) / 1024 for name, column in columns}


def _by_engine(entries: Sequence[Entry]) -> dict[str, str]:
    engines = dict.fromkeys(entry.job.workload.tool for entry in entries)
    return {engine: draw.COLOURS[place % len(draw.COLOURS)] for place, engine in enumerate(engines)}


def _point(axes: Axes, found: Estimate, factor: float, place: float, **dress: Any) -> None:
    """Draw one number with its interval; without an interval the mark is hollow."""
    ends = number.interval_of(found)
    colour = dress["color"]
    if ends is not None:
        x = [end * factor for end in ends]
        axes.plot(x, [place, place], color=colour, linewidth=2.2, solid_capstyle="round", alpha=0.6)
    face = colour if ends is not None else "none"
    axes.plot(found.value * factor, place, markersize=6.5, linestyle="none", markerfacecolor=face, **dress)
