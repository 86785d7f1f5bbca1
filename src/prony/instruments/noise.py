"""Measure what else the machine did between two readings, and whether that contaminates a number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from prony.instruments.counters import PRESSURES, TICK_S, HostCounters

if TYPE_CHECKING:
    from prony.model.result import Noise

__all__ = ["HostCounters", "contamination", "noise_between"]


@dataclass(frozen=True)
class NoiseLimit:
    """A reading above `most` convicts, once `slack` (what the counter's coarseness can feign) is allowed for."""

    code: str
    most: float
    slack: Callable[[Noise], float]
    sentence: str


def _none(_: Noise) -> float:
    return 0.0


def _coarseness(noise: Noise) -> float:
    return noise.cpu_resolution or 0.0


def _one_tick(noise: Noise) -> float:
    return TICK_S / noise.window_s if noise.window_s else 0.0


LIMITS = (
    NoiseLimit("foreign_cpu", 0.05, _coarseness, "other processes used {value:.0%} of the CPU (limit: {most:.0%})"),
    NoiseLimit("steal", 0.01, _one_tick, "the hypervisor took {value:.1%} of the CPU (limit: {most:.0%})"),
    NoiseLimit("pressure_memory", 0.05, _none, "tasks waited for memory {value:.0%} of the time (limit: {most:.0%})"),
    NoiseLimit(
        "quota_throttled_ms", 0, _none, "the CPU quota of the control group throttled the run for {value:.0f} ms"
    ),
    NoiseLimit("thermal_events", 0, _none, "the CPU throttled {value:.0f} times because of heat"),
    NoiseLimit("swapped_pages", 0, _none, "{value:.0f} pages were swapped"),
)
# Waiting for a CPU is no proof by itself: an engine with more threads than CPUs makes its own threads wait. It
# counts only beside another process that was seen to run, and then that one need not reach the limit above: the
# tick misses short visitors, while pressure is exact to the microsecond.
PRESSURE_CPU, FOREIGN_BESIDE_PRESSURE = 0.20, 0.02
# Pressure on io is recorded and never convicts: a stranger that waits for a disk does not slow down arithmetic.


def noise_between(
    before: HostCounters, after: HostCounters, own_cpu_s: float, cpus: Collection[int] | None = None
) -> Noise:
    """Return what else happened between two readings.

    `own_cpu_s` is the CPU time that the engine's child and the runner used in the window. `cpus` are the CPUs they
    may use (None: all). Foreign CPU is the larger of two shares: of the whole machine, because memory bandwidth
    and turbo are shared by all of it, and of our own CPUs, because one stolen core of two is lost in sixty-four.
    """
    from prony.model.result import Noise

    window_s = (after.at_ns - before.at_ns) / 1e9
    if window_s <= 0:
        return Noise()
    everywhere = before.cpus.keys() & after.cpus.keys()
    ours = everywhere & set(everywhere if cpus is None else cpus)
    places = [place for place in (everywhere, ours) if place]
    waited = {name: _grown(before.pressure_us.get(name), after.pressure_us.get(name)) for name in PRESSURES}
    shares = {name: None if us is None else min(1.0, us / 1e6 / window_s) for name, us in waited.items()}
    throttled_us = _grown(before.throttled_us, after.throttled_us)
    return Noise(
        foreign_cpu=max((_foreign(before, after, own_cpu_s, place) for place in places), default=None),
        steal=max((_stolen(before, after, place) for place in places), default=None),
        pressure_cpu=shares["cpu"],
        pressure_memory=shares["memory"],
        pressure_io=shares["io"],
        quota_throttled_ms=None if throttled_us is None else throttled_us / 1000,
        thermal_events=_grown(before.thermal_events, after.thermal_events),
        swapped_pages=_grown(before.swapped_pages, after.swapped_pages),
        window_s=window_s,
        cpu_resolution=max((_resolution(before, after, place) for place in places), default=None),
        unwatched="" if places else "this system does not report what other processes use",
    )


def _window_s(before: HostCounters, after: HostCounters, cpus: Collection[int]) -> float:
    return (after.at_ns - before.at_ns) / 1e9 * len(cpus)


def _foreign(before: HostCounters, after: HostCounters, own_cpu_s: float, cpus: Collection[int]) -> float:
    busy_s = sum(after.cpus[cpu].busy_s - before.cpus[cpu].busy_s for cpu in cpus)
    return min(1.0, max(0.0, (busy_s - own_cpu_s) / _window_s(before, after, cpus)))


def _stolen(before: HostCounters, after: HostCounters, cpus: Collection[int]) -> float:
    stolen_s = sum(after.cpus[cpu].steal_s - before.cpus[cpu].steal_s for cpu in cpus)
    return min(1.0, max(0.0, stolen_s / _window_s(before, after, cpus)))


def _resolution(before: HostCounters, after: HostCounters, cpus: Collection[int]) -> float:
    """Return the share of CPU that the counters' own coarseness can feign.

    Each CPU's counter moves in ticks, so it is off by up to one. And most kernels charge a whole tick to whoever runs
    when it strikes: a CPU that is partly busy is only sampled, with the spread of as many coin tosses as ticks.
    """
    window_s = (after.at_ns - before.at_ns) / 1e9
    ticks = max(1.0, window_s / TICK_S)
    busy = [min(1.0, max(0.0, (after.cpus[cpu].busy_s - before.cpus[cpu].busy_s) / window_s)) for cpu in cpus]
    spread = sqrt(sum(share * (1 - share) for share in busy) / ticks) / len(busy)
    return min(1.0, TICK_S / window_s + 2 * spread)


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def contamination(noise: Noise) -> tuple[str, ...]:
    """Return a reason, as `code: sentence`, for each reading that is beyond its limit. Unknown never convicts."""
    return tuple(_reasons(noise))


def _names(noise: Noise) -> str:
    """Return who used most of it, where that is known."""
    told = ", ".join(f"{name} {share:.0%}" for name, share in noise.busiest.items())
    return f"; busiest: {told}" if told else ""


def _reasons(noise: Noise) -> Iterator[str]:
    for limit in LIMITS:
        value: float | None = getattr(noise, limit.code)
        if value is not None and value > limit.most + limit.slack(noise):
            named = _names(noise) if limit.code == "foreign_cpu" else ""
            yield f"{limit.code}: {limit.sentence.format(value=value, most=limit.most)}{named}"
    waited, foreign = noise.pressure_cpu or 0.0, noise.foreign_cpu or 0.0
    if waited > PRESSURE_CPU and foreign > FOREIGN_BESIDE_PRESSURE + _coarseness(noise):
        yield f"pressure_cpu: tasks waited for a CPU {waited:.0%} of the time while other processes ran"
