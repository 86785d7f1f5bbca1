"""Summarise what an engine measured of a model, and read its samples for pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.canaries import canary_medians
from prony.analyse.device_metrics import device_estimates
from prony.analyse.estimates import inference_estimates, missing_percentiles, sensitivity_of, spread_of
from prony.analyse.external_results import reported_figures
from prony.analyse.machine_use import own_cores, use_estimates
from prony.analyse.outliers import outliers
from prony.analyse.per_run_metrics import cold_estimates, run_estimates
from prony.analyse.pictures import Track, sampled_metrics
from prony.analyse.runs import NS_PER_MS, Columns, cold_durations_ms, measured_run
from prony.analyse.selection import check_result_of_job, select
from prony.analyse.verdict import Evidence
from prony.kinds.model.rules import judge_model
from prony.kinds.model.schema import ModelWorkload
from prony.model.device import Environment
from prony.model.estimate import QUANTILES, Summary
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.metric import HEADLINE
from prony.model.result import Result
from prony.ports.workload import ReadColumns, Summarise
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl


def summarise(job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None) -> Summary:
    """Summarise one job: one number a run, an interval over runs, and the verdict on the measurement.

    The same input always gives the same summary, and the order of rows and repetitions does not matter.
    """
    return _summarise_columns(job, result, Columns.of(samples), environment)


def _summarise_columns(job: Job, result: Result, columns: Columns, environment: Environment | None) -> Summary:
    check_result_of_job(job, result)
    succeeded = sorted(repetition.index for repetition in result.repetitions if repetition.state == "ok")
    measured = {index: run for index in succeeded if (run := measured_run(columns, index)) is not None}
    durations_ms = cold_durations_ms(columns)
    selection = select(
        result.repetitions,
        job.measure,
        measured=measured.keys(),
        loaded=durations_ms.keys(),
        restless={index for index, run in measured.items() if run.steady_from is None},
    )
    runs = tuple(measured[repetition.index] for repetition in selection.used)
    is_stopped = job.measure.until is not None
    figures = inference_estimates(runs, is_stopped=is_stopped)
    figures |= cold_estimates(selection, durations_ms, result.repetitions)
    work = job.work(ModelWorkload)
    figures |= run_estimates(selection, measured, batch_size=work.batch_size, unit=work.unit, is_stopped=is_stopped)
    figures |= device_estimates(selection, columns, is_stopped=is_stopped)
    figures |= use_estimates(selection.used, own_cores, is_stopped=is_stopped)
    figures |= reported_figures(result.reported)
    listed, outlier_count = outliers(runs)
    evidence = Evidence(
        job, result, selection, runs, figures.estimates.get(HEADLINE), environment, figures.refused, figures.estimates
    )
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell,
        estimates=figures.estimates, runs=figures.runs, missing=missing_percentiles(runs),
        spread=spread_of("inference_ms", [run.moments for run in runs], selection.used),
        sensitivity=sensitivity_of(figures.runs),
        outliers=listed, outlier_count=outlier_count,
        steady_from={index: run.steady_from for index, run in measured.items()},
        canary=canary_medians(selection.used), quantiles=QUANTILES,
        used=tuple(run.repetition for run in runs), excluded=selection.excluded,
        verdict=judge_model(evidence),
    )  # fmt: skip


class ModelSummary(Summarise):
    """Results of models to numbers."""

    figures = ("distribution", "timeline", "starts")

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        return summarise(job, result, samples, environment=environment)

    def summarise_stored(
        self, job: Job, result: Result, read: ReadColumns, *, environment: Environment | None = None
    ) -> Summary:
        # Numbers that others took have no samples, and a server that takes them in need not load what reads samples.
        if result.reported is not None:
            return _summarise_columns(job, result, Columns.empty(), environment)
        return super().summarise_stored(job, result, read, environment=environment)

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job
        return sampled_metrics(summary, HEADLINE)

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        del job, metric
        columns = Columns.of(samples)
        runs = {one.index: measured_run(columns, one.index) for one in result.repetitions}
        return {index: run.durations_ns / NS_PER_MS for index, run in runs.items() if run is not None}

    def tracks(self, job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
        del job
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

    def work(self, entry: Entry, key: str) -> str:
        work = entry.job.work(ModelWorkload)
        name = entry.result.model.sha256[:12] if entry.result.model is not None else work.model
        is_of_batch = not key.startswith(("throughput_per_s", "load_ms", "import_ms"))
        return f"{name} in batches of {work.batch_size}" if is_of_batch and work.batch_size > 1 else name


PART = ModelSummary()
