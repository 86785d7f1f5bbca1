"""Preflight checks of the CPU: foreign load, clock, throttling, temperature and limits."""

from __future__ import annotations

from collections.abc import Mapping

from prony.instruments.preflight.verdicts import Check, Value, number, word
from prony.model.device import Condition

_NO_FREQUENCY = "this kernel shows no CPU clocks (usual in a virtual machine: the host decides)"

_FOREIGN = Check(
    "foreign_cpu", "CPU used by others", "close what runs beside: ps -eo pcpu,pid,user,comm --sort=-pcpu | head"
)
_STEAL = Check(
    "steal", "CPU taken by the hypervisor", "a neighbour on the same host is busy: wait, or use a dedicated host"
)
_LOAD = Check("load", "Load average", "wait until the machine is quiet, see who runs: top -o %CPU")
_PRESSURE = Check(
    "pressure", "Waiting for a CPU", "more tasks than CPUs want to run: ps -eo pcpu,pid,user,comm --sort=-pcpu | head"
)
_GOVERNOR = Check("governor", "Frequency governor", "sudo cpupower frequency-set -g performance")
_TURBO = Check("turbo", "Turbo", "the clock will follow the heat; for the steadiest numbers turn it off")
_CAP = Check(
    "frequency",
    "CPU clock",
    "somebody capped it: sudo cpupower frequency-set -u MAXIMUM (cpupower frequency-info tells it)",
)
_SMT = Check("smt", "Hardware threads")
_HEAT = Check("heat", "Temperature", "let it cool down: clear the vents, raise the fans, pause between runs")
_QUOTA = Check(
    "quota",
    "CPU quota",
    "raise the quota (docker: --cpus, Kubernetes: limits.cpu), or ask for no more threads than it gives",
)
_AFFINITY = Check(
    "affinity",
    "Allowed CPUs",
    "this process may not use all CPUs: taskset -cp $$ tells which; do not ask for more threads",
)


def foreign_cpu(values: Mapping[str, Value]) -> Condition:
    share = number(values, "foreign_cpu")
    if share is None:
        return _FOREIGN.unknown("this system does not count CPU time in a way we can read")
    coarse = number(values, "cpu_resolution") or 0.0
    return _FOREIGN.above(share, f"{share:.1%} of the machine", warn=0.05 + coarse, block=0.20 + coarse)


def steal(values: Mapping[str, Value]) -> Condition:
    share = number(values, "steal")
    if share is None:
        return _STEAL.unknown("this system does not count it")
    tick = 0.01 / (number(values, "window_s") or 1.0)
    return _STEAL.above(share, f"{share:.1%}", warn=0.01 + tick, block=0.20 + tick)


def load(values: Mapping[str, Value]) -> Condition:
    average, cpus = number(values, "load_1m"), number(values, "cpus_online")
    if average is None or not cpus:
        return _LOAD.unknown("this system keeps no load average")
    return _LOAD.above(average, f"{average:.2f} on {cpus:.0f} CPUs", warn=0.5 * cpus)


def pressure(values: Mapping[str, Value]) -> Condition:
    percent = number(values, "pressure_cpu_avg10")
    if percent is None:
        return _PRESSURE.unknown("this kernel keeps no pressure figures (boot it with psi=1)")
    return _PRESSURE.above(percent, f"{percent:.1f}% of the last 10 s", warn=5)


def governor(values: Mapping[str, Value]) -> Condition:
    name, preference = word(values, "governor"), word(values, "energy_preference")
    if name is None:
        return _GOVERNOR.unknown(_NO_FREQUENCY)
    shown = f"{name}, prefers {preference}" if preference else name
    return _GOVERNOR.conclude("pass" if name == "performance" else "warn", shown)


def turbo(values: Mapping[str, Value]) -> Condition:
    """Turbo disturbs only where there is little room before the heat takes it back."""
    state, room = word(values, "turbo"), number(values, "headroom_c")
    if state is None:
        return _TURBO.unknown("this kernel does not tell (usual in a virtual machine)")
    if state == "off" or (room is not None and room >= 10):
        return _TURBO.conclude("pass", state if room is None else f"{state}, {room:.0f} °C to the limit")
    why = "on, and no temperature to judge it by" if room is None else f"on, only {room:.0f} °C to the limit"
    off = (
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo (AMD: echo 0 | sudo tee .../cpu/cpufreq/boost)"
    )
    return _TURBO.conclude("warn", why, f"{_TURBO.hint}: {off}")


def frequency(values: Mapping[str, Value]) -> Condition:
    now, cap = number(values, "frequency_mhz"), number(values, "frequency_cap")
    if now is None and cap is None:
        return _CAP.unknown(_NO_FREQUENCY)
    shown = "" if now is None else f"{now:.0f} MHz now"
    if cap is not None and cap < 0.99:
        return _CAP.conclude("warn", f"{shown}, capped at {cap:.0%} of the best".lstrip(", "))
    return _CAP.conclude("pass", shown or "not capped")


def smt(values: Mapping[str, Value]) -> Condition:
    state = word(values, "smt")
    if state is None:
        return _SMT.unknown("this system does not tell whether CPUs share a core")
    return _SMT.conclude("pass", "two CPUs share a core" if state == "on" else "each CPU is a core of its own")


def temperature(values: Mapping[str, Value]) -> Condition:
    degrees, room = number(values, "temperature_c"), number(values, "headroom_c")
    if degrees is None:
        return _HEAT.unknown("no sensor of the CPU can be read (usual in a virtual machine)")
    events = number(values, "throttle_events")
    shown = f"{degrees:.0f} °C, " + ("limit not told" if room is None else f"{room:.0f} °C to the limit")
    shown += f", throttled {events:.0f} times since boot" if events else ""
    return _HEAT.conclude("warn" if room is not None and room < 10 else "pass", shown)


def quota(values: Mapping[str, Value]) -> Condition:
    cores, cpus = number(values, "quota_cores"), number(values, "cpus_allowed") or 1
    if cores is None:
        return _QUOTA.conclude("pass", "none")
    held = number(values, "quota_throttled_ms") or 0.0
    shown = f"{cores:g} cores of {cpus:.0f}" + (f", held back {held:.0f} ms just now" if held else "")
    return _QUOTA.conclude("warn" if held or cores < cpus else "pass", shown)


def affinity(values: Mapping[str, Value]) -> Condition:
    allowed, online = number(values, "cpus_allowed"), number(values, "cpus_online")
    if allowed is None or online is None:
        return _AFFINITY.unknown("this system does not tell")
    return _AFFINITY.conclude("warn" if allowed < online else "pass", f"{allowed:.0f} of {online:.0f}")
