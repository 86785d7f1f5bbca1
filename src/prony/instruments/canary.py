"""Time two fixed pieces of work, one bound by the processor and one by memory: how fast is this machine just now?

They run in the process that asks, on the CPUs that it may use, outside of whatever is measured. Each is done a few
times and the fastest counts, so that a process that got in between does not.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
import time
from collections.abc import Callable

from prony.model.result import CanaryReading

_TIMES = 3
_COMPUTE_BYTES, _COMPUTE_ROUNDS = 2**14, 64  # 1 MiB in pieces that stay in the first cache
_MEMORY_BYTES = 2**24  # read and written: together more than most second-level caches hold
# What is measured right after a reading has it as its own: a machine does not change its speed in so short a time.
_RECENT_NS = 100_000_000
_MADV_POPULATE_WRITE = 23  # of Linux 5.14; the module has no name for it


class Canary:
    """Readings before and after each of several repetitions: where one follows another at once, they share the one in
    between."""

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._latest: CanaryReading | None = None
        self._read_ns = 0

    def read_before(self) -> CanaryReading:
        """Return how fast the machine is, as it was found a moment ago or as it is now."""
        if self._latest is not None and self._clock_ns() - self._read_ns < _RECENT_NS:
            return self._latest
        return read_canary()

    def read_after(self) -> CanaryReading:
        """Return how fast the machine is now, and keep it for what comes at once."""
        self._latest = read_canary()
        self._read_ns = self._clock_ns()
        return self._latest


def read_canary() -> CanaryReading:
    """Return how long the fixed work takes now: less than ten milliseconds in all where there are huge pages."""
    piece = bytes(_COMPUTE_BYTES)

    def compute() -> None:
        digest = hashlib.sha256()
        for _ in range(_COMPUTE_ROUNDS):
            digest.update(piece)

    # Pages that the kernel has back at once.
    with _pages() as source, _pages() as target, memoryview(source) as old, memoryview(target) as new:

        def copy() -> None:
            new[:] = old

        return CanaryReading(compute_ms=_fastest_ms(compute), memory_ms=_fastest_ms(copy))


def _pages() -> mmap.mmap:
    """Return memory that is really there, so that no copy waits for it."""
    if sys.platform == "win32":
        pages = mmap.mmap(-1, _MEMORY_BYTES)
    else:
        pages = mmap.mmap(-1, _MEMORY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_HUGEPAGE)
        try:
            pages.madvise(_MADV_POPULATE_WRITE)
        except OSError:  # a kernel that cannot do that yet
            pass
        else:
            return pages
    pages[:] = bytes(_MEMORY_BYTES)
    return pages


def _fastest_ms(work: Callable[[], None]) -> float:
    found = []
    for _ in range(_TIMES):
        begin_ns = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - begin_ns)
    return min(found) / 1e6
