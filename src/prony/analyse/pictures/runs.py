"""A job with its samples in, what each run measured out: when, how long, what failed, and which part of it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.runs import NS_PER_MS, Columns, measured_run
from prony.instruments.script_samples import series_of
from prony.model.estimate import Summary
from prony.model.job import Job
from prony.model.metric import HEADLINES, key_of
from prony.model.result import Result
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

# Those that have a number for each sample, request or gap.
_SAMPLED = (
    "inference_ms", "e2e_ms", "service_ms", "ttfb_ms", "ttft_ms", "ttft_content_ms", "itl_ms", "tpot_ms",
    "tokens_per_s_per_user", "sent_late_ms", "quality",
)  # fmt: skip


@dataclass(frozen=True)
class Track:
    """One run in time, in nanoseconds: successes and failures by when they ended, and the part that counts."""

    repetition: int
    ends_ns: Array
    values: Array
    failed_ns: Array
    window_ns: tuple[int, int]
    origin_ns: int


def metrics_of(job: Job, summary: Summary) -> tuple[str, ...]:
    """Return the metrics that can be drawn, the headline's first."""
    if job.workload.kind == "script":
        return tuple(dict.fromkeys(name for key in summary.runs if (name := key_of(key).metric) in summary.metrics))
    known = {key_of(key).metric for key in summary.estimates}
    first = key_of(HEADLINES.get(job.workload.kind, "")).metric
    return tuple(sorted((name for name in _SAMPLED if name in known), key=lambda name: name != first))


def values_of(job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
    """Return by repetition the numbers that count; a run without any is left out."""
    if job.workload.kind == "service":
        return _of_requests(job, result, samples, metric)
    if job.workload.kind == "script":
        told = _read_script_samples(job, samples, metric)
        good = {one.index for one in result.repetitions if one.state == "ok" and one.kind == "measure"}
        return {index: rows["value"].to_numpy() for index, rows in told.items() if index in good}
    columns = Columns.of(samples)
    runs = {one.index: measured_run(columns, one.index) for one in result.repetitions}
    return {index: run.durations_ns / NS_PER_MS for index, run in runs.items() if run is not None}


def _of_requests(job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
    from prony.analyse.load.latency import latencies
    from prony.analyse.load.tokens import token_latencies
    from prony.analyse.load.window import runs_of

    found = {}
    for index, run in runs_of(samples, job.load, result.repetitions).items():
        told = latencies(run)
        values = told[metric] if metric in told else token_latencies(run).get(metric)
        if values is not None and values.numbers.size:
            found[index] = values.numbers
    return found


def tracks_of(job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
    """Return the runs in time, those that have samples, in order."""
    if job.workload.kind == "service":
        return _load_tracks(job, result, samples)
    if job.workload.kind == "script":
        return _script_tracks(job, result, samples)
    columns = Columns.of(samples)
    timed = columns.in_phase("warmup") | columns.in_phase("measure")
    found = []
    for one in result.repetitions:
        run = measured_run(columns, one.index)
        rows = timed & (columns.repetition == one.index)
        if run is None or not rows.any():
            continue
        begins, ends = columns.begin_ns[rows], columns.end_ns[rows]
        counted = np.flatnonzero((columns.repetition == one.index) & np.isin(columns.index, run.indices[:1]))
        window = int(columns.begin_ns[counted[0]]), int(ends.max())
        none: Array = np.zeros(0, dtype=np.int64)
        found.append(Track(one.index, ends, (ends - begins) / NS_PER_MS, none, window, int(begins.min())))
    return found


def _load_tracks(job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
    from prony.analyse.load.window import runs_of

    found = []
    for index, run in runs_of(samples, job.load, result.repetitions).items():
        begins, ends, good = run.numbers["begin_ns"], run.numbers["end_ns"], run.successes
        if not begins.size:
            continue
        # What never ended failed when it began, as far as anybody knows.
        failed = np.where(ends > 0, ends, begins)[~good]
        window = run.window.begin_ns, run.window.end_ns
        values = (ends - begins)[good] / NS_PER_MS
        found.append(Track(index, ends[good], values, failed, window, int(begins.min())))
    return found


def _read_script_samples(job: Job, samples: pl.DataFrame, metric: str | None) -> dict[int, pl.DataFrame]:
    """Return by repetition what a script told under one name; None is what stands for it."""
    import polars as pl

    series = series_of(samples, job.script) if "name" in samples.columns else []
    wanted = metric or (series[0].metric if series else "")
    names = {one.name for one in series if one.metric == wanted}
    rows = samples.filter(pl.col("name").is_in(names)).sort("repetition", "index") if names else samples.clear()
    return {int(part["repetition"][0]): part for part in rows.partition_by("repetition", maintain_order=True)}


def _script_tracks(job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
    none: Array = np.zeros(0, dtype=np.int64)
    phases = {one.index: one.phases["measure"] for one in result.repetitions if "measure" in one.phases}
    return [
        Track(
            index, rows["at_ns"].to_numpy(), rows["value"].to_numpy(), none,
            (phases[index].begin_ns, phases[index].end_ns), phases[index].begin_ns,
        )
        for index, rows in _read_script_samples(job, samples, None).items()
        if index in phases
    ]  # fmt: skip
