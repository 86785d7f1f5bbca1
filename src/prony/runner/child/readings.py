"""Take readings of a test suite: repeat what each test does, and keep what each time gave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from prony.runner.child.loop import Stop

_WARM_SAMPLES = 2
_FEWEST, _MOST = 5, 200
_STEP_NS = 10**8
_SLOWEST_NS = 10 * 10**9  # what one test may take beyond its time, for want of samples


@dataclass(frozen=True)
class SuiteTest:
    """One thing that hardware does again and again.

    `sample` does it so many times and returns the nanoseconds of each; `value_of` makes the metric's value of them.
    `operation` tells tests of one metric apart. `read` takes the readings itself, where they are more than times.
    """

    metric: str
    operation: str
    sample: Callable[[int], list[int]]
    value_of: Callable[[float], float]
    read: Callable[[Stop], list[dict[str, Any]]] | None = None


class TestSuite(Protocol):
    """Tests that one process runs, one after the other. `facts` are known when all of them are over.

    `device_id` is the card's own name, None where there is none; `settles`: clock and heat must be steady before.
    """

    device_id: str | None
    settles: bool

    def tests(self) -> Iterator[SuiteTest]:
        """Return the tests, each made when the one before is over."""

    def facts(self) -> Mapping[str, Any]:
        """Return what was used: device, threads, sizes, what was left out and why."""

    def close(self) -> None:
        """Give back what the tests used."""


def time_by_wall(call: Callable[[], Any]) -> Callable[[int], list[int]]:
    """Return what samples a call by the host's clock."""
    clock = time.perf_counter_ns

    def sample(count: int) -> list[int]:
        taken = []
        for _ in range(count):
            begin_ns = clock()
            call()
            taken.append(clock() - begin_ns)
        return taken

    return sample


def rate_of(amount: float) -> Callable[[float], float]:
    """Return what makes so much a nanosecond of a time: of bytes it is GB/s."""
    return lambda ns: amount / ns


def take_readings(test: SuiteTest, time_ns: int, stop: Stop) -> list[dict[str, Any]]:
    """Return the readings of a test: one, unless it takes them itself."""
    return [take_reading(test, time_ns, stop)] if test.read is None else test.read(stop)


def take_reading(test: SuiteTest, time_ns: int, stop: Stop) -> dict[str, Any]:
    """Repeat a test for about so long, after a warm-up; return its values in their order, and when it ended."""
    begin_ns = time.perf_counter_ns()
    test.sample(_WARM_SAMPLES)
    each_ns = max(1, (time.perf_counter_ns() - begin_ns) // _WARM_SAMPLES)  # of a whole sample, as the host waits
    wanted = min(_MOST, max(_FEWEST, time_ns // each_ns))
    deadline_ns = time.perf_counter_ns() + time_ns + _SLOWEST_NS
    taken: list[int] = []
    while len(taken) < wanted and not stop.asked and (not taken or time.perf_counter_ns() < deadline_ns):
        taken += test.sample(min(wanted - len(taken), max(1, _STEP_NS // each_ns)))
    values = [test.value_of(one) for one in taken]
    return {
        "metric": test.metric, "operation": test.operation, "values": values, "at_ns": time.perf_counter_ns(),
    }  # fmt: skip
