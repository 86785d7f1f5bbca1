"""Measure the CPU and memory of a service's processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psutil


class Usage:
    """CPU and memory of a service: all its processes, those that have ended with them."""

    def __init__(self, root: int) -> None:
        """`root` is the process under which all of the service lives, and which waits for what ends."""
        self.root = root
        self._before_s = 0.0

    def begin(self) -> None:
        """Count from now: what ran before the service itself is not of it."""
        self._before_s = self._ended_s() or 0.0

    def cpu_s(self) -> float | None:
        """Return the CPU seconds since the beginning; None where the service is gone."""
        ended_s = self._ended_s()
        if ended_s is None:
            return None
        total = ended_s - self._before_s
        for process in self._processes():
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])  # its own, and of children that it waited for
        return total

    def rss_mib(self) -> float | None:
        """Return the memory in use now, summed over its processes; None where the service is gone."""
        used = 0
        seen = False
        for process in self._processes():
            with suppress(psutil.Error):
                used += process.memory_info().rss
                seen = True
        return used / 2**20 if seen else None

    def _processes(self) -> Iterator[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            yield from psutil.Process(self.root).children(recursive=True)

    def _ended_s(self) -> float | None:
        """Return the CPU seconds of all that the root has waited for."""
        try:
            times = psutil.Process(self.root).cpu_times()
        except psutil.NoSuchProcess:
            return None
        return float(times.children_user + times.children_system)
