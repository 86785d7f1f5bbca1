"""Read the CPU's clock and temperature sensors; None where there are none.

Needs nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from prony.instruments import kernel

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
        if (kernel.text(chip / "name") or "").startswith(_CHIPS):
            for file in kernel.folders(chip, "temp[0-9]*_input"):
                found.append((file, kernel.number(file.with_name(file.name.replace("_input", "_crit")))))
    for zone in kernel.folders(root / "sys/class/thermal", "thermal_zone[0-9]*"):
        if (kernel.text(zone / "type") or "").lower().startswith(_ZONES):
            found.append((zone / "temp", _trip(zone)))
    return tuple(found)


def _trip(zone: Path) -> int | None:
    """Return the temperature at which the zone is shut off."""
    kinds = kernel.folders(zone, "trip_point_*_type")
    critical = [
        file.with_name(file.name.replace("_type", "_temp")) for file in kinds if kernel.text(file) == "critical"
    ]
    limits = [limit for file in critical if (limit := kernel.number(file)) and limit > 0]
    return min(limits, default=None)
