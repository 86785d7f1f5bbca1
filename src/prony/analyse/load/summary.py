"""Summarise a job that loads a service, from its result and its requests.

Metrics are estimated from one number per run; requests of different runs are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from prony.analyse.canaries import canary_medians
from prony.analyse.estimates import (
    EstimateSet,
    across_runs,
    percentile_estimate,
    plural,
    sensitivity_of,
    single_estimates,
    spread_of,
    statistic_within,
)
from prony.analyse.external_results import reported_figures
from prony.analyse.load.evidence import LoadEvidence, SearchResult, search_of
from prony.analyse.load.latency import RequestValues, by_operation, latencies, token_latencies
from prony.analyse.load.rates import goodput_counts, operation_rate, rates
from prony.analyse.load.verdict import judge_load
from prony.analyse.load.window import runs_of
from prony.analyse.machine_use import service_cores, use_estimates
from prony.analyse.outliers import outliers
from prony.analyse.percentiles import PercentileOfRuns, RunSamples
from prony.analyse.runs import PERCENTILES, MeasuredRun
from prony.analyse.selection import Selection, check_result_of_job, select
from prony.instruments.columns import Requests
from prony.model.device import Environment
from prony.model.estimate import QUANTILES, Estimate, Missing, Summary
from prony.model.job import Job
from prony.model.load import Load
from prony.model.metric import LOAD_HEADLINE, METRICS, STATISTICS, key_text
from prony.model.recipe import Measure
from prony.model.result import Repetition, Result
from prony.stats.intervals import rate_interval
from prony.stats.quantiles import least_count, lower_rank, quantile

if TYPE_CHECKING:
    import polars as pl


# What is said of a metric with a number for each request, where not everything is.
_WANTED: dict[str, tuple[str, ...]] = {
    "sent_late_ms": ("p50", "p99", "max"),
    "quality": ("mean", "min"),
    "tokens_per_s_per_user": ("p50", "mean", "min"),
    "e2e_with_failures_ms": ("p50", "p90", "p95", "p99", "p99.9"),
}
_MISSED = ("e2e_ms", "ttft_ms", "itl_ms", "tpot_ms")


def _load_estimates(runs: Sequence[Requests], slo: Mapping[str, float]) -> tuple[EstimateSet, list[Missing]]:
    """Return every estimate of a load, and the percentiles that its requests are too few for."""
    if not runs:
        return EstimateSet(), []
    sampled = [latencies(run) | token_latencies(run) for run in runs]
    found = EstimateSet()
    missing: list[Missing] = []
    for metric in dict.fromkeys(metric for one in sampled for metric in one):
        values = [one[metric] for one in sampled if metric in one]
        found |= _of_requests(metric, values)
        missing += _missing(metric, values) if metric in _MISSED else []
    told = [rates(run, slo) for run in runs]
    for metric in dict.fromkeys(metric for one in told for metric in one):
        numbers = [one[metric] for one in told if metric in one]
        # A rate that only some runs have would be one of other work.
        if len(numbers) == len(runs):
            found |= single_estimates(metric, numbers, "runs", full=metric == "throughput_per_s")
    if len(runs) == 1 and "goodput_share" in told[0]:
        found |= _share_within(runs[0], slo)
    return found | _by_operation(runs), missing


def _of_requests(metric: str, runs: Sequence[RequestValues], operation: str = "") -> EstimateSet:
    """Return the statistics of a metric that all runs have enough numbers for."""
    known = [values for values in runs if values.count]
    unit = METRICS[metric].unit
    found = EstimateSet()
    for name in _WANTED.get(metric, STATISTICS):
        numbers = [value for values in known if (value := values.statistic(name)) is not None]
        if not known or len(numbers) < len(known) or not all(map(math.isfinite, numbers)):
            continue
        refusal = ""
        if name in PERCENTILES:
            samples = [RunSamples(values.numbers, values.in_order) for values in known]
            estimate, refusal = percentile_estimate(PercentileOfRuns(name, samples), unit)
        elif len(known) == 1:
            estimate = statistic_within(known[0].numbers, name, numbers[0], unit)
        else:
            estimate = across_runs(np.array(numbers), unit, f"runs' {plural(name)}")
        found |= EstimateSet.one(key_text(metric, name, operation), estimate, numbers, refusal)
    return found


def _error_estimate(runs: Iterable[Requests], operation: str = "") -> EstimateSet:
    """Return the share of the window's requests that failed, with Wilson's interval: a count of all runs together."""
    by_run = []
    for run in runs:
        rows = run.began_in_window
        if operation:
            rows = (
                rows & run.of_operation(run.operations.index(operation))
                if operation in run.operations
                else rows & False
            )
        by_run.append((int(np.count_nonzero(rows & ~run.successes)), int(np.count_nonzero(rows))))
    failed, total, taken = sum(one for one, _ in by_run), sum(one for _, one in by_run), len(by_run)
    interval = rate_interval(failed, total)
    if interval is None:
        return EstimateSet()
    key = key_text("error_rate", "mean", operation)
    estimate = Estimate(
        value=failed / total, unit="1", low=interval[0], high=interval[1], confidence=0.95, count=total,
        level="sample", method=f"{failed} of {total} requests of {taken} run{'' if taken == 1 else 's'}; Wilson",
    )  # fmt: skip
    return EstimateSet({key: estimate}, counts={key: (failed, total)}, run_counts={key: tuple(by_run)})


def _share_within(run: Requests, slo: Mapping[str, float]) -> EstimateSet:
    """Return the share that met the limits of one run alone, with Wilson's interval: no second run says how much more
    it varies between runs."""
    met, begun = goodput_counts(run, slo)
    interval = rate_interval(met, begun)
    if interval is None:
        return EstimateSet()
    estimate = Estimate(
        value=met / begun, unit="1", low=interval[0], high=interval[1], confidence=0.95, count=begun,
        level="sample", method=f"{met} of {begun} requests; Wilson, within this run",
    )  # fmt: skip
    return EstimateSet.one("goodput_share.p50", estimate, [met / begun])


def _hit_shares(runs: Sequence[Repetition]) -> EstimateSet:
    """Return what the server's own counters say of its cache, where they say it of every run."""
    told = [one.cache.hit_share for one in runs if one.cache is not None]
    shares = [share for share in told if share is not None]
    if not shares or len(shares) < len(runs):
        return EstimateSet()
    return single_estimates("cache_hit_share", shares, "runs", full=False)


