"""Describe this machine's clock: its source, its step, the cost of a reading, whether to trust it, and how far it is
from another's.

Needs nothing but the standard library: the engine's child reads the same clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import MeasurementError
from prony.instruments import kernel

if TYPE_CHECKING:
    from prony.model.gang import Offset

# Sources that need a system call or a slow bus access for a reading, or that step coarsely.
SLOW_SOURCES = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen"})
_SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def clock_facts(root: Path = kernel.ROOT) -> dict[str, float | int | str | bool]:
    """Return the facts; `source` is absent where the system does not tell.

    `step_ns` is the smallest difference ever seen between two readings that differ, `read_ns` the cost of a reading.
    `safe` means: never set back, and neither its step nor its cost reaches a microsecond.
    """
    info = time.get_clock_info("perf_counter")
    source = kernel.read_text(root / _SOURCE)
    step_ns, read_ns = smallest_step_ns(), cost_of_reading_ns()
    safe = info.monotonic and not info.adjustable and step_ns < 1000 and read_ns < 1000 and source not in SLOW_SOURCES
    facts: dict[str, float | int | str | bool] = {
        "implementation": info.implementation,
        "nominal_resolution_ns": info.resolution * 1e9,
        "step_ns": step_ns,
        "read_ns": read_ns,
        "safe": safe,
    }
    return facts | ({"source": source} if source else {})


def smallest_step_ns(reads: int = 5000) -> int:
    """Return the smallest non-zero step between readings; waits for a first one where the clock is coarse."""
    read = time.perf_counter_ns
    stamps = [read() for _ in repeat(None, reads)]
    steps = [after - before for before, after in pairwise(stamps) if after > before]
    return min(steps) if steps else _next_step_ns()


def cost_of_reading_ns(batches: int = 20, reads: int = 200) -> float:
    """Return what one reading costs, the loop around it included: the best of several batches."""
    read = time.perf_counter_ns
    best = float("inf")
    for _ in range(batches):
        begin_ns = read()
        for _ in repeat(None, reads):
            read()
        best = min(best, (read() - begin_ns) / reads)
    return best


def _next_step_ns() -> int:
    begin_ns = now_ns = time.perf_counter_ns()
    while now_ns == begin_ns:
        now_ns = time.perf_counter_ns()
    return now_ns - begin_ns


@dataclass(frozen=True)
class Trip:
    """A question and its answer: `sent_ns` and `back_ns` by our clock, what lies between by the other's."""

    sent_ns: int
    received_ns: int
    answered_ns: int
    back_ns: int

    @property
    def on_the_way_ns(self) -> int:
        return (self.back_ns - self.sent_ns) - (self.answered_ns - self.received_ns)


def offset_of(trips: Sequence[Trip]) -> Offset:
    """Return the offset by the trip that was shortest on its way: the others only waited longer somewhere.

    Whatever share of the way the question took, the truth lies within half of it.
    """
    from prony.model.gang import Offset

    known = [trip for trip in trips if trip.on_the_way_ns >= 0]
    if not known:
        raise MeasurementError("no clock could be read", hint="check that the server answers", code="no_server_clock")
    best = min(known, key=lambda trip: trip.on_the_way_ns)
    twice = (best.received_ns - best.sent_ns) + (best.answered_ns - best.back_ns)
    return Offset(offset_ns=twice // 2, uncertainty_ns=(best.on_the_way_ns + 1) // 2 + 1)
