"""Check each SLO limit at one load level by observed values, never interpolated.

A percentile is the nearest rank of each run, with failed requests as ones that never ended; the ends over runs decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from prony.analyse.estimates import across_runs
from prony.analyse.load.latency import Values, latencies
from prony.analyse.load.rates import rates
from prony.analyse.load.tokens import token_latencies
from prony.analyse.runs import PERCENTILES
from prony.analyse.sweep.curves import Group
from prony.analyse.wording import plain
from prony.instruments.columns import Requests
from prony.model.estimate import Estimate
from prony.model.metric import METRICS, key_of
from prony.model.sweep import LimitCheck, LimitState
from prony.stats.quantiles import interval_ranks, least_count, nearest_rank


def checks(group: Group, slo: Mapping[str, float]) -> tuple[LimitCheck, ...]:
    """Judge every limit of a run; those of each request are what goodput counts."""
    return tuple(_check(group, key, limit) for key, limit in slo.items() if "." in key)


def goodput(group: Group, slo: Mapping[str, float]) -> Estimate | None:
    """Return what met every limit of a request, a second; None where there is no such limit or nothing to count."""
    runs = [run for job in group.counting_jobs for run in job.requests]
    found = [rate["goodput_per_s"] for run in runs if "goodput_per_s" in (rate := rates(run, slo))]
    return across_runs(np.array(found), "1/s", "runs") if found else group.estimate("goodput_per_s.p50")


def _check(group: Group, key: str, limit: float) -> LimitCheck:
    if not group.counting_jobs:
        text = f"{key}: {group.jobs[0].exclusion}"
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, text=text)
    parts = key_of(key)
    better_high = METRICS[parts.metric].better == "higher"
    runs = [run for job in group.counting_jobs for run in job.requests]
    observed = [values for run in runs if (values := _values(run, parts.metric)) is not None]
    if parts.statistic in PERCENTILES and observed and not parts.operation:
        estimate, why = _estimate_by_rank(observed, parts.metric, PERCENTILES[parts.statistic])
    else:
        estimate, why = group.estimate(key), "nothing was measured of it"
    if estimate is None:
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, text=f"{key}: {why}")
    return _judge_limit(key, limit, estimate, better_high=better_high)


def _judge_limit(key: str, limit: float, estimate: Estimate, *, better_high: bool) -> LimitCheck:
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        text = f"{key} is {plain(estimate.value)} without an interval: one run cannot say how far the next would lie"
        return LimitCheck(key=key, limit=limit, state=LimitState.CANNOT_TELL, estimate=estimate, text=text)
    inside = [end >= limit if better_high else end <= limit for end in (low, high)]
    state = LimitState.HELD if all(inside) else LimitState.CANNOT_TELL if any(inside) else LimitState.VIOLATED
    word = "at least" if better_high else "at most"
    ends = f"[{plain(low)}, {'never ended' if math.isinf(high) else plain(high)}]"
    text = f"{key} is {plain(estimate.value)} {ends} against {word} {limit:g}"
    return LimitCheck(key=key, limit=limit, state=state, estimate=estimate, text=text)


def _values(run: Requests, metric: str) -> Values | None:
    """Return what was measured of each request, with those that failed as ones that never ended."""
    found = (latencies(run) | token_latencies(run)).get(metric)
    if found is None or METRICS[metric].better != "lower" or metric.endswith("with_failures_ms"):
        return found
    lost = int(np.count_nonzero(run.began_in_window & ~run.successes))
    return found.with_lost(lost) if lost and metric != "itl_ms" else found


def _estimate_by_rank(runs: Sequence[Values], metric: str, q: float) -> tuple[Estimate | None, str]:
    fewest, needed = min(values.count for values in runs), least_count(q)
    if fewest < needed:
        return None, f"a run has {fewest} requests, and this percentile needs {needed}"
    numbers = np.sort([nearest_rank(values.in_order, q) for values in runs])
    if len(runs) > 1:
        return _over_runs(numbers, METRICS[metric].unit), ""
    ranks = interval_ranks(fewest, q)
    if ranks is None:
        return None, "one run with too few requests"
    low, high = (float(runs[0].in_order[rank - 1]) for rank in (ranks.low, ranks.high))
    within = Estimate(
        value=float(numbers[0]), unit=METRICS[metric].unit, low=low, high=high, count=fewest, level="sample",
        confidence=ranks.confidence, method="nearest rank within one run; order statistics",
    )  # fmt: skip
    return within, ""


def _over_runs(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], unit: str) -> Estimate:
    found = across_runs(numbers, unit, "runs' nearest ranks")
    # The middle of two runs may be infinite where one of them is; the ends are observed values either way.
    return found if not math.isnan(found.value) else found.model_copy(update={"value": math.inf})
