"""Probe of the host: CPU, memory, clock, heat, pressure, network and disk."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from prony.instruments import counters, kernel
from prony.instruments.counters import cpu_times, pressures_us

_SECTOR_BYTES = 512
# Devices that only pass on what another one reads and writes, or that are memory.
_LAYERED = ("loop", "ram", "zram", "dm-", "md", "sr", "fd")


class HostProbe:
    """Counts for the whole machine, as the kernel keeps them; psutil's where there is no /proc."""

    name: ClassVar[str] = "host"

    def __init__(self, root: Path = kernel.ROOT) -> None:
        self._root = root
        self._highest: dict[str, float] = {}

    def available(self) -> str | None:
        """Return why nothing can be read, or None."""
        if sys.platform != "linux":
            return None
        return None if (self._root / "proc/stat").exists() else "/proc is not mounted"

    def read(self) -> dict[str, float]:
        """Read every counter once."""
        root = self._root
        now = {**_cpu(root), **_memory(root), **_pressure(root), **network(root), **disks(root)}
        return self._growing(now)

    def watch(self, pids: Collection[int]) -> None:
        """Its counters are the whole machine's."""

    def close(self) -> None:
        """Nothing is held open."""

    def _growing(self, now: Mapping[str, float]) -> dict[str, float]:
        """The kernel may set iowait back a little, and a sum falls when a CPU or a disk goes: a total never does."""
        totals = {
            name: max(value, self._highest.get(name, 0.0)) for name, value in now.items() if name.endswith("_total")
        }
        self._highest |= totals
        return {**now, **totals}


def network(root: Path) -> dict[str, float]:
    """Return the bytes of all interfaces but the loop."""
    lines = (kernel.read_text(root / "proc/net/dev") or "").splitlines()[2:]
    rows = [(name.strip(), words.split()) for name, _, words in (line.partition(":") for line in lines)]
    real = [words for name, words in rows if name != "lo" and len(words) >= 9]
    if not real:
        return {}
    return {
        "network_received_bytes_total": float(sum(int(words[0]) for words in real)),
        "network_sent_bytes_total": float(sum(int(words[8]) for words in real)),
    }


def disks(root: Path) -> dict[str, float]:
    """Return the bytes of all real disks, none counted twice through its partitions or layers."""
    rows = [line.split() for line in (kernel.read_text(root / "proc/diskstats") or "").splitlines()]
    real = [row for row in rows if len(row) > 9 and _is_disk(row[2], root)]
    if not real:
        return {}
    return {
        "disk_read_bytes_total": float(sum(int(row[5]) for row in real) * _SECTOR_BYTES),
        "disk_written_bytes_total": float(sum(int(row[9]) for row in real) * _SECTOR_BYTES),
    }


def _is_disk(name: str, root: Path) -> bool:
    return not name.startswith(_LAYERED) and (root / "sys/block" / name).exists()


def _cpu(root: Path) -> dict[str, float]:
    times = cpu_times(root).values()
    frequency, heat = counters.frequency_mhz(root), counters.heat(root)
    found: dict[str, float | None] = {
        "cpu_busy_s_total": sum(each.busy_s for each in times) if times else None,
        "cpu_iowait_s_total": sum(each.iowait_s for each in times) if times and sys.platform == "linux" else None,
        "cpu_steal_s_total": sum(each.steal_s for each in times) if times and sys.platform == "linux" else None,
        "frequency_mean_mhz": frequency,
        "temperature_max_c": heat.hottest_c if heat else None,
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def _memory(root: Path) -> dict[str, float]:
    if sys.platform != "linux":
        import psutil

        return {"memory_available_mib": psutil.virtual_memory().available / 2**20}
    available = kernel.read_table(root / "proc/meminfo").get("MemAvailable")
    return {} if available is None else {"memory_available_mib": available / 1024}


def _pressure(root: Path) -> dict[str, float]:
    return {f"pressure_{name}_us_total": float(total) for name, total in pressures_us(root).items()}
