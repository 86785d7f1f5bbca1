"""Preflight checks: how the machine is right now, and what would make a measurement noisy."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from prony.instruments.noise import HostCounters, noise_between
from prony.instruments.preflight import checks
from prony.instruments.preflight.checks import Value, judge_gpus, see_gpus
from prony.instruments.preflight.machine_state import disk_free_mib, see
from prony.model.device import Condition, State
from prony.ports.clock import Clock, SystemClock

__all__ = ["judge_machine", "look", "quick_state"]

_Judgement = Callable[[Mapping[str, Value]], Condition]

# What only shows when the machine is watched for a while.
WATCHED: tuple[_Judgement, ...] = (checks.foreign_cpu, checks.steal)
AT_ONCE: tuple[_Judgement, ...] = (
    checks.check_load,
    checks.pressure,
    checks.quota,
    checks.affinity,
    checks.governor,
    checks.turbo,
    checks.frequency,
    checks.smt,
    checks.temperature,
    checks.power,
    checks.check_memory,
    checks.swap,
    checks.huge_pages,
    checks.address_randomization,
    checks.clocksource,
    checks.guest,
    checks.check_container,
    checks.disk,
)


def look(*, window_s: float = 0.7, home: Path | None = None, clock: Clock | None = None) -> State:
    """Watch the machine for `window_s` seconds and judge all of it. `home` is where results will be kept."""
    before = HostCounters.read()
    # The pause is the measurement: whatever runs in it is somebody else's.
    time.sleep(window_s)
    after = HostCounters.read()
    noise = noise_between(before, after, after.own_cpu_s - before.own_cpu_s, _allowed_cpus())
    watched = ("foreign_cpu", "steal", "swapped_pages", "quota_throttled_ms", "window_s", "cpu_resolution")
    values = _values(home) | {name: getattr(noise, name) for name in watched}
    return State(
        taken_at=(clock or SystemClock()).now(),
        values=values,
        conditions=judge_machine(values, checks=(*WATCHED, *AT_ONCE)),
    )


def quick_state(*, home: Path | None = None, clock: Clock | None = None) -> State:
    """Look without watching, for each run's record: a few milliseconds, the first time on a GPU's driver excepted."""
    values = _values(home)
    return State(taken_at=(clock or SystemClock()).now(), values=values, conditions=judge_machine(values))


def judge_machine(values: Mapping[str, Value], checks: tuple[_Judgement, ...] = AT_ONCE) -> tuple[Condition, ...]:
    """Return a condition for each check, and for each GPU that was seen."""
    return (*(check(values) for check in checks), *judge_gpus(values))


def _values(home: Path | None) -> dict[str, Value]:
    place = home or Path(os.environ.get("PRONY_HOME") or Path.home())
    return {**see(), "disk_free_mib": disk_free_mib(place), **see_gpus()}


def _allowed_cpus() -> set[int] | None:
    return os.sched_getaffinity(0) if sys.platform == "linux" else None
