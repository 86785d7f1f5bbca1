"""One run's requests and the limits of a request in, which of them met every limit out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from prony.analyse.load.tokens import longest_gap_ns, tpot_ns
from prony.analyse.load.window import Requests
from prony.analyse.runs import NS_PER_MS
from prony.stats.quantiles import Array

_Reading = Callable[[Requests], Array]


def request_limits(slo: Mapping[str, float]) -> dict[str, float]:
    """Return the limits that are of each request; those with a statistic are of a run."""
    return {key: limit for key, limit in slo.items() if "." not in key}


def meets(requests: Requests, slo: Mapping[str, float]) -> Array:
    """Mark the requests that succeeded and stayed within every limit; what has no such number has not met it."""
    good: Array = requests.succeeded.copy()
    for metric, limit in request_limits(slo).items():
        reading = JUDGED.get(metric)
        # Comparing with NaN is false: what was not measured meets no limit.
        good &= False if reading is None else reading(requests) <= limit
    return good


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
    "itl_ms": lambda requests: longest_gap_ns(requests) / NS_PER_MS,
}
