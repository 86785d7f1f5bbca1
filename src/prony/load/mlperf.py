"""MLPerf scenarios: their rules, and whether a run's query latencies make it valid.

A query is one request, or `samples_per_query` of them that are sent together: its latency is that of the last to end,
counted from when the query was due (server) or sent (the streams). The one query of offline is all samples: as many as
may be in flight are sent at once, and each of the others when one is answered. Percentiles are observed values,
`sorted[floor(n * p)]`, never something between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prony.ports.driver import Stamps
from prony.ports.metric_titles import metric_title
from prony.stats.early_stopping import over_allowed, passes, queries_needed
from prony.stats.quantiles import Array

if TYPE_CHECKING:  # a client process reads schedules, and needs none of the nouns
    from prony.model.load import Mlperf

FAILED = -1  # the latency of a query of which any request failed
_ENDLESS = np.iinfo(np.int64).max
_SUBMISSION_NS = 600 * 10**9
_OFFLINE_SAMPLES = 24_576
_OFFLINE_IN_FLIGHT = 1024  # a connection each: all at once would be more than a process may open
_OFFLINE_SLACK = 1.1  # more samples than are expected to fill the least time
_PERCENTILES = {"single-stream": 0.9, "multi-stream": 0.99, "server": 0.99, "offline": 0.99}


@dataclass(frozen=True)
class MlperfRules:
    """What a scenario asks for. A run goes on until both the least time and the least queries are reached."""

    scenario: str
    samples_per_query: int
    min_duration_ns: int
    min_queries: int
    percentile: float
    in_flight: int = 1  # queries, or of offline the samples of its one query

    @property
    def is_closed(self) -> bool:
        """Is the next query sent when the last one is answered?"""
        return self.scenario in ("single-stream", "multi-stream")


@dataclass(frozen=True)
class MlperfLimit:
    """What a server must hold at the percentile: a value in ms for each query, infinite for one that failed."""

    metric: str
    limit_ms: float
    values_ms: Array


@dataclass(frozen=True)
class MlperfOutcome:
    """`result` is what MLPerf would quote, in `unit`: an early-stopping estimate in ns, or samples a second.

    `reasons` say why a run is invalid, `notes` why even a valid one could not be submitted. `discarded` is how many of
    the slowest queries the estimate leaves out; `p99_ns` is the second estimate of single-stream. None: no such value.
    """

    valid: bool
    result: float | None
    unit: str
    queries: int
    failed: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    percentile: float = 0.99
    percentile_ns: int | None = None
    estimate_ns: int | None = None
    discarded: int | None = None
    p99_ns: int | None = None


def rules(mlperf: Mlperf) -> MlperfRules:
    """Return the rules of a scenario, with what the recipe says otherwise."""
    scenario, percentile = mlperf.scenario, mlperf.percentile or _PERCENTILES[mlperf.scenario]
    if scenario == "offline":
        expected = int(_OFFLINE_SLACK * (mlperf.rate or 0) * mlperf.min_duration / 1e9)
        samples = mlperf.samples_per_query or max(mlperf.min_queries or _OFFLINE_SAMPLES, expected)
        in_flight = min(samples, mlperf.most_in_flight or _OFFLINE_IN_FLIGHT)
        return MlperfRules(scenario, samples, mlperf.min_duration, 1, percentile, in_flight)
    # Fewer than these could pass by no latencies whatever: an estimate needs one query to leave out, a limit none.
    least = queries_needed(0 if scenario == "server" else 1, percentile)
    samples = mlperf.samples_per_query or (8 if scenario == "multi-stream" else 1)
    return MlperfRules(scenario, samples, mlperf.min_duration, mlperf.min_queries or least, percentile)


def query_latencies(begin_ns: Stamps, end_ns: Stamps, good: Array, samples_per_query: int) -> Stamps:
    """Return the latency of each query from its requests in the order of the schedule: first begin to last end."""
    if not begin_ns.size:
        return np.empty(0, np.int64)
    first = np.arange(0, begin_ns.size, samples_per_query)
    latencies = np.maximum.reduceat(end_ns, first) - np.minimum.reduceat(begin_ns, first)
    found: Stamps = np.where(np.logical_and.reduceat(good.astype(bool), first), latencies, FAILED)
    return found


def at_percentile(values: Array, percentile: float) -> float:
    """Return the observed value at a percentile as LoadGen takes it."""
    return float(np.sort(values)[min(int(values.size * percentile), values.size - 1)])


def judge_scenario(
    mlperf: Mlperf, latencies_ns: Stamps, *, lasted_ns: int, limits: Sequence[MlperfLimit] = ()
) -> MlperfOutcome:
    """Judge the queries of a run, FAILED ones among them (of offline: the samples of its one query).

    `lasted_ns` is from the start until the last query was due (server) or until the last one ended (the others).
    """
    rule = rules(mlperf)
    count, failed = int(latencies_ns.size), int(np.count_nonzero(latencies_ns == FAILED))
    ordered = np.sort(np.where(latencies_ns == FAILED, _ENDLESS, latencies_ns))
    estimate, discarded = _estimate(ordered, rule.percentile) if rule.is_closed else (None, None)
    reasons = [*_shortfalls(rule, count, failed, lasted_ns)]
    if rule.scenario == "server":
        reasons += _over(rule, limits)
        result, unit = _per_s(count - 1, lasted_ns), "1/s"
    elif rule.scenario == "offline":
        result, unit = _per_s(count - failed, lasted_ns), "1/s"
    else:
        result, unit = (None if estimate is None else float(estimate)), "ns"
    return MlperfOutcome(
        valid=not reasons,
        result=result,
        unit=unit,
        queries=1 if rule.scenario == "offline" else count,
        failed=failed,
        reasons=tuple(reasons),
        notes=tuple(_departures(mlperf, rule)),
        percentile=rule.percentile,
        percentile_ns=_finite(ordered[min(int(count * rule.percentile), count - 1)]) if count else None,
        estimate_ns=estimate,
        discarded=discarded,
        p99_ns=_estimate(ordered, 0.99)[0] if rule.scenario == "single-stream" else None,
    )


def _estimate(ordered: Stamps, percentile: float) -> tuple[int | None, int | None]:
    """Return the early-stopping estimate, and how many slower queries it leaves out."""
    over = over_allowed(ordered.size, percentile)
    if not over:
        return None, None
    return _finite(ordered[ordered.size - over]), over - 1


def _finite(latency_ns: int) -> int | None:
    return None if latency_ns == _ENDLESS else int(latency_ns)


def _per_s(count: int, lasted_ns: int) -> float | None:
    return count * 1e9 / lasted_ns if lasted_ns > 0 else None


def _shortfalls(rule: MlperfRules, count: int, failed: int, lasted_ns: int) -> Iterator[str]:
    """Give every rule that is broken whatever the latencies were."""
    noun, least = "queries", rule.min_queries
    if rule.scenario == "offline":
        noun, least = "samples", rule.samples_per_query
    if failed:
        yield f"{failed:,} of {count:,} {noun} failed"
    if lasted_ns < rule.min_duration_ns:
        yield f"it lasted {lasted_ns / 1e9:.4g} s, but at least {rule.min_duration_ns / 1e9:g} s are needed"
    if count < least:
        yield f"it had {count:,} {noun}, but at least {least:,} are needed"
    elif rule.is_closed and count < (needed := queries_needed(1, rule.percentile)):
        yield f"an early-stopping estimate of p{rule.percentile * 100:g} needs {needed:,} queries, not {count:,}"


def _over(rule: MlperfRules, limits: Sequence[MlperfLimit]) -> Iterator[str]:
    """Give every limit that a server did not hold, and every one that it has not been shown to hold."""
    if not limits:
        yield f"the server scenario needs a limit at p{rule.percentile * 100:g}, but none is set"
    for limit in limits:
        name = metric_title(limit.metric)
        values = np.where(np.isnan(limit.values_ms), np.inf, limit.values_ms)
        if not values.size:
            yield f"{name} was not measured"
            continue
        at = at_percentile(values, rule.percentile)
        over = int(np.count_nonzero(values > limit.limit_ms))
        if at > limit.limit_ms:
            yield f"{name} at p{rule.percentile * 100:g} is {at:.4g} ms, over the limit of {limit.limit_ms:g}"
        elif not passes(values.size, over, rule.percentile):
            more = queries_needed(over, rule.percentile) - values.size
            yield f"{name}: with {over:,} queries over the limit, {more:,} more within it would be needed"


def _departures(mlperf: Mlperf, rule: MlperfRules) -> Iterator[str]:
    """Give what the recipe asks for otherwise than a submission would."""
    if rule.min_duration_ns < _SUBMISSION_NS:
        yield f"not a valid submission: the minimum duration is {rule.min_duration_ns / 1e9:g} s, not 600 s"
    if rule.scenario == "offline" and rule.samples_per_query < _OFFLINE_SAMPLES:
        few = f"{rule.samples_per_query:,} samples, not {_OFFLINE_SAMPLES:,} (or a whole data set)"
        yield f"not a valid submission: {few}"
    if rule.scenario == "offline" and rule.in_flight < rule.samples_per_query:
        yield f"at most {rule.in_flight:,} of the samples were in flight at once"
    own = 8 if rule.scenario == "multi-stream" else 1
    if rule.scenario != "offline" and rule.samples_per_query != own:
        yield f"not a valid submission: {rule.samples_per_query} samples per query, not {own}"
    if rule.scenario == "multi-stream" and rule.min_queries < (least := queries_needed(1, 0.99)):
        yield f"not a valid submission: the minimum is {rule.min_queries} queries, not {least}"
    if mlperf.percentile not in (None, _PERCENTILES[rule.scenario]):
        yield f"judged at p{rule.percentile * 100:g}: the scenario's own is p{_PERCENTILES[rule.scenario] * 100:g}"
