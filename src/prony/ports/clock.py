"""The seam for time: asked for, never taken."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def monotonic_ns(self) -> int: ...

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own clocks; `perf_counter` because it is the one that the engine's child stamps with."""

    def monotonic_ns(self) -> int:
        return time.perf_counter_ns()

    def now(self) -> datetime:
        return datetime.now(UTC)