def _by_operation(runs: Sequence[Requests]) -> EstimateSet:
    """Return end to end and throughput by operation, where there are several."""
    names = sorted({name for run in runs for name in run.operations})
    if len(names) < 2:
        return EstimateSet()
    found = EstimateSet()
    for name in names:
        mine = [(run, run.operations.index(name)) for run in runs if name in run.operations]
        found |= _of_requests("e2e_ms", [by_operation(run, code) for run, code in mine], name)
        through = [rate for run, code in mine if (rate := operation_rate(run, code)) is not None]
        found |= single_estimates("throughput_per_s", through, "runs", full=False, operation=name)
        found |= _error_estimate(runs, name)
    return found


def _missing(metric: str, runs: Sequence[RequestValues]) -> list[Missing]:
    known = [values for values in runs if values.count]
    if not known:
        return []
    fewest = min(values.count for values in known)
    return [
        Missing(metric=key_text(metric, name), at_least=_at_least(known, q), count=fewest, needed=least_count(q))
        for name, q in PERCENTILES.items()
        if name != "p50" and fewest < least_count(q)
    ]


def _at_least(runs: Sequence[RequestValues], q: float) -> float | None:
    ranks = [lower_rank(values.count, q) for values in runs]
    bounds = [float(values.in_order[rank - 1]) for values, rank in zip(runs, ranks, strict=True) if rank]
    return quantile(np.sort(bounds), 0.5) if len(bounds) == len(runs) else None


_METRIC = "e2e_ms"


def summarise_load(
    job: Job, result: Result, samples: pl.DataFrame, *, environment: Environment | None = None
) -> Summary:
    """Summarise one load: one number a run, an interval over runs, and the verdict on the measurement.

    The same input always gives the same summary, and the order of rows and repetitions does not matter.
    """
    return summarise_runs(job, result, runs_of(samples, job.load, result.repetitions), environment=environment)


