"""Preflight checks: each reads one thing of the machine's state and says what it means for a measurement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prony.instruments.clock import SLOW_SOURCES
from prony.instruments.device.nvidia import ask_library, handles, management, throttles
from prony.model.device import Condition

Value = float | int | str | None
Status = Literal["pass", "warn", "block", "unknown"]


@dataclass(frozen=True)
class Check:
    """What a check is called, and what to do where it does not pass."""

    code: str
    title: str
    hint: str = ""

    def conclude(self, status: Status, value: str, hint: str | None = None) -> Condition:
        """Return the condition. What passes needs no advice."""
        advice = self.hint if hint is None else hint
        return Condition(
            code=self.code, title=self.title, status=status, value=value, hint="" if status == "pass" else advice
        )

    def unknown(self, why: str) -> Condition:
        return self.conclude("unknown", why, hint="")

    def above(self, value: float, shown: str, *, warn: float, block: float | None = None) -> Condition:
        """Warn above one limit, block above another."""
        if block is not None and value > block:
            return self.conclude("block", shown)
        return self.conclude("warn" if value > warn else "pass", shown)


def show_number(values: Mapping[str, Value], name: str) -> float | None:
    """Return a value that is a number, or None."""
    value = values.get(name)
    return float(value) if isinstance(value, int | float) else None


def word(values: Mapping[str, Value], name: str) -> str | None:
    """Return a value that is text, or None."""
    value = values.get(name)
    return value if isinstance(value, str) else None


_NO_FREQUENCY = "this kernel does not report CPU clocks (usual in a virtual machine)"

_FOREIGN = Check(
    "foreign_cpu",
    "CPU used by others",
    "stop other programs; to find them: ps -eo pcpu,pid,user,comm --sort=-pcpu | head",
)
_STEAL = Check(
    "steal", "CPU taken by the hypervisor", "another virtual machine on the host is busy: wait, or use a dedicated host"
)
_LOAD = Check("load", "Load average", "wait until the machine is idle; to see what runs: top -o %CPU")
_PRESSURE = Check(
    "pressure",
    "Waiting for a CPU",
    "there are more active tasks than CPUs; to find them: ps -eo pcpu,pid,user,comm --sort=-pcpu | head",
)
_GOVERNOR = Check("governor", "Frequency governor", "sudo cpupower frequency-set -g performance")
_TURBO = Check("turbo", "Turbo", "the clock changes with the temperature; for the most stable results, turn turbo off")
_CAP = Check(
    "frequency",
    "CPU clock",
    "the clock is capped: sudo cpupower frequency-set -u MAXIMUM (see cpupower frequency-info)",
)
_SMT = Check("smt", "Hardware threads")
_HEAT = Check(
    "heat", "Temperature", "let the machine cool down: clear the vents, raise the fan speed, pause between runs"
)
_QUOTA = Check(
    "quota",
    "CPU quota",
    "raise the quota (docker: --cpus, Kubernetes: limits.cpu), or use no more threads than it allows",
)
_AFFINITY = Check(
    "affinity",
    "Allowed CPUs",
    "this process may not use all CPUs (see taskset -cp $$): do not use more threads than that",
)


def foreign_cpu(values: Mapping[str, Value]) -> Condition:
    share = show_number(values, "foreign_cpu")
    if share is None:
        return _FOREIGN.unknown("this system does not report CPU time in a readable form")
    coarse = show_number(values, "cpu_resolution") or 0.0
    return _FOREIGN.above(share, f"{share:.1%} of the machine", warn=0.05 + coarse, block=0.20 + coarse)


def steal(values: Mapping[str, Value]) -> Condition:
    share = show_number(values, "steal")
    if share is None:
        return _STEAL.unknown("not reported by this system")
    tick = 0.01 / (show_number(values, "window_s") or 1.0)
    return _STEAL.above(share, f"{share:.1%}", warn=0.01 + tick, block=0.20 + tick)


def check_load(values: Mapping[str, Value]) -> Condition:
    average, cpus = show_number(values, "load_1m"), show_number(values, "cpus_online")
    if average is None or not cpus:
        return _LOAD.unknown("this system has no load average")
    return _LOAD.above(average, f"{average:.2f} on {cpus:.0f} CPUs", warn=0.5 * cpus)


def pressure(values: Mapping[str, Value]) -> Condition:
    percent = show_number(values, "pressure_cpu_avg10")
    if percent is None:
        return _PRESSURE.unknown("this kernel does not report pressure (boot it with psi=1)")
    return _PRESSURE.above(percent, f"{percent:.1f}% of the last 10 s", warn=5)


def governor(values: Mapping[str, Value]) -> Condition:
    name, preference = word(values, "governor"), word(values, "energy_preference")
    if name is None:
        return _GOVERNOR.unknown(_NO_FREQUENCY)
    shown = f"{name}, prefers {preference}" if preference else name
    return _GOVERNOR.conclude("pass" if name == "performance" else "warn", shown)


def turbo(values: Mapping[str, Value]) -> Condition:
    """Turbo disturbs only where there is little room before the heat takes it back."""
    state, room = word(values, "turbo"), show_number(values, "headroom_c")
    if state is None:
        return _TURBO.unknown("not reported by this kernel (usual in a virtual machine)")
    if state == "off" or (room is not None and room >= 10):
        return _TURBO.conclude("pass", state if room is None else f"{state}, {room:.0f} °C to the limit")
    why = "on, and the temperature is unknown" if room is None else f"on, only {room:.0f} °C to the limit"
    off = (
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo (AMD: echo 0 | sudo tee .../cpu/cpufreq/boost)"
    )
    return _TURBO.conclude("warn", why, f"{_TURBO.hint}: {off}")


def frequency(values: Mapping[str, Value]) -> Condition:
    now, cap = show_number(values, "frequency_mhz"), show_number(values, "frequency_cap")
    if now is None and cap is None:
        return _CAP.unknown(_NO_FREQUENCY)
    shown = "" if now is None else f"{now:.0f} MHz now"
    if cap is not None and cap < 0.99:
        return _CAP.conclude("warn", f"{shown}, capped at {cap:.0%} of the best".lstrip(", "))
    return _CAP.conclude("pass", shown or "not capped")


def smt(values: Mapping[str, Value]) -> Condition:
    state = word(values, "smt")
    if state is None:
        return _SMT.unknown("this system does not report whether CPUs share a core")
    return _SMT.conclude("pass", "two CPUs share a core" if state == "on" else "each CPU is a separate core")


def temperature(values: Mapping[str, Value]) -> Condition:
    degrees, room = show_number(values, "temperature_c"), show_number(values, "headroom_c")
    if degrees is None:
        return _HEAT.unknown("no readable CPU sensor (usual in a virtual machine)")
    events = show_number(values, "throttle_events")
    shown = f"{degrees:.0f} °C, " + ("limit unknown" if room is None else f"{room:.0f} °C to the limit")
    shown += f", throttled {events:.0f} times since boot" if events else ""
    return _HEAT.conclude("warn" if room is not None and room < 10 else "pass", shown)


def quota(values: Mapping[str, Value]) -> Condition:
    cores, cpus = show_number(values, "quota_cores"), show_number(values, "cpus_allowed") or 1
    if cores is None:
        return _QUOTA.conclude("pass", "none")
    held = show_number(values, "quota_throttled_ms") or 0.0
    shown = f"{cores:g} cores of {cpus:.0f}" + (f", throttled for {held:.0f} ms just now" if held else "")
    return _QUOTA.conclude("warn" if held or cores < cpus else "pass", shown)


def affinity(values: Mapping[str, Value]) -> Condition:
    allowed, online = show_number(values, "cpus_allowed"), show_number(values, "cpus_online")
    if allowed is None or online is None:
        return _AFFINITY.unknown("not reported by this system")
    return _AFFINITY.conclude("warn" if allowed < online else "pass", f"{allowed:.0f} of {online:.0f}")


def see_gpus() -> dict[str, Value]:
    """Return the state of every NVIDIA GPU; nothing at all on a machine without one."""
    library = management()
    found: dict[str, Value] = {}
    for index, handle in enumerate(handles()):
        found |= {f"gpu{index}_{name}": value for name, value in _one(library, handle).items()}
    return found


def judge_gpus(values: Mapping[str, Value]) -> list[Condition]:
    """Return the conditions of every GPU in the values."""
    count = sum(name.endswith("_strangers") for name in values)
    return [condition for index in range(count) for condition in _judge(index, values)]


def _one(library: Any, handle: Any) -> dict[str, Value]:
    running = ask_library(library.nvmlDeviceGetComputeRunningProcesses, handle)
    persistence = ask_library(library.nvmlDeviceGetPersistenceMode, handle)
    mig = ask_library(library.nvmlDeviceGetMigMode, handle)
    clients = ask_library(library.nvmlDeviceGetMPSComputeRunningProcesses, handle)
    return {
        "strangers": None if running is None else sum(process.pid != os.getpid() for process in running),
        "temperature_c": ask_library(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU),
        "sm_mhz": ask_library(library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM),
        "sm_max_mhz": ask_library(library.nvmlDeviceGetMaxClockInfo, handle, library.NVML_CLOCK_SM),
        "throttle_reasons": ask_library(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        "persistence": None if persistence is None else ("on" if persistence else "off"),
        "mig": "on" if mig is not None and mig[0] else "off",
        "mps_clients": 0 if clients is None else len(clients),
    }


def _judge(index: int, values: Mapping[str, Value]) -> list[Condition]:
    seen = {name: values.get(f"gpu{index}_{name}") for name in ("strangers", "persistence", "sm_mhz", "sm_max_mhz")}
    return [
        _strangers(index, seen["strangers"]),
        _check_throttling(index, values.get(f"gpu{index}_throttle_reasons")),
        _persistence(index, seen["persistence"]),
        _check_sharing(index, values.get(f"gpu{index}_mig"), values.get(f"gpu{index}_mps_clients")),
        Condition(
            code=f"gpu{index}_clocks",
            title=f"GPU {index} clocks",
            status="unknown",
            value=f"{seen['sm_mhz']} MHz now, {seen['sm_max_mhz']} MHz at most; whether they are locked is unknown",
            hint=f"to lock them: sudo nvidia-smi -i {index} --lock-gpu-clocks=MHZ (undo: --reset-gpu-clocks)",
        ),
    ]


def _strangers(index: int, count: Value) -> Condition:
    code, title = f"gpu{index}_processes", f"Other processes on GPU {index}"
    if not isinstance(count, int):
        return Condition(code=code, title=title, status="unknown", value="the driver does not list them")
    hint = (
        f"to see which: nvidia-smi -i {index} --query-compute-apps=pid,name,used_memory --format=csv" if count else ""
    )
    return Condition(code=code, title=title, status="warn" if count else "pass", value=str(count or "none"), hint=hint)


def _check_throttling(index: int, mask: Value) -> Condition:
    code, title = f"gpu{index}_throttling", f"GPU {index} throttling"
    if not isinstance(mask, int):
        return Condition(code=code, title=title, status="unknown", value="not reported by the driver")
    reasons = throttles(mask)
    hint = "let it cool down, or raise the limit: nvidia-smi -q -d PERFORMANCE,POWER" if reasons else ""
    status = "warn" if reasons else "pass"
    return Condition(code=code, title=title, status=status, value=", ".join(reasons) or "none", hint=hint)


def _check_sharing(index: int, mig: Value, clients: Value) -> Condition:
    """A slice of a card, or a card that others share by MPS, is another device than the whole card."""
    code, title = f"gpu{index}_sharing", f"GPU {index} sharing"
    if mig == "on":
        hint = "a slice has only part of the multiprocessors and bandwidth: compare it only with equal slices"
        return Condition(code=code, title=title, status="warn", value="split into slices (MIG)", hint=hint)
    if clients:
        hint = "to see which: nvidia-smi; to stop MPS for everyone: echo quit | nvidia-cuda-mps-control"
        return Condition(code=code, title=title, status="warn", value=f"shared by MPS, {clients} clients", hint=hint)
    return Condition(code=code, title=title, status="pass", value="not shared: no MIG, no MPS")


def _persistence(index: int, mode: Value) -> Condition:
    code, title = f"gpu{index}_persistence", f"GPU {index} persistence mode"
    if mode is None:
        return Condition(code=code, title=title, status="unknown", value="not reported by the driver")
    hint = "" if mode == "on" else f"without it, the driver reloads at first use: sudo nvidia-smi -i {index} -pm 1"
    return Condition(code=code, title=title, status="pass" if mode == "on" else "warn", value=str(mode), hint=hint)


_POWER = Check("power", "Power source", "connect the charger, and run: powerprofilesctl set performance")
_MEMORY = Check(
    "memory", "Free memory", "close programs that use it; to find them: ps -eo rss,pid,user,comm --sort=-rss | head"
)
_SWAP = Check("swap", "Swap", "memory was swapped out; if enough is free now: sudo swapoff -a && sudo swapon -a")
_HUGE = Check("huge_pages", "Transparent huge pages")
_ASLR = Check(
    "address_randomization",
    "Address randomization",
    "without it, all runs share one memory layout, which biases results: sudo sysctl kernel.randomize_va_space=2",
)
_CLOCK = Check(
    "clocksource",
    "Clock source",
    "a slow clock: sudo sh -c 'echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource'",
)
_GUEST = Check(
    "virtualization",
    "Virtual machine",
    "other virtual machines on the host can slow it down unnoticed: use more repeats, or a dedicated machine",
)
_CONTAINER = Check("container", "Container")
_DISK = Check("disk", "Free disk", "delete old results (prony list, prony delete), or move PRONY_HOME to a larger disk")


def power(values: Mapping[str, Value]) -> Condition:
    source, profile = word(values, "power_source"), word(values, "power_profile")
    if source is None:
        return _POWER.unknown("not reported by this system")
    charge = show_number(values, "battery_percent")
    shown = source if charge is None else f"{source}, {charge:.0f}% charged"
    saving = profile in ("low-power", "quiet", "cool")
    shown += f", {profile} profile" if profile else ""
    return _POWER.conclude("warn" if source == "battery" or saving else "pass", shown)


def check_memory(values: Mapping[str, Value]) -> Condition:
    free, total = show_number(values, "memory_available_mib"), show_number(values, "memory_total_mib")
    if free is None or not total:
        return _MEMORY.unknown("not reported by this system")
    limit = show_number(values, "memory_limit_mib")
    shown = f"{free / 1024:.1f} of {total / 1024:.1f} GiB"
    shown += f", limited to {limit / 1024:.1f} GiB" if limit is not None and limit < total else ""
    if free < 256:
        return _MEMORY.conclude("block", shown)
    return _MEMORY.conclude("warn" if free < 1024 or free < 0.1 * total else "pass", shown)


def swap(values: Mapping[str, Value]) -> Condition:
    """What lies in swap for long does no harm; what moves does."""
    used, total, moved = (show_number(values, name) for name in ("swap_used_mib", "swap_total_mib", "swapped_pages"))
    if used is None or total is None:
        return _SWAP.unknown("not reported by this system")
    if moved:
        return _SWAP.conclude("warn", f"{moved:.0f} pages moved just now, {used:.0f} MiB in use")
    shown = "none" if not total else f"{used:.0f} of {total:.0f} MiB in use"
    return _SWAP.conclude("warn" if total and used > 0.1 * total else "pass", shown)


def huge_pages(values: Mapping[str, Value]) -> Condition:
    mode = word(values, "huge_pages")
    return _HUGE.unknown("not available in this kernel") if mode is None else _HUGE.conclude("pass", mode)


def address_randomization(values: Mapping[str, Value]) -> Condition:
    mode = show_number(values, "address_randomization")
    if mode is None:
        return _ASLR.unknown("not reported by this system")
    return _ASLR.conclude("pass" if mode else "warn", "on" if mode else "off")


def clocksource(values: Mapping[str, Value]) -> Condition:
    source = word(values, "clocksource")
    if source is None:
        return _CLOCK.unknown("not reported by this system; prony calibrate measures the clock")
    return _CLOCK.conclude("warn" if source in SLOW_SOURCES else "pass", source)


def guest(values: Mapping[str, Value]) -> Condition:
    kind = word(values, "virtualization")
    if kind is None:
        return _GUEST.unknown("not reported by the firmware or the CPU")
    return _GUEST.conclude("pass", "no") if kind == "none" else _GUEST.conclude("warn", kind)


def check_container(values: Mapping[str, Value]) -> Condition:
    kind = word(values, "container")
    return _CONTAINER.unknown("not reported by this system") if kind is None else _CONTAINER.conclude("pass", kind)


def disk(values: Mapping[str, Value]) -> Condition:
    free = show_number(values, "disk_free_mib")
    if free is None:
        return _DISK.unknown("the folder for results cannot be read")
    # As "less is worse", so the signs are turned round.
    return _DISK.above(-free, f"{free / 1024:.1f} GiB", warn=-1024, block=-100)
