"""Read the machine's current state from /proc and /sys, or through psutil; None for what is unknown."""

from __future__ import annotations

import os
import shutil
import sys
import time
from functools import cache
from pathlib import Path

from prony.instruments import cgroup, counters, kernel
from prony.instruments.device import cpuinfo, machine
from prony.instruments.device.linux import allowed_cpus

Value = float | int | str | None
Values = dict[str, Value]

_CPU = "sys/devices/system/cpu"


def see(root: Path = kernel.ROOT) -> Values:
    """Look at everything that takes no time to look at."""
    if sys.platform != "linux" and root == kernel.ROOT:
        return _see_elsewhere()
    return {**_load(root), **_clocks(root), **_power(root), **_memory(root), **_system(root)}


def disk_free_mib(home: Path) -> int | None:
    """Return the room left on the disk of a folder that may not exist yet."""
    nearest = next((folder for folder in (home, *home.parents) if folder.exists()), None)
    try:
        return None if nearest is None else shutil.disk_usage(nearest).free // 2**20
    except OSError:
        return None


def _load(root: Path) -> Values:
    loads = (kernel.read_text(root / "proc/loadavg") or "").split()
    online = kernel.cpu_list(kernel.read_text(root / _CPU / "online"))
    pressures = {f"pressure_{name}_avg10": _avg10(root, name) for name in ("cpu", "memory", "io")}
    return {
        "load_1m": float(loads[0]) if loads else None,
        "cpus_online": len(online) or os.cpu_count(),
        "cpus_allowed": allowed_cpus(),
        "quota_cores": cgroup.quota_cores(root),
        **pressures,
    }


def _avg10(root: Path, name: str) -> float | None:
    words = (kernel.read_text(root / "proc/pressure" / name) or "").split()
    return float(words[1].partition("=")[2]) if len(words) > 1 and words[1].startswith("avg10=") else None


def _clocks(root: Path) -> Values:
    policies = kernel.folders(root / _CPU / "cpufreq", "policy[0-9]*")
    governors = {word for policy in policies if (word := kernel.read_text(policy / "scaling_governor"))}
    preferences = {word for policy in policies if (word := kernel.read_text(policy / "energy_performance_preference"))}
    caps = [_cap(policy) for policy in policies]
    heat = counters.heat(root)
    events = [
        kernel.number(file) for file in kernel.folders(root / _CPU, "cpu[0-9]*/thermal_throttle/*_throttle_count")
    ]
    counts = [count for count in events if count is not None]
    return {
        "governor": "+".join(sorted(governors)) or None,
        "energy_preference": "+".join(sorted(preferences)) or None,
        "turbo": _turbo(root),
        "smt": {"1": "on", "0": "off"}.get(kernel.read_text(root / _CPU / "smt/active") or ""),
        "frequency_mhz": counters.frequency_mhz(root),
        # The share of its best clock to which somebody capped the CPU.
        "frequency_cap": min((cap for cap in caps if cap is not None), default=None),
        "temperature_c": heat.hottest_c if heat else None,
        "headroom_c": heat.headroom_c if heat else None,
        "throttle_events": sum(counts) if counts else None,
    }


def _cap(policy: Path) -> float | None:
    most, best = kernel.number(policy / "scaling_max_freq"), kernel.number(policy / "cpuinfo_max_freq")
    return None if most is None or not best else most / best


def _turbo(root: Path) -> str | None:
    off, boost = kernel.number(root / _CPU / "intel_pstate/no_turbo"), kernel.number(root / _CPU / "cpufreq/boost")
    if off is not None:
        return "off" if off else "on"
    return None if boost is None else ("on" if boost else "off")


def _power(root: Path) -> Values:
    supplies = kernel.folders(root / "sys/class/power_supply", "*")
    kinds = {supply: kernel.read_text(supply / "type") for supply in supplies}
    # A mouse or a pen has a battery too; its scope says Device.
    own = [supply for supply in supplies if kernel.read_text(supply / "scope") != "Device"]
    batteries = [supply for supply in own if kinds[supply] == "Battery"]
    mains = [kernel.number(supply / "online") for supply in own if kinds[supply] in ("Mains", "USB")]
    draining = any(kernel.read_text(battery / "status") == "Discharging" for battery in batteries)
    charges = [charge for battery in batteries if (charge := kernel.number(battery / "capacity")) is not None]
    on_battery = draining or (bool(batteries) and bool(mains) and not any(mains))
    return {
        "power_source": "no battery" if not batteries else ("battery" if on_battery else "mains"),
        "battery_percent": min(charges, default=None),
        "power_profile": kernel.read_text(root / "sys/firmware/acpi/platform_profile"),
    }


def _memory(root: Path) -> Values:
    memory, virtual = kernel.read_table(root / "proc/meminfo"), kernel.read_table(root / "proc/vmstat")
    limit = cgroup.memory_limit_bytes(root)
    swap_kib, free_kib = memory.get("SwapTotal"), memory.get("SwapFree")
    available = memory.get("MemAvailable")
    huge = kernel.read_text(root / "sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "memory_total_mib": memory["MemTotal"] // 1024 if "MemTotal" in memory else None,
        "memory_available_mib": None if available is None else available // 1024,
        "memory_limit_mib": None if limit is None else limit // 2**20,
        "swap_total_mib": None if swap_kib is None else swap_kib // 1024,
        "swap_used_mib": None if swap_kib is None or free_kib is None else (swap_kib - free_kib) // 1024,
        "swapped_pages_total": virtual["pswpin"] + virtual["pswpout"] if "pswpin" in virtual else None,
        "huge_pages": huge.partition("[")[2].partition("]")[0] if huge else None,
    }


@cache
def _virtualization(root: Path) -> str | None:
    """Found once a process: it cannot change, and the CPU's description is long on a large machine."""
    is_guest = cpuinfo.identify(kernel.read_text(root / "proc/cpuinfo") or "").is_guest
    return machine.virtualization(is_guest, root)


def _system(root: Path) -> Values:
    uptime = (kernel.read_text(root / "proc/uptime") or "").split()
    return {
        "address_randomization": kernel.number(root / "proc/sys/kernel/randomize_va_space"),
        "clocksource": kernel.read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "virtualization": _virtualization(root),
        "container": machine.container(root),
        "uptime_s": float(uptime[0]) if uptime else None,
    }


def _see_elsewhere() -> dict[str, Value]:
    """Look at what psutil offers on every system; all else stays absent, and so unknown."""
    import psutil

    memory, swap, frequency = psutil.virtual_memory(), psutil.swap_memory(), psutil.cpu_freq()
    battery = psutil.sensors_battery() if hasattr(psutil, "sensors_battery") else None
    source = "no battery" if battery is None else ("mains" if battery.power_plugged else "battery")
    return {
        "load_1m": psutil.getloadavg()[0],
        "cpus_online": os.cpu_count(),
        "cpus_allowed": os.cpu_count(),
        "frequency_mhz": frequency.current if frequency else None,
        "power_source": source,
        "battery_percent": None if battery is None else battery.percent,
        "memory_total_mib": memory.total // 2**20,
        "memory_available_mib": memory.available // 2**20,
        "swap_total_mib": swap.total // 2**20,
        "swap_used_mib": swap.used // 2**20,
        "uptime_s": time.time() - psutil.boot_time(),
    }
