"""Read the current state of a machine without /proc through psutil (macOS, Windows)."""

from __future__ import annotations

import os
import time

Value = float | int | str | None


def see_elsewhere() -> dict[str, Value]:
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
