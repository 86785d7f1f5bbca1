"""Record what the mock server really did: lateness of chunks, arrivals and requests in flight.

Everything is kept as plain integers in arrays, because it is kept while chunks are due. Counts are of all that was;
quantiles are of the last `_MOST` values.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

_MOST = 4_000_000
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}


class Truth:
    """What really happened, in nanoseconds of the monotonic clock."""

    __slots__ = (
        "arrivals", "bodies", "chunks", "edges_ns", "faults", "first_ns", "forgotten", "gaps", "held_back", "in_flight",
        "last_ns", "late", "lines_open", "lines_opened", "lines_peak", "peak", "read_lag", "streams", "tokens", "ttft",
    )  # fmt: skip

    def __init__(self) -> None:
        self.in_flight = 0
        self.lines_open = 0
        self.reset(0)

    def reset(self, now_ns: int) -> None:
        """Forget what was; what is in flight stays so, as if it had begun now."""
        self.arrivals: array[int] = array("q")
        self.late: array[int] = array("q")
        self.ttft: array[int] = array("q")
        self.gaps: array[int] = array("q")
        self.read_lag: array[int] = array("q")
        self.bodies: set[int] = set()  # of what an LLM was asked: a number for each different one
        self.forgotten = 0  # arrivals that were let go, so that memory stays bounded
        self.streams = self.chunks = self.tokens = self.held_back = 0
        self.faults: dict[str, int] = {}
        self.lines_opened = self.lines_peak = self.lines_open
        self.peak = self.in_flight
        # Ends minus begins: with those in flight counted to now, the area under `in_flight` over time.
        self.edges_ns = -self.in_flight * now_ns
        self.first_ns = now_ns if self.in_flight else 0
        self.last_ns = now_ns

    def began(self, at_ns: int) -> None:
        """A request that takes time has come."""
        self.arrivals.append(at_ns)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self.edges_ns -= at_ns
        if not self.first_ns:
            self.first_ns = at_ns

    def note_body(self, number: int) -> None:
        if len(self.bodies) < _MOST:
            self.bodies.add(number)

    def note_end(self, at_ns: int) -> None:
        self.in_flight -= 1
        self.edges_ns += at_ns
        self.last_ns = at_ns

    def fault(self, kind: str) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def count_connection(self) -> bool:
        """Count a connection; return whether there were never so many."""
        self.lines_opened += 1
        self.lines_open += 1
        is_peak = self.lines_open > self.lines_peak
        self.lines_peak += is_peak
        return is_peak

    def uncount_connection(self, was_peak: bool) -> None:
        """Take a connection back that only asks about the mock itself."""
        self.lines_peak -= was_peak and self.lines_peak == self.lines_open
        self.lines_opened -= 1
        self.lines_open -= 1

    def trim(self) -> None:
        """Let the oldest values go where there are too many; called now and then, off the timed path."""
        for name in ("late", "ttft", "gaps", "read_lag", "arrivals"):
            values = getattr(self, name)
            beyond = len(values) - _MOST
            if beyond > 0:
                del values[: beyond + _MOST // 4]
                if name == "arrivals":
                    self.forgotten += beyond + _MOST // 4

    @property
    def requests(self) -> int:
        return self.forgotten + len(self.arrivals)

    def in_flight_mean(self, now_ns: int) -> float:
        """Return how many were in flight on average, from the first arrival to the last end."""
        until = now_ns if self.in_flight else self.last_ns
        area = self.edges_ns + self.in_flight * until
        return area / (until - self.first_ns) if self.first_ns and until > self.first_ns else 0.0

    def summary(self, now_ns: int) -> dict[str, Any]:
        """Return everything as JSON has it."""
        arrivals = np.array(self.arrivals, dtype=np.int64)
        arrivals.sort()
        return {
            "requests": self.requests,
            "distinct_bodies": len(self.bodies),
            "streams": self.streams,
            "chunks": self.chunks,
            "tokens": self.tokens,
            "lateness_ms": _spread(self.late, 1e6),
            "ttft_ms": _spread(self.ttft, 1e6),
            "itl_ms": _spread(self.gaps, 1e6),
            "read_lag_ms": _spread(self.read_lag, 1e6),
            "arrivals": {"gap_ns": _spread(np.diff(arrivals), 1)},
            "in_flight": {"now": self.in_flight, "mean": self.in_flight_mean(now_ns), "max": self.peak},
            "errors_sent": dict(self.faults),
            "connections": {"opened": self.lines_opened, "open": self.lines_open, "peak": self.lines_peak},
            "held_back": self.held_back,
        }


def _spread(values: Any, unit: float) -> dict[str, Any]:
    """Return how values are spread; None for all where there are none."""
    found = np.array(values, dtype=np.int64)
    if not found.size:
        return {"count": 0, "mean": None} | dict.fromkeys((*_QUANTILES, "max"))
    at = np.quantile(found, list(_QUANTILES.values()), method="inverted_cdf") / unit
    named = {name: float(value) for name, value in zip(_QUANTILES, at, strict=True)}
    return {"count": int(found.size), "mean": float(found.mean() / unit), **named, "max": float(found.max() / unit)}
