"""Summarise what the clients of a load saw, and read their requests for pictures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.load.latency import latencies, token_latencies
from prony.analyse.load.summary import summarise_load, summarise_runs
from prony.analyse.load.window import runs_of
from prony.analyse.pictures import Track, sampled_metrics
from prony.analyse.quality import add_task_scores
from prony.analyse.runs import NS_PER_MS
from prony.instruments.columns import COLUMNS
from prony.instruments.per_second import NS_PER_S, Seconds, seconds
from prony.kinds.service.schema import ServiceWorkload
from prony.model.device import Environment
from prony.model.estimate import Summary
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.metric import LOAD_HEADLINE
from prony.model.picture import LoadRunSeries
from prony.model.result import Result
from prony.ports.find_task import find_task
from prony.ports.workload import ReadColumns, Summarise
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl


class ServiceSummary(Summarise):
    """Results of loads to numbers."""

    figures = ("distribution", "timeline")

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        return summarise_load(job, result, samples, environment=environment)

    def summarise_stored(
        self, job: Job, result: Result, read: ReadColumns, *, environment: Environment | None = None
    ) -> Summary:
        # No name is given to the samples: what is not looked at is gone when the runs are there.
        runs = runs_of(read(COLUMNS), job.load, result.repetitions)
        return summarise_runs(job, result, runs, environment=environment)

    def add_scores(self, job: Job, folder: Path, summary: Summary) -> Summary:
        """Score the answers where the task does: here, on a server, and again whenever somebody asks."""
        work = job.work(ServiceWorkload)
        return summary if work.task is None else add_task_scores(summary, folder, *find_task(work.task, work.prompts))

    def read_samples(self, read: ReadColumns, *, is_whole: bool = True) -> pl.DataFrame:
        """Read the samples, without the stamps of every token where nobody asks for them: those are most of a file."""
        import polars as pl

        if is_whole:
            return read(COLUMNS)
        frame = read([name for name in COLUMNS if name != "token_ns"])
        none = pl.Series("token_ns", [None], dtype=pl.List(pl.Int64))
        return frame.with_columns(none.new_from_index(0, frame.height))

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job
        return sampled_metrics(summary, LOAD_HEADLINE)

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        found = {}
        for index, run in runs_of(samples, job.load, result.repetitions).items():
            told = latencies(run)
            values = told[metric] if metric in told else token_latencies(run).get(metric)
            if values is not None and values.numbers.size:
                found[index] = values.numbers
        return found

    def tracks(self, job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
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

    def load_series(
        self, job: Job, result: Result, summary: Summary, samples: pl.DataFrame, points: int
    ) -> tuple[LoadRunSeries, ...]:
        found = []
        for index, run in runs_of(samples, job.load, result.repetitions).items():
            begins, ends = run.numbers["begin_ns"], run.numbers["end_ns"]
            if begins.size:
                cut = cut_into_seconds(begins, ends, run.successes, points)
                found.append(_series_of(cut, index, summary))
        return tuple(found)

    def work(self, entry: Entry, key: str) -> str:
        del key
        work = entry.job.work(ServiceWorkload)
        asked = [work.options, work.task, work.prompts]
        return f"{work.subject} {asked}" if work.service is None else f"{work.service} {asked}"


def cut_into_seconds(begins: Array, ends: Array, succeeded: Array, points: int) -> Seconds:
    """Cut a run into seconds, or into longer steps of whole seconds where there would be more than `points`."""
    span_ns = int(max(ends.max(), begins.max()) - begins.min())
    width_ns = max(1, -(-span_ns // (points * NS_PER_S))) * NS_PER_S
    return seconds(begins, ends, succeeded, width_ns=width_ns)


def _series_of(cut: Seconds, repetition: int, summary: Summary) -> LoadRunSeries:
    width_s = cut.width_ns / NS_PER_S
    # The last step is cut off by the end of the run. Where little of it is left, it says nothing of a whole one.
    widths_s = np.full(cut.at_s.size, width_s)
    widths_s[-1] = cut.last_s
    kept = slice(0, cut.at_s.size - (cut.at_s.size > 1 and cut.last_s < width_s / 2))
    return LoadRunSeries(
        repetition=repetition,
        is_used=repetition in summary.used,
        excluded=summary.excluded.get(repetition, ""),
        at_s=_round_values(cut.at_s + widths_s, kept),
        rate_per_s=_round_values((cut.succeeded + cut.failed) / widths_s, kept),
        failed_per_s=_round_values(cut.failed / widths_s, kept),
        in_flight=_round_values(cut.in_flight * width_s / widths_s, kept),
        p50_ms=_listed_known(cut.p50_ms, kept),
        p99_ms=_listed_known(cut.p99_ms, kept),
    )


def _round_values(values: Array, kept: slice) -> tuple[float, ...]:
    return tuple(np.round(values[kept], 4).tolist())


def _listed_known(values: Array, kept: slice) -> tuple[float | None, ...]:
    return tuple(value if math.isfinite(value) else None for value in _round_values(values, kept))


PART = ServiceSummary()
