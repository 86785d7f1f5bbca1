"""Summarise a hardware test: one number a run of every reading, an interval over runs, and the share of the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prony.analyse.canaries import canary_medians
from prony.analyse.estimates import EstimateSet, sensitivity_of, single_estimates
from prony.analyse.peaks import Peak, find_peak
from prony.analyse.runs import MeasuredRun
from prony.analyse.selection import check_result_of_job, select
from prony.kinds.hardware.readings import (
    HARDWARE_METRICS,
    OF_PEAK,
    Series,
    best_operation,
    headline_metric,
    series_of_samples,
)
from prony.kinds.hardware.rules import HardwareEvidence, judge_hardware
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.device import Environment
from prony.model.estimate import QUANTILES, Summary
from prony.model.job import Job
from prony.model.metric import key_of, key_text
from prony.model.result import Result
from prony.ports.workload import Summarise
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl


def summarise_hardware(
    job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
) -> Summary:
    """Summarise one job; the same input always gives the same."""
    check_result_of_job(job, result)
    good = {one.index for one in result.repetitions if one.state == "ok"}
    selection = select(result.repetitions, job.measure, measured=good, loaded=())
    used = [one.index for one in selection.used]
    series = series_of_samples(samples)
    device = result.effective.device if result.effective is not None else ""
    peaks = {key_text(name, "p50"): peak for name in series if (peak := find_peak(device, name)) is not None}
    figures = _figures(series, used, is_stopped=job.measure.until is not None)
    peaks = {key: peak for key, peak in peaks.items() if key in figures.estimates}
    figures |= _shares(figures, peaks)
    is_of_gpu = job.work(HardwareWorkload).is_of_gpu
    metric = headline_metric([*series], is_of_gpu=is_of_gpu)
    headline = key_text(metric, "p50") if metric else None
    numbers = figures.runs.get(headline or "", ())
    runs = tuple(MeasuredRun.of_whole(one) for one in selection.used)
    evidence = HardwareEvidence(
        job, result, selection, runs, figures.estimates.get(headline or ""), environment,
        estimates=figures.estimates, headlines=numbers, peaks=peaks,
    )  # fmt: skip
    names = {key_of(key).metric for key in figures.runs}
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell, estimates=figures.estimates, runs=figures.runs,
        metrics={name: HARDWARE_METRICS[name] for name in HARDWARE_METRICS if name in names}, headline=headline,
        sensitivity=sensitivity_of(figures.runs, (headline,) if headline else ()),
        canary=canary_medians(selection.used), quantiles=QUANTILES, used=tuple(used), excluded=selection.excluded,
        verdict=judge_hardware(evidence),
    )  # fmt: skip


def _figures(series: Series, used: Sequence[int], *, is_stopped: bool) -> EstimateSet:
    """Return every metric by its best operation, and each operation where there are several."""
    found = EstimateSet()
    for name, operations in series.items():
        unit = HARDWARE_METRICS[name].unit
        of_used = {key: {index: runs[index] for index in used if index in runs} for key, runs in operations.items()}
        known = {key: runs for key, runs in of_used.items() if runs}
        if not known:
            continue
        shown = {"": known[best_operation(known)]} | known
        for operation, runs in shown.items():
            found |= single_estimates(
                name, list(runs.values()), "runs", full=not operation, operation=operation, unit=unit,
                is_stopped=is_stopped,
            )  # fmt: skip
    return found


def _shares(figures: EstimateSet, peaks: dict[str, Peak]) -> EstimateSet:
    found = EstimateSet()
    for key, peak in peaks.items():
        shares = [value / peak.value for value in figures.runs[key]]
        found |= single_estimates(f"{key_of(key).metric}{OF_PEAK}", shares, "runs", full=False, unit="1")
    return found


class HardwareSummary(Summarise):
    """Results of hardware tests to numbers."""

    figures = ("distribution",)

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        return summarise_hardware(job, result, samples, environment=environment)

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job
        names = dict.fromkeys(key_of(key).metric for key in (summary.headline or "", *summary.runs) if key)
        return tuple(name for name in names if not name.endswith(OF_PEAK))

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        import polars as pl

        del job
        operations = series_of_samples(samples).get(metric)
        if not operations:
            return {}
        operation = best_operation(operations)
        rows = samples.filter(pl.col("name") == (f"{metric}/{operation}" if operation else metric))
        good = {one.index for one in result.repetitions if one.state == "ok"}
        parts = rows.partition_by("repetition", maintain_order=True)
        return {index: one["value"].to_numpy() for one in parts if (index := int(one["repetition"][0])) in good}


PART = HardwareSummary()
