"""Compute live figures of a load from the growing records of its client processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.load.records import FIELDS, read_head, read_rows
from prony.ports.driver import Stamps

_S = 10**9
# Latencies are counted in bins that grow by a hundredth: a quantile of millions costs no more than one of ten.
_GROWTH = np.log1p(0.01)
_BINS = 4096
_CAUSE, _END = FIELDS.index("cause"), FIELDS.index("end_ns")

Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class LiveFigures:
    """How the load stands. `rate` and the `_last` latencies are of the last second; latencies are of good replies."""

    elapsed_s: float
    sent: int
    done: int
    failed: int
    in_flight: int
    rate: float
    p50_ms: float | None
    p99_ms: float | None
    p50_ms_last: float | None
    p99_ms_last: float | None
    total: int | None = None
    left_s: float | None = None


class LoadWatch:
    """Reads what is new each time it is asked."""

    def __init__(self, paths: Sequence[Path], begin_ns: int, *, is_open: bool) -> None:
        self._paths = paths
        self._begin_ns = begin_ns
        self._since = FIELDS.index("due_ns" if is_open else "sent_ns")
        self._seen = [0] * len(paths)
        self._bins = np.zeros(_BINS, np.int64)
        # (when, how many ended, their bins): enough of them for a second.
        self._lately: deque[tuple[int, int, Counts]] = deque()

    def look(self, now_ns: int, *, total: int | None = None, duration_ns: int | None = None) -> LiveFigures:
        heads = [read_head(path) for path in self._paths]
        ended = 0
        fresh = np.zeros(_BINS, np.int64)
        for number, (path, head) in enumerate(zip(self._paths, heads, strict=True)):
            table = read_rows(path, self._seen[number], head["rows"])
            self._seen[number] += len(table)
            ended += len(table)
            fresh += self._bin(table)
        self._bins += fresh
        self._lately.append((now_ns, ended, fresh))
        while len(self._lately) > 1 and self._lately[0][0] <= now_ns - _S:
            self._lately.popleft()
        return self._figures(now_ns, heads, total, duration_ns)

    def _bin(self, table: Stamps) -> Counts:
        good = table[table[:, _CAUSE] == 0]
        latencies = np.maximum(good[:, _END] - good[:, self._since], 1)
        bins = np.minimum(np.log(latencies) / _GROWTH, _BINS - 1).astype(np.int64)
        return np.bincount(bins, minlength=_BINS)

    def _figures(
        self, now_ns: int, heads: Sequence[dict[str, int]], total: int | None, duration_ns: int | None
    ) -> LiveFigures:
        elapsed_s = max(now_ns - self._begin_ns, 0) / 1e9
        lately = sum((bins for _, _, bins in self._lately), np.zeros(_BINS, np.int64))
        done = sum(head["rows"] for head in heads)
        rate = sum(ended for _, ended, _ in self._lately) / max(min(elapsed_s, 1.0), 1e-3)
        left = [] if duration_ns is None else [max(duration_ns / 1e9 - elapsed_s, 0.0)]
        if total is not None and rate > 0:
            left.append(max(total - done, 0) / rate)
        return LiveFigures(
            elapsed_s=elapsed_s,
            sent=sum(head["sent"] for head in heads),
            done=done,
            failed=sum(head["failed"] for head in heads),
            in_flight=sum(head["in_flight"] for head in heads),
            rate=rate,
            p50_ms=_quantile(self._bins, 0.5),
            p99_ms=_quantile(self._bins, 0.99),
            p50_ms_last=_quantile(lately, 0.5),
            p99_ms_last=_quantile(lately, 0.99),
            total=total,
            left_s=min(left) if left else None,
        )


def _quantile(bins: Counts, share: float) -> float | None:
    """Return the middle of the bin in which the quantile lies; None where nothing was counted."""
    sums = np.cumsum(bins)
    if not sums[-1]:
        return None
    number = int(np.searchsorted(sums, share * sums[-1]))
    return float(np.exp((number + 0.5) * _GROWTH) / 1e6)
