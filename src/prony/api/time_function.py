"""Time a function call by call in this process; needs the standard library and numpy only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from prony.runner.child.loop import Stamps, Stop, measure, warm_up

# A sample that is this long is hardly moved by reading the clock twice, which costs about 0.1 µs.
_SHORTEST_SAMPLE_NS = 50_000
_LONGER_THAN_A_PAUSE_NS = 20_000_000
_MOST_SAMPLES = 100_000


@dataclass(frozen=True)
class CallTimes:
    """Milliseconds of one call, sample by sample; of a quick function each sample is the mean of `calls` of them."""

    durations_ms: tuple[float, ...]
    calls: int
    warm_up_calls: int
    first_result: Any


def time_function(call: Callable[[], Any], *, runs: int | None, time_ns: int) -> CallTimes:
    """Call it until it is warm, then time it for `time_ns` or `runs` samples, whichever ends first.

    Getting warm takes as long as measuring at most.

    Whatever the function raises ends it and is passed on.
    """
    first_result = call()
    calls = _calls_in_a_sample(call)
    sample = call if calls == 1 else _group(call, calls)
    warm, stamps, stop = Stamps(), Stamps(), Stop()
    warm_up(sample, warm, None, stop, most_ns=time_ns)
    measure(sample, stamps, runs=runs or _MOST_SAMPLES, max_time_ns=time_ns, ci=None, stop=stop)
    durations = tuple(value / 1e6 / calls for value in stamps.durations())
    return CallTimes(durations, calls, len(warm) * calls, first_result)


def _calls_in_a_sample(call: Callable[[], Any]) -> int:
    """Return how many calls make a sample long enough: powers of two are tried until they are."""
    calls = 1
    while not _is_long(_group(call, calls)):
        calls *= 2
    return calls


def _is_long(group: Callable[[], None]) -> bool:
    """Tell whether it takes long enough. Once more where another process may have come in between."""
    taken_ns = _take_ns(group)
    if taken_ns >= _SHORTEST_SAMPLE_NS and taken_ns < _LONGER_THAN_A_PAUSE_NS:
        taken_ns = _take_ns(group)
    return taken_ns >= _SHORTEST_SAMPLE_NS


def _take_ns(work: Callable[[], None]) -> int:
    begin_ns = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - begin_ns


def _group(call: Callable[[], Any], calls: int) -> Callable[[], None]:
    def call_each() -> None:
        for _ in repeat(None, calls):
            call()

    return call_each
