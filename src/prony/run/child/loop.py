"""The timed loop: a bound call in, begin and end stamps out. Nothing is built between the two readings."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from statistics import median
from typing import Any

Call = Callable[[], Any]

_LEAST_WARM_RUNS = 6
_LEAST_WARM_NS = 300_000_000
_WARM_CAP_NS = 30 * 10**9
_WARM_CHANGE = 0.02
_LEAST_TIGHT_RUNS = 30


@dataclass
class Stamps:
    """Begins and ends in monotonic nanoseconds, sixteen bytes a sample so that the loop does not disturb memory."""

    begins: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.begins)

    def durations(self, start: int = 0) -> list[int]:
        return [end - begin for begin, end in zip(self.begins[start:], self.ends[start:], strict=True)]


class Stop:
    """Set from a signal handler: the loop ends after the inference that is running."""

    asked = False


def timed(call: Call, stamps: Stamps, count: int, deadline_ns: int, stop: Stop) -> bool:
    """Time `count` calls; return False where the deadline or a stop came first."""
    clock = time.perf_counter_ns
    add_begin, add_end = stamps.begins.append, stamps.ends.append
    for _ in range(count):
        begin = clock()
        call()
        end = clock()
        add_begin(begin)
        add_end(end)
        if end >= deadline_ns or stop.asked:
            return False
    return True


def warm_up(call: Call, stamps: Stamps, count: int | None, stop: Stop) -> bool | None:
    """Run until the last medians agree, or `count` times; return whether it became steady (None: not judged)."""
    if count is not None:
        timed(call, stamps, count, time.perf_counter_ns() + _WARM_CAP_NS, stop)
        return None
    begin_ns = time.perf_counter_ns()
    deadline_ns = begin_ns + _WARM_CAP_NS
    while timed(call, stamps, max(1, len(stamps) // 4), deadline_ns, stop):
        long_enough = time.perf_counter_ns() - begin_ns >= _LEAST_WARM_NS
        if long_enough and len(stamps) >= _LEAST_WARM_RUNS and _agree(stamps):
            return True
    return False


def _agree(stamps: Stamps) -> bool:
    window = min(len(stamps) // 2, 50)
    recent = stamps.durations(len(stamps) - 2 * window)
    before, after = median(recent[:window]), median(recent[window:])
    return abs(after - before) <= _WARM_CHANGE * before


def measure(call: Call, stamps: Stamps, *, runs: int, max_time_ns: int, ci: float | None, stop: Stop) -> str:
    """Time up to `runs` calls; return what ended it: `runs`, `ci` or `time`."""
    deadline_ns = time.perf_counter_ns() + max_time_ns
    while len(stamps) < runs:
        step = runs - len(stamps) if ci is None else min(runs - len(stamps), max(_LEAST_TIGHT_RUNS, len(stamps)))
        if not timed(call, stamps, step, deadline_ns, stop):
            return "time" if len(stamps) < runs else "runs"
        if ci is not None and half_width_of_median(stamps.durations()) <= ci:
            return "ci"
    return "runs"


def half_width_of_median(durations: list[int]) -> float:
    """Relative half-width of the median's 95 % interval by order statistics, within this process."""
    ordered = sorted(durations)
    count = len(ordered)
    reach = 1.96 * sqrt(count) / 2
    low = ordered[max(0, int(count / 2 - reach))]
    high = ordered[min(count - 1, int(count / 2 + reach))]
    return (high - low) / 2 / median(ordered)
