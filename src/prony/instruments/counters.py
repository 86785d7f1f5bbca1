"""Read this machine's counters and sensors: CPU times, clock, temperature, pressure, throttling and swapping.

Needs nothing but the standard library (psutil where there is no /proc).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from prony.instruments import cgroup, kernel

PRESSURES = ("cpu", "memory", "io")
# /proc/stat counts in these whatever the kernel's own tick is; 100 a second on every Linux that matters.
TICK_S = 1 / os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 0.01


@dataclass(frozen=True)
class CpuTimes:
    """What one CPU has done since boot, in seconds. `busy_s` is neither idle, nor waiting, nor stolen."""

    busy_s: float
    idle_s: float
    iowait_s: float
    steal_s: float


@dataclass(frozen=True)
class HostCounters:
    """Everything at one instant; absent or None where the system does not tell."""

    at_ns: int
    cpus: Mapping[int, CpuTimes]
    pressure_us: Mapping[str, int]
    throttled_us: int | None
    thermal_events: int | None
    swapped_pages: int | None
    oom_kills: int | None
    own_cpu_s: float

    @classmethod
    def read(cls, root: Path = kernel.ROOT) -> HostCounters:
        """Read every counter once: well under a millisecond on a small machine."""
        virtual = kernel.read_some_lines(root / "proc/vmstat", "pswpin", "pswpout", "oom_kill")
        swaps = [virtual[name] for name in ("pswpin", "pswpout") if name in virtual]
        return cls(
            at_ns=time.perf_counter_ns(),
            cpus=cpu_times(root),
            pressure_us=pressures_us(root),
            throttled_us=cgroup.throttled_us(_throttle_files(root)),
            thermal_events=_thermal_events(root),
            swapped_pages=sum(swaps) if swaps else None,
            oom_kills=virtual.get("oom_kill"),
            own_cpu_s=time.process_time(),
        )


def busy_share(before: HostCounters, after: HostCounters) -> float | None:
    """Return the share of the time of all CPUs that anybody used between two readings; None where it is not shown."""
    both = before.cpus.keys() & after.cpus.keys()
    window_s = (after.at_ns - before.at_ns) / 1e9 * len(both)
    used_s = sum(after.cpus[cpu].busy_s - before.cpus[cpu].busy_s for cpu in both)
    return min(1.0, max(0.0, used_s / window_s)) if window_s > 0 else None


def oom_kills(root: Path = kernel.ROOT) -> int | None:
    """Return how many processes the kernel has killed for want of memory since boot."""
    return kernel.read_some_lines(root / "proc/vmstat", "oom_kill").get("oom_kill")


def cpu_times(root: Path = kernel.ROOT) -> dict[int, CpuTimes]:
    """Return the times of every online CPU by its number."""
    content = kernel.read_text(root / "proc/stat")
    if content is None:
        return {} if sys.platform == "linux" else _cpu_times_elsewhere()
    found: dict[int, CpuTimes] = {}
    for line in content.splitlines():
        name, *words = line.split()
        if not name.startswith("cpu"):
            break
        if name != "cpu" and len(words) >= 4:
            ticks = [int(word) for word in words] + [0] * 8
            # Guest time (the two last columns) is already inside user and nice.
            user, nice, system, idle, iowait, irq, softirq, steal = (tick * TICK_S for tick in ticks[:8])
            found[int(name[3:])] = CpuTimes(user + nice + system + irq + softirq, idle, iowait, steal)
    return found


def pressures_us(root: Path = kernel.ROOT) -> dict[str, int]:
    """Return how long some task has waited for each resource since boot, in microseconds."""
    found: dict[str, int] = {}
    for name in PRESSURES:
        words = (kernel.read_text(root / "proc/pressure" / name) or "").split()
        total = kernel.integer(words[4].partition("=")[2]) if len(words) > 4 and words[0] == "some" else None
        if total is not None:
            found[name] = total
    return found


@cache
def _throttle_files(root: Path) -> tuple[Path, ...]:
    return cgroup.throttle_files(root)


@cache
def _thermal_files(root: Path) -> tuple[Path, ...]:
    return kernel.folders(root / "sys/devices/system/cpu", "cpu[0-9]*/thermal_throttle/core_throttle_count")


def _thermal_events(root: Path) -> int | None:
    counts = [kernel.number(file) for file in _thermal_files(root)]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _cpu_times_elsewhere() -> dict[int, CpuTimes]:
    import psutil

    return {
        index: CpuTimes(sum(times) - times.idle, times.idle, 0.0, 0.0)
        for index, times in enumerate(psutil.cpu_times(percpu=True))
    }


# Chips and zones that sit on the CPU; a disk's sensor would wake the disk, and a battery's tells nothing of speed.
_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "soc_thermal", "cpu", "soc")
_ZONES = ("cpu", "x86_pkg_temp", "soc", "package", "cluster", "big", "little", "tcpu")
# A reading asks each core across the machine, so a few stand for all.
_MOST_CORES = 8


@dataclass(frozen=True)
class Heat:
    """`headroom_c` is what is left to the temperature at which the CPU protects itself."""

    hottest_c: float
    headroom_c: float | None


def frequency_mhz(root: Path = kernel.ROOT) -> float | None:
    """Return the mean clock of the first few cores now."""
    speeds = [kernel.number(file) for file in _clock_files(root)]
    known = [khz for khz in speeds if khz]
    return fmean(known) / 1000 if known else None


def heat(root: Path = kernel.ROOT) -> Heat | None:
    """Return the hottest reading of the CPU, and the least headroom of any."""
    readings = [(kernel.number(file), limit) for file, limit in _heat_files(root)]
    # Absent sensors of some boards read as 0 or as far below freezing.
    known = [(value, limit) for value, limit in readings if value is not None and value > 0]
    if not known:
        return None
    rooms = [limit - value for value, limit in known if limit is not None]
    return Heat(max(value for value, _ in known) / 1000, min(rooms) / 1000 if rooms else None)


@cache
def _clock_files(root: Path) -> tuple[Path, ...]:
    folder = root / "sys/devices/system/cpu"
    cores = kernel.folders(folder, "cpu[0-9]*")[:_MOST_CORES]
    return tuple(file for core in cores if (file := core / "cpufreq/scaling_cur_freq").exists())


@cache
def _heat_files(root: Path) -> tuple[tuple[Path, int | None], ...]:
    found: list[tuple[Path, int | None]] = []
    for chip in kernel.folders(root / "sys/class/hwmon", "hwmon[0-9]*"):
        if (kernel.read_text(chip / "name") or "").startswith(_CHIPS):
            for file in kernel.folders(chip, "temp[0-9]*_input"):
                found.append((file, kernel.number(file.with_name(file.name.replace("_input", "_crit")))))
    for zone in kernel.folders(root / "sys/class/thermal", "thermal_zone[0-9]*"):
        if (kernel.read_text(zone / "type") or "").lower().startswith(_ZONES):
            found.append((zone / "temp", _trip(zone)))
    return tuple(found)


def _trip(zone: Path) -> int | None:
    """Return the temperature at which the zone is shut off."""
    kinds = kernel.folders(zone, "trip_point_*_type")
    critical = [
        file.with_name(file.name.replace("_type", "_temp")) for file in kinds if kernel.read_text(file) == "critical"
    ]
    limits = [limit for file in critical if (limit := kernel.number(file)) and limit > 0]
    return min(limits, default=None)
