"""Compute a run's rates over its measurement window: throughput, goodput and requests in flight.

Goodput counts the requests that met every per-request limit of the SLO.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from prony.analyse.load.latency import token_counts
from prony.instruments.columns import UNKNOWN, Requests
from prony.instruments.within_limit import within
from prony.stats.quantiles import Array


def request_limits(slo: Mapping[str, float]) -> dict[str, float]:
    """Return the limits that are of each request; those with a statistic are of a run."""
    return {key: limit for key, limit in slo.items() if "." not in key}


def meets(requests: Requests, slo: Mapping[str, float]) -> Array:
    """Mark the requests that succeeded and stayed within every limit."""
    good: Array = requests.successes.copy()
    for metric, limit in request_limits(slo).items():
        good &= within(requests, metric, limit)
    return good


_NS_PER_S = 1e9


def rates(requests: Requests, slo: Mapping[str, float]) -> dict[str, float]:
    """Return by metric; nothing of a window that has no length."""
    if requests.window.length_ns <= 0:
        return {}
    seconds, ended = requests.window.length_ns / _NS_PER_S, requests.throughput_rows
    found = {
        "throughput_per_s": np.count_nonzero(ended) / seconds,
        "request_rate_per_s": np.count_nonzero(requests.began_in_window) / seconds,
        "in_flight": _in_flight(requests),
    }
    if not np.any((size := requests.numbers["bytes_in"][ended]) == UNKNOWN):
        found["bytes_per_s"] = int(size.sum()) / seconds
    items = requests.numbers["items"][ended]
    if np.any(items != 1):
        found["items_per_s"] = int(items.sum()) / seconds
    tokens = token_counts(requests)
    found |= {f"{name}_per_s": count / seconds for name, count in tokens.items()}
    if len(tokens) == 2:
        found["total_tokens_per_s"] = sum(tokens.values()) / seconds
    if (cached := cached_share(requests)) is not None:
        found["cached_share"] = cached
    if request_limits(slo):
        good = meets(requests, slo)
        found["goodput_per_s"] = np.count_nonzero(good & ended) / seconds
        met, begun = goodput_counts(requests, slo)
        if begun:
            found["goodput_share"] = met / begun
    return found


def cached_share(requests: Requests) -> float | None:
    """Return which share of the prompts' tokens the server says it had in its cache; None where it does not say."""
    rows = requests.latency_rows
    asked, cached = (requests.numbers[name][rows] for name in ("input_tokens", "cached_tokens"))
    told = (asked > 0) & (cached != UNKNOWN)
    return float(cached[told].sum() / asked[told].sum()) if told.any() else None


def goodput_counts(requests: Requests, slo: Mapping[str, float]) -> tuple[int, int]:
    """Return how many of the window's requests met every limit, and how many began in it."""
    good = meets(requests, slo) & requests.began_in_window
    return int(np.count_nonzero(good)), int(np.count_nonzero(requests.began_in_window))


def operation_rate(requests: Requests, code: int) -> float | None:
    """Return the throughput of one operation alone."""
    if requests.window.length_ns <= 0:
        return None
    return np.count_nonzero(requests.throughput_rows & requests.of_operation(code)) / (
        requests.window.length_ns / _NS_PER_S
    )


def _in_flight(requests: Requests) -> float:
    """Return how many requests were on their way at a time, failed ones too, as a mean over the window."""
    sent, ends, window = requests.numbers["sent_ns"], requests.numbers["end_ns"], requests.window
    shared = np.minimum(ends, window.end_ns) - np.maximum(sent, window.begin_ns)
    return int(shared[(sent > 0) & (shared > 0)].sum()) / window.length_ns
