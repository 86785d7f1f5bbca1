"""The port for time: asked for, never taken."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time to whoever is given one."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds from an arbitrary beginning, for durations; it never goes back."""

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""


class SystemClock:
    """The machine's own clocks; `perf_counter` because it is the one that the engine's child stamps with."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds from an arbitrary beginning."""
        return time.perf_counter_ns()

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return datetime.now(UTC)
