"""Decide which requests of a run are within a limit. The only module that decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from prony.instruments.columns import Requests
from prony.stats.quantiles import Array

NS_PER_MS = 1e6
_Reading = Callable[[Requests], Array]


class Limit(Protocol):
    """So large a share of requests is to be within a limit."""

    @property
    def metric(self) -> str: ...
    @property
    def share(self) -> float: ...
    @property
    def limit(self) -> float: ...


def within(requests: Requests, metric: str, limit: float) -> Array:
    """Mark the requests that succeeded and stayed within a limit; what has no such number is not within it."""
    # Comparing with NaN is false.
    good: Array = requests.successes & (JUDGED[metric](requests) <= limit)
    return good


def counts_within(requests: Requests, limits: Iterable[Limit]) -> list[tuple[int, int, float]]:
    """Return of each limit the requests within it, all of them, and the share that is wanted."""
    return [
        (int(np.count_nonzero(within(requests, one.metric, one.limit))), requests.count, one.share) for one in limits
    ]


def tpot_ns(requests: Requests) -> Array:
    """Return (end to end less ttft) / (tokens - 1) of each request; NaN where its tokens are fewer than two or unknown.

    Tokens are those that somebody counted: pieces are none.
    """
    tokens = requests.numbers["output_tokens"]
    known = (tokens > 1) & (requests.pieces > 0)
    found: Array = np.full(requests.count, np.nan)
    found[known] = (requests.numbers["end_ns"] - requests.first_stamps)[known] / (tokens[known] - 1)
    return found


def _longest_gap_ns(requests: Requests) -> Array:
    """Return the longest gap of each request; NaN where it has none."""
    found: Array = np.full(requests.count, np.nan)
    owner = np.repeat(np.arange(requests.count), requests.pieces)
    same = owner[1:] == owner[:-1]
    longest = np.full(requests.count, -1, dtype=np.int64)
    np.maximum.at(longest, owner[1:][same], np.diff(requests.stamps)[same])
    found[longest >= 0] = longest[longest >= 0]
    return found


def _since_begin(name: str) -> _Reading:
    def read(requests: Requests) -> Array:
        stamps = requests.first_stamps if name == "token" else requests.numbers[name]
        known: Array = np.where(stamps > 0, (stamps - requests.numbers["begin_ns"]) / NS_PER_MS, np.nan)
        return known

    return read


def _service(requests: Requests) -> Array:
    taken: Array = (requests.numbers["end_ns"] - requests.numbers["sent_ns"]) / NS_PER_MS
    return taken


# What a limit of each request may be set on; of a gap, the longest one of the request decides.
JUDGED: dict[str, _Reading] = {
    "e2e_ms": _since_begin("end_ns"),
    "service_ms": _service,
    "ttfb_ms": _since_begin("first_ns"),
    "ttft_ms": _since_begin("token"),
    "ttft_content_ms": _since_begin("content_ns"),
    "tpot_ms": lambda requests: tpot_ns(requests) / NS_PER_MS,
    "itl_ms": lambda requests: _longest_gap_ns(requests) / NS_PER_MS,
}
