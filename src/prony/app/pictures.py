"""Build the charts of a result: distribution, timeline, cold starts and machine counters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from prony.app.results import reader_of
from prony.errors import InputError, NotFoundError
from prony.model.estimate import Estimate, metric_in
from prony.model.experiment_data import Entry
from prony.model.metric import key_of
from prony.model.picture import (
    CounterLine,
    Counters,
    Distribution,
    LoadSeries,
    Start,
    Starts,
    StepLines,
    Stretch,
    Timeline,
    TimelineRun,
)
from prony.ports.workload import shown_kind

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]


class SeriesLine(TypedDict):
    at_s: tuple[float, ...]
    value: tuple[float | None, ...]


_TOKENS = frozenset({"ttft_ms", "ttft_content_ms", "itl_ms", "tpot_ms", "tokens_per_s_per_user"})
_COLD = ("load_ms", "first_inference_ms", "cold_start_ms", "inference_ms")


def picture_distribution(entry: Entry, metric: str | None, bins: int) -> Distribution:
    """Put every sample that counts into bins, run by run."""
    from prony.analyse.pictures import drawn_run, edges_of, shares

    kind = shown_kind(entry.job.workload.kind).summary
    known = kind.drawn_metrics(entry.job, entry.summary)
    chosen = _chosen(entry, metric, known)
    runs = kind.sample_values(
        entry.job, entry.result, kind.read_samples(reader_of(entry.folder), is_whole=chosen in _TOKENS), chosen
    )
    if not runs:
        raise _nothing(entry, f"samples of {chosen}")
    edges, is_log = edges_of(list(runs.values()), bins)
    summary, about = entry.summary, metric_in(entry.summary, chosen)
    drawn = tuple(
        drawn_run(index, values, edges, summary.excluded, summary.used) for index, values in sorted(runs.items())
    )
    counting = [one for one in drawn if one.is_used] or list(drawn)
    return Distribution(
        job_id=entry.job.id, title=entry.job.title, metric=chosen, unit=about.unit, better=about.better, metrics=known,
        count=sum(one.count for one in counting), is_log=is_log, edges=tuple(edges.tolist()),
        counts=tuple(sum(column) for column in zip(*(one.counts for one in counting), strict=True)),
        ecdf=shares([runs[one.repetition] for one in counting]), runs=drawn,
        estimates=_estimates(entry, (chosen,)),
    )  # fmt: skip


def picture_timeline(entry: Entry, most: int) -> Timeline:
    """Show what was measured as time went by, warm-up with it."""
    from prony.analyse.pictures import buckets, width_of

    kind = shown_kind(entry.job.workload.kind).summary
    metric = _chosen(entry, None, kind.drawn_metrics(entry.job, entry.summary))
    tracks = kind.tracks(entry.job, entry.result, kind.read_samples(reader_of(entry.folder), is_whole=False))
    if not tracks:
        raise _nothing(entry, "samples")
    width_s, used, excluded = width_of(tracks, most), entry.summary.used, entry.summary.excluded
    runs = tuple(
        TimelineRun(
            repetition=one.repetition, is_used=one.repetition in used, excluded=excluded.get(one.repetition, ""),
            begin_s=(one.window_ns[0] - one.origin_ns) / 1e9, end_s=(one.window_ns[1] - one.origin_ns) / 1e9,
            buckets=buckets(one, width_s),
        )
        for one in tracks
    )  # fmt: skip
    about = metric_in(entry.summary, metric)
    return Timeline(
        job_id=entry.job.id, title=entry.job.title, metric=metric, unit=about.unit, width_s=width_s, runs=runs
    )


def picture_load(entry: Entry, points: int) -> LoadSeries:
    """Show a load second by second, warm-up with it; no run where nothing was loaded."""
    kind = shown_kind(entry.job.workload.kind).summary
    samples = kind.read_samples(reader_of(entry.folder), is_whole=False)
    runs = kind.load_series(entry.job, entry.result, entry.summary, samples, points)
    return LoadSeries(job_id=entry.job.id, title=entry.job.title, source="samples", runs=runs)


def starts(entry: Entry) -> Starts:
    """Show how long each fresh process took to be ready, and how fast it was then."""
    from prony.analyse.runs import Columns, cold_durations_ms

    kind = shown_kind(entry.job.workload.kind).summary
    if "starts" not in kind.figures:
        raise _nothing(entry, "starts: this kind of workload does not load a model in fresh processes")
    import numpy as np

    samples = kind.read_samples(reader_of(entry.folder))
    cold = cold_durations_ms(Columns.of(samples))
    warm = {
        index: float(np.median(values))
        for index, values in kind.sample_values(entry.job, entry.result, samples, "inference_ms").items()
    }
    summary = entry.summary
    runs = tuple(
        Start(
            repetition=one.index, kind=one.kind, is_used=one.index not in summary.excluded,
            excluded=summary.excluded.get(one.index, ""), load=cold.get(one.index, {}).get("load"),
            first=cold.get(one.index, {}).get("first"), warm=warm.get(one.index),
        )
        for one in entry.result.repetitions
    )  # fmt: skip
    return Starts(job_id=entry.job.id, title=entry.job.title, runs=runs, estimates=_estimates(entry, _COLD))


def picture_lines(entry: Entry) -> StepLines:
    """Show what was reported step by step; no line where nothing was."""
    found = shown_kind(entry.job.workload.kind).report.curves(entry)
    return StepLines(job_id=entry.job.id, title=entry.job.title, lines=tuple(found))


def picture_counters(entry: Entry, most: int, points: int) -> Counters:
    """Show what the machine did beside the runs; time runs on from run to run."""
    from prony.report.plots.series import counters as counted

    found, origins = counted(entry, most)
    lines = tuple(
        CounterLine(probe=one.probe, counter=one.name, unit=one.unit, **_thin(one.at_s, one.value, points))
        for one in found
    )
    measured = tuple(
        Stretch(
            repetition=one.index,
            begin_s=(one.phases["measure"].begin_ns - origins[one.index]) / 1e9,
            end_s=(one.phases["measure"].end_ns - origins[one.index]) / 1e9,
        )
        for one in entry.result.repetitions
        if "measure" in one.phases and one.index in origins
    )
    return Counters(job_id=entry.job.id, title=entry.job.title, series=lines, measured=measured)


def _chosen(entry: Entry, asked: str | None, known: Sequence[str]) -> str:
    if not known:
        raise _nothing(entry, "samples to draw")
    name = key_of(asked).metric if asked else known[0]
    if name not in known:
        hint = f"it has {', '.join(known)}"
        raise InputError(f"job {entry.job.id} has no samples of {asked}", hint=hint, code="unknown_metric")
    return name


def _nothing(entry: Entry, what: str) -> NotFoundError:
    return NotFoundError(
        f"the result of job {entry.job.id} has no {what}",
        code="no_result",
        hint="a job that failed has none, nor one whose samples were deleted",
    )


def _estimates(entry: Entry, metrics: Sequence[str]) -> dict[str, Estimate]:
    found = {key: (key_of(key), one) for key, one in entry.summary.estimates.items()}
    return {key: one for key, (named, one) in found.items() if named.metric in metrics and not named.operation}


def _thin(at_s: Numbers, value: Numbers, points: int) -> SeriesLine:
    """Keep the lowest and the highest of each stretch, and every gap: no peak is lost."""
    import numpy as np

    kept = np.arange(value.size)
    if value.size > points:
        chosen = set(np.flatnonzero(~np.isfinite(value)).tolist())
        for part in np.array_split(kept, max(points // 2, 1)):
            known = part[np.isfinite(value[part])]
            if known.size:
                chosen |= {int(known[value[known].argmin()]), int(known[value[known].argmax()])}
        kept = np.array(sorted(chosen))
    values = [one if math.isfinite(one) else None for one in value[kept].tolist()]
    return {"at_s": tuple(at_s[kept].tolist()), "value": tuple(values)}
