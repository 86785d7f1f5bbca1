"""Aggregate a load's requests by second: sent, ended, failed and latencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Seconds:
    """`at_s` is where each second begins, from `origin_ns` on. Latencies in ms are those of successes by when they
    ended, NaN in a second in which none did."""

    origin_ns: int
    at_s: Array
    begun: Array
    succeeded: Array
    failed: Array
    in_flight: Array
    p50_ms: Array
    p99_ms: Array
    width_ns: int = NS_PER_S
    last_s: float = 1.0  # how much of the last one there is


def seconds(begins: Array, ends: Array, succeeded: Array, *, width_ns: int = NS_PER_S) -> Seconds:
    """Cut a run into seconds; `succeeded` marks the requests that did. A request without an end (0) ends with the run.

    `in_flight` is the mean number of requests on their way.
    """
    if not begins.size:
        nothing: Array = np.zeros(0)
        return Seconds(0, nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    origin = int(begins.min())
    last = int(max(ends.max(), begins.max()))
    finished = np.where(ends > 0, ends, last)
    count = (last - origin) // width_ns + 1
    at = (finished - origin) // width_ns
    return Seconds(
        origin_ns=origin,
        at_s=np.arange(count) * (width_ns / NS_PER_S),
        begun=np.bincount((begins - origin) // width_ns, minlength=count),
        succeeded=np.bincount(at[succeeded], minlength=count),
        failed=np.bincount(at[~succeeded], minlength=count),
        in_flight=in_flight(begins - origin, finished - origin, width_ns, int(count)),
        p50_ms=quantiles(at[succeeded], (finished - begins)[succeeded], 0.5, int(count)) / 1e6,
        p99_ms=quantiles(at[succeeded], (finished - begins)[succeeded], 0.99, int(count)) / 1e6,
        width_ns=width_ns,
        last_s=max((last - origin) % width_ns, 1) / NS_PER_S,
    )


def quantiles(groups: Array, values: Array, q: float, count: int) -> Array:
    """Return one quantile (the nearest rank from above) of the values of each group 0..count-1; NaN of an empty one."""
    found: Array = np.full(count, np.nan)
    if not values.size:
        return found
    ordered = _by_group(groups, values)
    sizes = np.bincount(groups, minlength=count)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    some = sizes > 0
    ranks = np.minimum(np.ceil(np.round(sizes[some] * q, 9)).astype(np.int64), sizes[some])
    found[some] = ordered[first[some] + np.maximum(ranks, 1) - 1]
    return found


def _by_group(groups: Array, values: Array) -> Array:
    """Return the values, group after group, each group in ascending order."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    if (int(groups.max()) + 1) * span < 2**62:  # both fit into one number, which sorts ten times as fast
        together: Array = np.sort(groups.astype(np.int64) * span + (values - low)) % span + low
        return together
    apart: Array = values[np.lexsort((values, groups))]
    return apart


def in_flight(begins: Array, ends: Array, width_ns: int, count: int) -> Array:
    """Return how many stretches cover each block of time, as a mean over the block; times count from the first one.

    Exact: what covers the time up to t is the sum of t - begin over those begun, less the same of those ended.
    """
    edges = np.arange(count + 1, dtype=np.int64) * width_ns
    covered = _count_reached(np.sort(begins), edges) - _count_reached(np.sort(ends), edges)
    mean: Array = np.diff(covered) / width_ns
    return mean


def _count_reached(ordered: Array, edges: Array) -> Array:
    before = np.searchsorted(ordered, edges)
    sums = np.concatenate(([0.0], np.cumsum(ordered, dtype=np.float64)))
    reached: Array = edges * before - sums[before]
    return reached
