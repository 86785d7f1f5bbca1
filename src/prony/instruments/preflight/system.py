"""Preflight checks of power, memory, disk, virtualisation and the rest beside the CPU."""

from __future__ import annotations

from collections.abc import Mapping

from prony.instruments.clock import SLOW_SOURCES
from prony.instruments.preflight.verdicts import Check, Value, number, word
from prony.model.device import Condition

_POWER = Check("power", "Power source", "plug the charger in, and choose: powerprofilesctl set performance")
_MEMORY = Check("memory", "Free memory", "close what holds it: ps -eo rss,pid,user,comm --sort=-rss | head")
_SWAP = Check(
    "swap", "Swap", "something was pushed out of memory; with enough of it free: sudo swapoff -a && sudo swapon -a"
)
_HUGE = Check("huge_pages", "Transparent huge pages")
_ASLR = Check(
    "address_randomization",
    "Address randomization",
    "without it every process has one memory layout, lucky or not: sudo sysctl kernel.randomize_va_space=2",
)
_CLOCK = Check(
    "clocksource",
    "Clock source",
    "a slow clock: sudo sh -c 'echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource'",
)
_GUEST = Check(
    "virtualization",
    "Virtual machine",
    "neighbours on the host can slow it down unseen: take more repeats, or a machine of your own",
)
_CONTAINER = Check("container", "Container")
_DISK = Check("disk", "Free disk", "delete old results (prony list, prony delete), or move PRONY_HOME to a larger disk")


def power(values: Mapping[str, Value]) -> Condition:
    source, profile = word(values, "power_source"), word(values, "power_profile")
    if source is None:
        return _POWER.unknown("this system does not tell")
    charge = number(values, "battery_percent")
    shown = source if charge is None else f"{source}, {charge:.0f}% charged"
    saving = profile in ("low-power", "quiet", "cool")
    shown += f", {profile} profile" if profile else ""
    return _POWER.conclude("warn" if source == "battery" or saving else "pass", shown)


def memory(values: Mapping[str, Value]) -> Condition:
    free, total = number(values, "memory_available_mib"), number(values, "memory_total_mib")
    if free is None or not total:
        return _MEMORY.unknown("this system does not tell")
    limit = number(values, "memory_limit_mib")
    shown = f"{free / 1024:.1f} of {total / 1024:.1f} GiB"
    shown += f", limited to {limit / 1024:.1f} GiB" if limit is not None and limit < total else ""
    if free < 256:
        return _MEMORY.conclude("block", shown)
    return _MEMORY.conclude("warn" if free < 1024 or free < 0.1 * total else "pass", shown)


def swap(values: Mapping[str, Value]) -> Condition:
    """What lies in swap for long does no harm; what moves does."""
    used, total, moved = (number(values, name) for name in ("swap_used_mib", "swap_total_mib", "swapped_pages"))
    if used is None or total is None:
        return _SWAP.unknown("this system does not tell")
    if moved:
        return _SWAP.conclude("warn", f"{moved:.0f} pages moved just now, {used:.0f} MiB in use")
    shown = "none" if not total else f"{used:.0f} of {total:.0f} MiB in use"
    return _SWAP.conclude("warn" if total and used > 0.1 * total else "pass", shown)


def huge_pages(values: Mapping[str, Value]) -> Condition:
    mode = word(values, "huge_pages")
    return _HUGE.unknown("this kernel has none") if mode is None else _HUGE.conclude("pass", mode)


def address_randomization(values: Mapping[str, Value]) -> Condition:
    mode = number(values, "address_randomization")
    if mode is None:
        return _ASLR.unknown("this system does not tell")
    return _ASLR.conclude("pass" if mode else "warn", "on" if mode else "off")


def clocksource(values: Mapping[str, Value]) -> Condition:
    source = word(values, "clocksource")
    if source is None:
        return _CLOCK.unknown("this system does not name it; prony calibrate measures the clock")
    return _CLOCK.conclude("warn" if source in SLOW_SOURCES else "pass", source)


def guest(values: Mapping[str, Value]) -> Condition:
    kind = word(values, "virtualization")
    if kind is None:
        return _GUEST.unknown("neither the firmware nor the CPU tells")
    return _GUEST.conclude("pass", "no") if kind == "none" else _GUEST.conclude("warn", kind)


def container(values: Mapping[str, Value]) -> Condition:
    kind = word(values, "container")
    return _CONTAINER.unknown("this system does not tell") if kind is None else _CONTAINER.conclude("pass", kind)


def disk(values: Mapping[str, Value]) -> Condition:
    free = number(values, "disk_free_mib")
    if free is None:
        return _DISK.unknown("the folder for results cannot be looked at")
    # As "less is worse", so the signs are turned round.
    return _DISK.above(-free, f"{free / 1024:.1f} GiB", warn=-1024, block=-100)
