"""The timed loop: time calls of a bound function. Nothing is built between the two readings."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, floor, sqrt
from statistics import median
from typing import Any

import numpy as np

from prony.ports.engine import DeviceCall

Call = Callable[[], Any]

_LEAST_WARM_RUNS = 6
_LEAST_WARM_NS = 300_000_000
_WARM_CAP_NS = 30 * 10**9
_NEVER_NS = 2**63
_WARM_CHANGE = 0.02
_LEAST_TIGHT_RUNS = 30
_MORE_WITHIN_NS = 2 * 10**9


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


def time_calls(call: Call, stamps: Stamps, count: int, deadline_ns: int, stop: Stop) -> bool:
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


def time_launches(
    call: DeviceCall, stamps: Stamps, queued: array[int], count: int, deadline_ns: int, stop: Stop
) -> bool:
    """Time `count` calls of a device; `queued` gets when each was handed to the device, before it was waited for."""
    clock, launch, wait = time.perf_counter_ns, call.launch, call.wait
    add_begin, add_queued, add_end = stamps.begins.append, queued.append, stamps.ends.append
    for _ in range(count):
        begin = clock()
        launch()
        middle = clock()
        wait()
        end = clock()
        add_begin(begin)
        add_queued(middle)
        add_end(end)
        if end >= deadline_ns or stop.asked:
            return False
    return True


def warm_up(call: Call, stamps: Stamps, count: int | None, stop: Stop, *, most_ns: int = _WARM_CAP_NS) -> bool | None:
    """Run until the last medians agree, for `most_ns` at most, or `count` times; return whether it became steady.

    None: not judged, because a count was given, or so few inferences fit into the time that no two medians tell.
    """
    if count is not None:
        time_calls(call, stamps, count, _NEVER_NS, stop)
        return None
    begin_ns = time.perf_counter_ns()
    deadline_ns = begin_ns + most_ns
    while time_calls(call, stamps, max(1, len(stamps) // 4), deadline_ns, stop):
        long_enough = time.perf_counter_ns() - begin_ns >= _LEAST_WARM_NS
        if long_enough and len(stamps) >= _LEAST_WARM_RUNS and _agree(stamps):
            return True
    return False if len(stamps) >= _LEAST_WARM_RUNS else None


def _agree(stamps: Stamps) -> bool:
    window = min(len(stamps) // 2, 50)
    recent = stamps.durations(len(stamps) - 2 * window)
    before, after = median(recent[:window]), median(recent[window:])
    return abs(after - before) <= _WARM_CHANGE * before


def measure(  # noqa: PLR0913 - each of them is a limit of the same loop
    call: Call,
    stamps: Stamps,
    *,
    runs: int,
    most_runs: int = 0,
    max_time_ns: int,
    ci: float | None,
    stop: Stop,
    queued: array[int] | None = None,
) -> str:
    """Time up to `runs` calls; return what ended it: `runs`, `ci` or `time`.

    Quick ones go on to `most_runs`, because more of them show rarer delays. `queued` is given for a device's call, and
    gets when each call was queued.
    """
    begin_ns = time.perf_counter_ns()
    deadline_ns = begin_ns + max_time_ns
    while len(stamps) < runs:
        step = runs - len(stamps) if ci is None else min(runs - len(stamps), max(_LEAST_TIGHT_RUNS, len(stamps)))
        if not _time_some(call, stamps, queued, step, deadline_ns, stop):
            return "time" if len(stamps) < runs else "runs"
        if ci is not None and half_width_of_median(_as_array(stamps)) <= ci:
            return "ci"
    until_ns = min(deadline_ns, begin_ns + _MORE_WITHIN_NS)
    if time.perf_counter_ns() < until_ns:
        _time_some(call, stamps, queued, most_runs - runs, until_ns, stop)
    return "runs"


def _time_some(call: Call, stamps: Stamps, queued: array[int] | None, count: int, deadline_ns: int, stop: Stop) -> bool:
    if queued is not None and isinstance(call, DeviceCall):
        return time_launches(call, stamps, queued, count, deadline_ns, stop)
    return time_calls(call, stamps, count, deadline_ns, stop)


def half_width_of_median(durations: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """Relative half-width of the median's 95 % interval by order statistics, within this process.

    It is asked between two inferences of the measured window, so it may take next to no time: nothing is sorted.
    """
    count = durations.size
    reach = 1.96 * sqrt(count) / 2
    low, high = max(0, floor(count / 2 - reach)), min(count - 1, ceil(count / 2 + reach))
    parted = np.partition(durations, (low, count // 2, high))
    return float((parted[high] - parted[low]) / 2 / max(1, parted[count // 2]))


def _as_array(stamps: Stamps) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.frombuffer(stamps.ends, np.int64) - np.frombuffer(stamps.begins, np.int64)
