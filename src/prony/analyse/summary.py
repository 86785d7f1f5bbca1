"""A job, its result and its samples in, the summary out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prony.analyse.estimates import inference_estimates, missing_percentiles
from prony.analyse.evidence import Evidence
from prony.analyse.external_results import reported_figures
from prony.analyse.outliers import outliers
from prony.analyse.per_run_metrics import cold_estimates, run_estimates
from prony.analyse.runs import Columns, cold_durations_ms, measured_run
from prony.analyse.selection import select
from prony.analyse.sensitivity import sensitivity_of, spread_of
from prony.analyse.verdict import judge
from prony.errors import InputError
from prony.model.device import Environment
from prony.model.estimate import Summary
from prony.model.job import Job
from prony.model.metric import HEADLINE
from prony.model.result import Result

if TYPE_CHECKING:
    import polars as pl


def summarise(job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None) -> Summary:
    """Summarise one job: one number a run, an interval over runs, and the verdict on the measurement.

    The same input always gives the same summary, and the order of rows and repetitions does not matter.
    """
    if job.workload.kind == "service":
        from prony.analyse.load.summary import summarise_load

        return summarise_load(job, result, samples, environment=environment)
    if job.workload.kind == "script":
        from prony.analyse.script.summary import summarise_script

        return summarise_script(job, result, samples, environment=environment)
    if job.id != result.job_id:
        raise InputError(f"job {job.id} and the result of job {result.job_id} do not belong together")
    succeeded = sorted(repetition.index for repetition in result.repetitions if repetition.state == "ok")
    columns = Columns.of(samples)
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
    figures = inference_estimates(runs) | cold_estimates(selection, durations_ms, result.repetitions)
    figures |= run_estimates(selection, measured, job.model) | reported_figures(result.reported)
    listed, outlier_count = outliers(runs)
    evidence = Evidence(job, result, selection, runs, figures.estimates.get(HEADLINE), environment)
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell,
        estimates=figures.estimates, runs=figures.runs, missing=missing_percentiles(runs),
        spread=spread_of("inference_ms", [run.moments for run in runs], selection.used),
        sensitivity=sensitivity_of(figures.runs),
        outliers=listed, outlier_count=outlier_count,
        steady_from={index: run.steady_from for index, run in measured.items()},
        used=tuple(run.repetition for run in runs), excluded=selection.excluded,
        verdict=judge(evidence),
    )  # fmt: skip
