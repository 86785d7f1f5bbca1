"""Time a device's inferences beyond the isolated calls: by its own marks, back to back, and with copies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any

from prony.ports.engine import CardCall, DeviceCall, HostCopies
from prony.runner.child.loop import Stamps, Stop, time_calls

_MARKED_MOST_NS = 2 * 10**9
_COPIES = 20
_COPIES_MOST_NS = 10**9
_WARM_COPIES = 2


def time_by_marks(call: DeviceCall, stamps: Stamps, count: int, stop: Stop) -> None:
    """Add a row for each inference: from when it was asked for, as long as the device's own marks say."""
    deadline_ns = time.perf_counter_ns() + _MARKED_MOST_NS
    for _ in range(count):
        begin_ns = time.perf_counter_ns()
        span_ns = call.time_on_device()
        if span_ns is None:
            return
        stamps.begins.append(begin_ns)
        stamps.ends.append(begin_ns + span_ns)
        if stop.asked or time.perf_counter_ns() >= deadline_ns:
            return


def run_back_to_back(call: CardCall, *, least: int, least_ns: int, each_ns: int, stop: Stop) -> tuple[int, int, int]:
    """Run inferences until so many are done and so much time has passed, without waiting between them where the call
    can be queued.

    Args:
        call: What is run.
        least: So many inferences at least.
        least_ns: So long at least.
        each_ns: About how long one takes.
        stop: Ends it early.

    Returns:
        Begin and end in monotonic nanoseconds, and how many inferences ended in between.
    """
    launch, wait = (call.launch, call.wait) if isinstance(call, DeviceCall) else (call, lambda: None)
    done, wanted = 0, max(least, ceil(least_ns / max(1, each_ns)))
    wait()
    begin_ns = time.perf_counter_ns()
    while True:
        for _ in range(wanted):
            launch()
            done += 1
            if stop.asked:
                break
        wait()
        end_ns = time.perf_counter_ns()
        lacking_ns = least_ns - (end_ns - begin_ns)
        if lacking_ns <= 0 or stop.asked:
            return begin_ns, end_ns, done
        wanted = max(1, ceil(lacking_ns * done / max(1, end_ns - begin_ns)))


def judge_canary(spans: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Return how long one kernel of each kind took, and the share of the time in which kernels waited for others."""
    middles = {name: median(each) for name, each in spans.items()}
    # A kernel that takes much longer than most waited for the work of somebody else.
    held_up = max(1 - middles[name] * len(each) / sum(each) for name, each in spans.items())
    times = {f"gpu_{name}_ms": middle / 1e6 for name, middle in middles.items()}
    return times | {"gpu_held_up": max(0.0, held_up)}


def time_copies(call: DeviceCall, copies: HostCopies, stop: Stop) -> dict[str, Stamps]:
    """Time copies to the device, back from it, and a whole inference from the host to the host; each alone."""
    return {
        "copy_in": _time_queued(call, copies.copy_in, stop),
        "copy_out": _time_queued(call, copies.copy_out, stop),
        "roundtrip": _time_queued(call, copies.roundtrip, stop),
    }


def _time_queued(call: DeviceCall, work: Callable[[], Any], stop: Stop) -> Stamps:
    def once() -> None:
        work()
        call.wait()

    for _ in range(_WARM_COPIES):
        once()
    stamps = Stamps()
    time_calls(once, stamps, _COPIES, time.perf_counter_ns() + _COPIES_MOST_NS, stop)
    return stamps
