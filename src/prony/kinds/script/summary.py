"""Summarise a job that executes a script, from its result and the numbers the script reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse import rules as machine
from prony.analyse import rules as repetition
from prony.analyse.canaries import canary_medians, check_canary
from prony.analyse.estimates import EstimateSet, sensitivity_of, single_estimates
from prony.analyse.machine_use import own_cores, use_estimates
from prony.analyse.per_run_metrics import energy_j
from prony.analyse.pictures import Track
from prony.analyse.runs import MeasuredRun
from prony.analyse.selection import Selection, check_result_of_job, select
from prony.analyse.verdict import Rule, verdict_of
from prony.kinds.script import rules
from prony.kinds.script.rules import ScriptEvidence
from prony.kinds.script.samples import ScriptSeries, series_of
from prony.kinds.script.schema import ScriptWorkload
from prony.model.device import Environment
from prony.model.estimate import QUANTILES, Outlier, Summary, Verdict
from prony.model.job import Job
from prony.model.metric import METRICS, Better, Metric, key_of
from prony.model.result import Result
from prony.ports.workload import Summarise
from prony.stats.outliers import label_outliers
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

_KIB_PER_MIB = 1024
_SHARED: tuple[Rule, ...] = (
    repetition.nothing_measured,
    machine.check_contamination,
    machine.check_watch,
    machine.check_counters,
    check_canary,
    repetition.failed_repetitions,
    repetition.partial_result,
    repetition.few_runs,
    repetition.wide_interval,
    machine.check_throttling,
    repetition.until_reached,
    repetition.blind,
)
_OWN = (
    rules.check_refused_values,
    rules.untold,
    rules.left_behind,
    rules.check_start_cost,
    rules.not_honoured,
    rules.check_machine_independence,
)


def summarise_script(
    job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
) -> Summary:
    """Summarise one script: one number a run of everything it told, an interval over runs, and the verdict."""
    check_result_of_job(job, result)
    measured = [one for one in result.repetitions if one.kind == "measure"]
    good = {one.index for one in measured if one.state == "ok"}
    selection = select(measured, job.measure, measured=good, loaded=())
    series = tuple(series_of(samples, job.work(ScriptWorkload))) if "name" in samples.columns else ()
    metrics = {one.metric: _metric(one, job.work(ScriptWorkload)) for one in series}
    used = [one.index for one in selection.used]
    is_stopped = job.measure.until is not None
    figures = _figures(series, metrics, used, is_stopped=is_stopped) | _beside(selection, {one.name for one in series})
    headline = next(iter(figures.runs), None)
    numbers = figures.runs.get(headline, ()) if headline else ()
    runs = tuple(MeasuredRun.of_whole(one) for one in selection.used)
    evidence = ScriptEvidence(
        job, result, selection, runs, figures.estimates.get(headline or ""), environment,
        headlines=numbers, series=series, metrics=tuple(metrics.values()),
    )  # fmt: skip
    outlying = _outliers(headline or "", numbers, used)
    warmups = {one.index: "warm-up" for one in result.repetitions if one.kind == "warmup" and one.state == "ok"}
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell,
        estimates=figures.estimates, runs=figures.runs, metrics=metrics, headline=headline,
        sensitivity=sensitivity_of(figures.runs, (headline,) if headline else ()),
        outliers=outlying, outlier_count=len(outlying),
        canary=canary_medians(selection.used), quantiles=QUANTILES,
        used=tuple(used), excluded=dict(sorted({**selection.excluded, **warmups}.items())),
        verdict=_judge_script(evidence),
    )  # fmt: skip


def _metric(series: ScriptSeries, workload: ScriptWorkload) -> Metric:
    """Return what is known of a number: by the recipe, by what was told with it, or else by the glossary."""
    declared = next((one for one in workload.all_metrics if one.name == series.name), None)
    known = METRICS.get(series.metric)
    better: Better = (
        declared.better if declared is not None and declared.better else known.better if known else "neither"
    )
    unit = series.unit if series.unit is not None else known.unit if known else ""
    meaning = known.meaning if known is not None else f"{series.name}, reported by the script"
    return Metric(name=series.metric, unit=unit, better=better, meaning=meaning)


def _figures(
    series: Sequence[ScriptSeries], metrics: dict[str, Metric], used: Sequence[int], *, is_stopped: bool
) -> EstimateSet:
    found = EstimateSet()
    for one in series:
        values = [one.runs[index] for index in used if index in one.runs]
        unit = metrics[one.metric].unit
        found |= single_estimates(
            one.metric, values, "runs", full=True, operation=one.operation, unit=unit, is_stopped=is_stopped
        )
    return found


def _beside(selection: Selection, told: set[str]) -> EstimateSet:
    """Return what was measured beside the script, where the script does not tell the same name."""
    peaks = [one.phases["measure"].rss_peak_kib for one in selection.used if "measure" in one.phases]
    known = [kib / _KIB_PER_MIB for kib in peaks if kib]
    joules = [joules for one in selection.used if (joules := energy_j(one)) is not None]
    found = EstimateSet()
    for name, values in (("rss_peak_mib", known), ("energy_j", joules)):
        if name not in told:
            found |= single_estimates(name, values, "runs", full=False)
    return found | use_estimates(selection.used, own_cores, without=told)


def _outliers(headline: str, numbers: Sequence[float], used: Sequence[int]) -> tuple[Outlier, ...]:
    if len(numbers) < 2 or len(numbers) != len(used):
        return ()
    marks = label_outliers(np.array(numbers, dtype=np.float64))
    return tuple(
        Outlier(
            repetition=index, index=None, metric=headline, value=value, label="severe" if mark == 2 else "suspicious"
        )
        for index, value, mark in zip(used, numbers, marks, strict=True)
        if mark
    )


def _judge_script(evidence: ScriptEvidence) -> Verdict:
    told = [reason for rule in _OWN for reason in rule(evidence)]
    return verdict_of([*told, *(reason for rule in _SHARED for reason in rule(evidence))])


def _read_script_samples(job: Job, samples: pl.DataFrame, metric: str | None) -> dict[int, pl.DataFrame]:
    """Return by repetition what a script told under one name; None is what stands for it."""
    import polars as pl

    series = series_of(samples, job.work(ScriptWorkload)) if "name" in samples.columns else []
    wanted = metric or (series[0].metric if series else "")
    names = {one.name for one in series if one.metric == wanted}
    rows = samples.filter(pl.col("name").is_in(names)).sort("repetition", "index") if names else samples.clear()
    return {int(part["repetition"][0]): part for part in rows.partition_by("repetition", maintain_order=True)}


class ScriptSummary(Summarise):
    """Results of scripts to numbers."""

    figures = ("distribution", "timeline", "lines")

    def summarise(
        self, job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
    ) -> Summary:
        return summarise_script(job, result, samples, environment=environment)

    def drawn_metrics(self, job: Job, summary: Summary) -> tuple[str, ...]:
        del job
        return tuple(dict.fromkeys(name for key in summary.runs if (name := key_of(key).metric) in summary.metrics))

    def sample_values(self, job: Job, result: Result, samples: pl.DataFrame, metric: str) -> dict[int, Array]:
        told = _read_script_samples(job, samples, metric)
        good = {one.index for one in result.repetitions if one.state == "ok" and one.kind == "measure"}
        return {index: rows["value"].to_numpy() for index, rows in told.items() if index in good}

    def tracks(self, job: Job, result: Result, samples: pl.DataFrame) -> list[Track]:
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


PART = ScriptSummary()
