"""Measure each request of a run: latency, first byte, lateness and quality, first token, token gaps and token rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prony.analyse.runs import NS_PER_MS, PERCENTILES
from prony.instruments.columns import UNKNOWN, Requests
from prony.instruments.within_limit import tpot_ns
from prony.stats.quantiles import Array, least_count, median_unbiased


@dataclass(frozen=True)
class RequestValues:
    """One metric of one run: a number for each request (or gap) that counts, in the unit of the metric.

    `lost` requests have no number because they never ended well; where they count, they count as infinitely long.
    """

    numbers: Array
    lost: int = 0

    @property
    def count(self) -> int:
        return int(self.numbers.size) + self.lost

    @cached_property
    def in_order(self) -> Array:
        """The numbers in ascending order, infinity for each that was lost."""
        ordered = np.sort(self.numbers)
        return np.concatenate((ordered, np.full(self.lost, np.inf))) if self.lost else ordered

    def with_lost(self, lost: int) -> RequestValues:
        """Return the same with so many more that never ended; the order is known already."""
        if not lost:
            return self
        longer = RequestValues(self.numbers, lost)
        longer.__dict__["in_order"] = np.concatenate((self.in_order, np.full(lost, np.inf)))
        return longer

    def statistic(self, name: str) -> float | None:
        """Return one statistic; None of no numbers and where they are too few for it."""
        if not self.count or (name in PERCENTILES and name != "p50" and self.count < least_count(PERCENTILES[name])):
            return None
        if name in PERCENTILES:
            return median_unbiased(self.in_order, PERCENTILES[name])
        if name in ("min", "max"):
            return float(self.in_order[0 if name == "min" else -1])
        if name == "mean":
            return float(np.mean(self.numbers)) if not self.lost else math.inf
        return float(np.std(self.numbers, ddof=1)) if self.count > 1 and not self.lost else None


def latencies(requests: Requests) -> dict[str, RequestValues]:
    """Return the metrics in milliseconds that every protocol has, and the quality where a driver judged it.

    Service time and lateness are told apart in an open load only: in a closed one they are the same and nothing.
    """
    numbers, timed = requests.numbers, requests.latency_rows
    begin, end, first = (numbers[name][timed] for name in ("begin_ns", "end_ns", "first_ns"))
    e2e = RequestValues((end - begin) / NS_PER_MS)
    found = {
        "e2e_ms": e2e,
        "e2e_with_failures_ms": e2e.with_lost(int(np.count_nonzero(requests.began_in_window & ~requests.successes))),
        "ttfb_ms": RequestValues((first - begin)[first > 0] / NS_PER_MS),
    }
    if requests.is_open:
        found["service_ms"] = RequestValues((end - numbers["sent_ns"][timed]) / NS_PER_MS)
        late = requests.began_in_window & (numbers["sent_ns"] > 0)
        found["sent_late_ms"] = RequestValues((numbers["sent_ns"] - numbers["due_ns"])[late] / NS_PER_MS)
    quality = requests.quality[timed]
    if np.any(judged := np.isfinite(quality)):
        found["quality"] = RequestValues(quality[judged])
    return found


def by_operation(requests: Requests, code: int) -> RequestValues:
    """Return end to end of one operation alone."""
    mine = requests.latency_rows & requests.of_operation(code)
    return RequestValues((requests.numbers["end_ns"] - requests.numbers["begin_ns"])[mine] / NS_PER_MS)


_NS_PER_S = 1e9


def token_latencies(requests: Requests) -> dict[str, RequestValues]:
    """Return the metrics of replies that came in pieces with tokens; none of replies that did not."""
    streamed = requests.latency_rows & (requests.pieces > 0)
    if not streamed.any():
        return {}
    begins = requests.numbers["begin_ns"]
    found = {
        "ttft_ms": RequestValues((requests.first_stamps - begins)[streamed] / NS_PER_MS),
        "itl_ms": RequestValues(_gaps_ns(requests, streamed) / NS_PER_MS),
    }
    content = requests.numbers["content_ns"]
    answered = streamed & (content > 0)
    found["ttft_content_ms"] = RequestValues((content - begins)[answered] / NS_PER_MS)
    pace = tpot_ns(requests)[streamed]
    pace = pace[np.isfinite(pace)]
    found["tpot_ms"] = RequestValues(pace / NS_PER_MS)
    found["tokens_per_s_per_user"] = RequestValues(_NS_PER_S / pace[pace > 0])
    return found


def _gaps_ns(requests: Requests, rows: Array) -> Array:
    """Return the real gaps between the pieces with tokens of these requests."""
    whole = np.repeat(rows, requests.pieces)
    owner = np.repeat(np.arange(requests.count), requests.pieces)[whole]
    gaps: Array = np.diff(requests.stamps[whole])[owner[1:] == owner[:-1]]
    return gaps


def token_counts(requests: Requests) -> dict[str, int]:
    """Return the tokens of the successes that ended in the window; a count that any of them lacks is left out."""
    found = {}
    for name in ("input_tokens", "output_tokens"):
        tokens = requests.numbers[name][requests.throughput_rows]
        if tokens.size and not np.any(tokens == UNKNOWN):
            found[name] = int(tokens.sum())
    return found
