"""Estimate a load's metrics from one number per run; requests of different runs are never pooled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from prony.analyse.estimate_set import EstimateSet
from prony.analyse.estimates import across_runs, plural, single_estimates, singular
from prony.analyse.load.latency import Values, by_operation, latencies
from prony.analyse.load.rates import goodput_counts, operation_rate, rates
from prony.analyse.load.tokens import token_latencies
from prony.analyse.runs import PERCENTILES
from prony.instruments.columns import Requests
from prony.model.estimate import Estimate, Missing
from prony.model.metric import METRICS, STATISTICS, key_text
from prony.stats.intervals import rate_interval
from prony.stats.quantiles import interval_ranks, least_count, lower_rank, median_ranks, quantile

# What is said of a metric with a number for each request, where not everything is.
_WANTED: dict[str, tuple[str, ...]] = {
    "sent_late_ms": ("p50", "p99", "max"),
    "quality": ("mean", "min"),
    "tokens_per_s_per_user": ("p50", "mean", "min"),
    "e2e_with_failures_ms": ("p50", "p90", "p95", "p99", "p99.9"),
}
_MISSED = ("e2e_ms", "ttft_ms", "itl_ms", "tpot_ms")


def load_estimates(runs: Sequence[Requests], slo: Mapping[str, float]) -> tuple[EstimateSet, list[Missing]]:
    """Return every estimate of a load, and the percentiles that its requests are too few for."""
    if not runs:
        return EstimateSet(), []
    sampled = [latencies(run) | token_latencies(run) for run in runs]
    found = EstimateSet()
    missing: list[Missing] = []
    for metric in dict.fromkeys(metric for one in sampled for metric in one):
        values = [one[metric] for one in sampled if metric in one]
        found |= of_requests(metric, values)
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


def of_requests(metric: str, runs: Sequence[Values], operation: str = "") -> EstimateSet:
    """Return the statistics of a metric that all runs have enough numbers for."""
    known = [values for values in runs if values.count]
    unit = METRICS[metric].unit
    found = EstimateSet()
    for name in _WANTED.get(metric, STATISTICS):
        numbers = [value for values in known if (value := values.statistic(name)) is not None]
        if not known or len(numbers) < len(known) or not all(map(math.isfinite, numbers)):
            continue
        if len(known) == 1:
            estimate = _within(known[0], name, numbers[0], unit)
        else:
            estimate = across_runs(np.array(numbers), unit, f"runs' {plural(name)}")
        found |= EstimateSet.one(key_text(metric, name, operation), estimate, numbers)
    return found


def error_estimate(runs: Iterable[Requests], operation: str = "") -> EstimateSet:
    """Return the share of the window's requests that failed, with Wilson's interval: a count of all runs together."""
    total = failed = taken = 0
    for run in runs:
        rows = run.began_in_window
        if operation:
            rows = (
                rows & run.of_operation(run.operations.index(operation))
                if operation in run.operations
                else rows & False
            )
        total += int(np.count_nonzero(rows))
        failed += int(np.count_nonzero(rows & ~run.successes))
        taken += 1
    interval = rate_interval(failed, total)
    if interval is None:
        return EstimateSet()
    key = key_text("error_rate", "mean", operation)
    estimate = Estimate(
        value=failed / total, unit="1", low=interval[0], high=interval[1], confidence=0.95, count=total,
        level="sample", method=f"{failed} of {total} requests of {taken} run{'' if taken == 1 else 's'}; Wilson",
    )  # fmt: skip
    return EstimateSet({key: estimate}, counts={key: (failed, total)})


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


def _by_operation(runs: Sequence[Requests]) -> EstimateSet:
    """Return end to end and throughput by operation, where there are several."""
    names = sorted({name for run in runs for name in run.operations})
    if len(names) < 2:
        return EstimateSet()
    found = EstimateSet()
    for name in names:
        mine = [(run, run.operations.index(name)) for run in runs if name in run.operations]
        found |= of_requests("e2e_ms", [by_operation(run, code) for run, code in mine], name)
        through = [rate for run, code in mine if (rate := operation_rate(run, code)) is not None]
        found |= single_estimates("throughput_per_s", through, "runs", full=False, operation=name)
        found |= error_estimate(runs, name)
    return found


def _within(values: Values, name: str, value: float, unit: str) -> Estimate:
    """Return a statistic of one run alone. Requests follow each other, so its interval is narrower than it should be:
    there is no second run that could say by how much."""
    low, high, confidence, how = None, None, None, "no interval"
    if name in PERCENTILES:
        q = PERCENTILES[name]
        ranks = median_ranks(values.count) if q == 0.5 else interval_ranks(values.count, q)
        if ranks is not None:
            low, high = (float(values.in_order[rank - 1]) for rank in (ranks.low, ranks.high))
            confidence, how = ranks.confidence, "order statistics within one run as if requests were independent"
        if high is not None and not math.isfinite(high):
            low, high, confidence, how = None, None, None, "no interval"
    return Estimate(
        value=value, unit=unit, low=low, high=high, confidence=confidence, count=values.count, level="sample",
        method=f"{singular(name)} of {values.count} samples; {how}",
    )  # fmt: skip


def _missing(metric: str, runs: Sequence[Values]) -> list[Missing]:
    known = [values for values in runs if values.count]
    if not known:
        return []
    fewest = min(values.count for values in known)
    return [
        Missing(metric=key_text(metric, name), at_least=_at_least(known, q), count=fewest, needed=least_count(q))
        for name, q in PERCENTILES.items()
        if name != "p50" and fewest < least_count(q)
    ]


def _at_least(runs: Sequence[Values], q: float) -> float | None:
    ranks = [lower_rank(values.count, q) for values in runs]
    bounds = [float(values.in_order[rank - 1]) for values, rank in zip(runs, ranks, strict=True) if rank]
    return quantile(np.sort(bounds), 0.5) if len(bounds) == len(runs) else None
