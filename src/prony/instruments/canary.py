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


def read_canary() -> CanaryReading:
    """Return how long the fixed work takes now: less than ten milliseconds in all where there are huge pages."""
    piece = bytes(_COMPUTE_BYTES)

    def compute() -> None:
        digest = hashlib.sha256()
        for _ in range(_COMPUTE_ROUNDS):
            digest.update(piece)

    # Pages that the kernel has back at once; the first copies only make them there.
    with _pages() as source, _pages() as target, memoryview(source) as old, memoryview(target) as new:
        old[:] = new
        new[:] = old

        def copy() -> None:
            new[:] = old

        return CanaryReading(compute_ms=_fastest_ms(compute), memory_ms=_fastest_ms(copy))


def _pages() -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, _MEMORY_BYTES)
    pages = mmap.mmap(-1, _MEMORY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


def _fastest_ms(work: Callable[[], None]) -> float:
    found = []
    for _ in range(_TIMES):
        begin_ns = time.perf_counter_ns()
        work()
        found.append(time.perf_counter_ns() - begin_ns)
    return min(found) / 1e6