def summarise_runs(
    job: Job, result: Result, runs: Mapping[int, Requests], *, environment: Environment | None = None
) -> Summary:
    """The same of runs that were taken out of their samples: whoever has many need not keep both."""
    check_result_of_job(job, result)
    repetitions = _with_stopped(result.repetitions, runs) if job.load.search is None else result.repetitions
    known = {repetition.index: repetition for repetition in repetitions}
    good = {index: run for index, run in runs.items() if index in known and known[index].state == "ok"}
    searched = search_of(job.load, repetitions, good)
    selection = _select_runs(job.load, repetitions, good, searched)
    used = tuple(good[repetition.index] for repetition in selection.used)
    judged = used if searched is not None else tuple(good.values())
    figures, missing = _load_estimates(used, job.load.slo)
    unanswered = () if searched is not None else _select_unanswered(repetitions, runs)
    figures |= _error_estimate((*judged, *unanswered)) | (searched.figures if searched is not None else EstimateSet())
    figures |= reported_figures(result.reported) | _hit_shares(selection.used)
    figures |= use_estimates(selection.used, service_cores)
    measured = tuple(_build_run(run) for run in used)
    listed, outlier_count = outliers(measured, _METRIC)
    evidence = LoadEvidence(
        job, result, selection, measured, figures.estimates.get(LOAD_HEADLINE), environment,
        refused=figures.refused,
        load=job.load, used=used, all_runs=judged, estimates=figures.estimates, searched=searched,
        sides={index: one.client for index, one in known.items() if one.client is not None},
    )  # fmt: skip
    return Summary(
        job_id=job.id, title=job.title, cell=job.cell,
        estimates=figures.estimates, runs=figures.runs, counts=figures.counts, run_counts=figures.run_counts,
        missing=tuple(missing), spread=spread_of(_METRIC, [run.moments for run in measured]),
        sensitivity=sensitivity_of(figures.runs),
        outliers=listed, outlier_count=outlier_count,
        steady_from={index: _build_run(run).steady_from for index, run in good.items() if run.latency_rows.any()},
        canary=canary_medians(selection.used), quantiles=QUANTILES,
        used=tuple(run.repetition for run in used), excluded=selection.excluded,
        verdict=judge_load(evidence),
    )  # fmt: skip


def _select_unanswered(repetitions: Sequence[Repetition], runs: Mapping[int, Requests]) -> tuple[Requests, ...]:
    """Return the runs that failed because not one request succeeded: they have no latency, but all their failures."""
    return tuple(
        runs[one.index]
        for one in repetitions
        if one.index in runs and one.failure is not None and one.failure.code == "all_failed"
    )


def _with_stopped(repetitions: Sequence[Repetition], runs: Mapping[int, Requests]) -> tuple[Repetition, ...]:
    """Let a run that somebody stopped count where no other one does: its rows are as good, and only fewer."""
    if any(one.state == "ok" for one in repetitions):
        return tuple(repetitions)
    return tuple(
        one.model_copy(update={"state": "ok"}) if one.state == "cancelled" and one.index in runs else one
        for one in repetitions
    )


def _select_runs(
    load: Load, repetitions: Sequence[Repetition], good: Mapping[int, Requests], searched: SearchResult | None
) -> Selection:
    """Choose the runs that count: of a search, those of the highest load that held and no other."""
    chosen = [one for one in repetitions if searched is None or searched.counts(one)]
    selection = select(
        chosen,
        Measure(repeats=len(chosen) or 1) if searched is not None else Measure(repeats=load.repeats),
        measured={index for index, run in good.items() if run.latency_rows.any()},
        loaded=(),
        restless={index for index, run in good.items() if run.window.steady is False},
    )
    if searched is None:
        return selection
    return replace(selection, excluded=selection.excluded | searched.reasons_excluded(repetitions))


def _build_run(requests: Requests) -> MeasuredRun:
    """Return the successes of the window as samples of a run, for what is said of samples of every kind."""
    timed = requests.latency_rows
    indices = requests.numbers["index"][timed]
    return MeasuredRun(
        repetition=requests.repetition,
        steady_from=None if requests.window.steady is False else int(indices[0]),
        indices=indices,
        durations_ns=(requests.numbers["end_ns"] - requests.numbers["begin_ns"])[timed],
        window_ns=requests.window.length_ns,
        taken=int(np.count_nonzero(requests.began_in_window)),
    )
