"""Watch the card of one repetition: whether it is warm, its energy, clock and heat, and who else uses it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from prony.model.result import CanaryReading, GpuFacts
from prony.ports.probe import CardProbe, Probe
from prony.runner.child.wire import Message

# A counter of energy moves ten times a second: less than this cannot be resolved.
LEAST_ENERGY_S = 2.0
_METER_S = 0.02
_SELDOM_S = 0.25
_SETTLE_NS = 10**9
_SETTLE_MOST_NS = 30 * 10**9
# How much the medians of two seconds may differ; a clock under a power cap swings by a per cent for ever.
_CLOCK_CHANGE, _POWER_CHANGE, _POWER_CHANGE_W, _HEAT_CHANGE_C = 0.02, 0.02, 10.0, 1.0
_FOREIGN_SHARE = 0.05
_HELD_SHARE = 0.001
# Of the time of a fixed piece of work on the card, before or after: what it may wait for others.
_HELD_UP = 0.10
# What no workload does to itself: a power cap is the usual state of a card at hard work, heat and the brake are not.
_FAULTS = {"thermal": "heat", "brake": "the power brake of the host"}
_MIB = 2**20

Gauges = tuple[int, dict[str, float]]


class GpuWatch:
    """Follows the card that the engine names, among those that the probes show; without one it does nothing."""

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = [probe for probe in probes if isinstance(probe, CardProbe)]
        self._probe: CardProbe | None = None
        self._has_device = False
        self._idle: Mapping[str, float] = {}
        self._gauges: list[Gauges] = []
        self._steps: list[tuple[int, float]] = []
        self._begin: Gauges | None = None
        self._end: Gauges | None = None
        self._begin_us = 0
        self._others: Mapping[str, float] = {}
        self._health: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})
        self.card = ""
        self.is_metering = False
        self.is_warming = False

    @property
    def tick_s(self) -> float:
        return _METER_S if self.is_metering and self.card else _SELDOM_S

    def note_idle(self, readings: Mapping[str, float]) -> None:
        """Keep what the cards did before the model was loaded."""
        self._idle = readings

    def enter(self, phase: str, read: Callable[[], Any]) -> None:
        """Begin or end metering with the phase in which the card works back to back."""
        if phase == "sustained":
            self.is_metering = True
        elif self.is_metering:
            self.is_metering = False
            read()
            self._end = self._gauges[-1] if self._gauges else None
            if self._probe is not None:
                self._others = self._probe.read_others(self.card, self._begin_us) or {}
                self._health = (self._health[0], self._probe.read_health(self.card))

    def take(self, at_ns: int, readings: Mapping[str, float]) -> None:
        """Keep the own card's counters of one reading."""
        if self.card:
            own = {name: value for name, value in readings.items() if name.startswith(f"{self.card}_")}
            self._gauges.append((at_ns, {name.removeprefix(f"{self.card}_"): value for name, value in own.items()}))

    def meter(self) -> None:
        """Note the energy counter where it moved."""
        if not self.is_metering or self._probe is None:
            return
        value, at_ns = self._probe.read_energy_uj(self.card), time.perf_counter_ns()
        if value is not None and (not self._steps or value != self._steps[-1][1]):
            self._steps.append((at_ns, value))

    def is_settled(self, message: Message, at_ns: int, readings: Mapping[str, float]) -> bool:
        """Say whether clock, power and heat of the card have stopped to change, or will not within the time for it."""
        self._find(message)
        if not self.card:
            return True
        if not self._gauges:
            self.take(at_ns, readings)
        if message.get("settle") and not _is_steady(self._gauges):
            self.is_warming = True
            return False
        self.is_warming = False
        if self._probe is not None:
            self._health = (self._probe.read_health(self.card), {})
        self._begin = self._gauges[-1]
        self._begin_us = time.time_ns() // 1000
        return True

    def _find(self, message: Message) -> None:
        self._has_device = self._has_device or "device" in message
        if self.card or not message.get("device"):
            return
        for probe in self._probes:
            card = probe.find_card(message["device"])
            if card is not None:
                self._probe, self.card = probe, card

    def contamination(self, done: Message) -> tuple[str, ...]:
        """Return what disturbed the card, as `code: sentence`, with what the engine's own process told."""
        others = {pid: share for pid, share in self._others.items() if share > _FOREIGN_SHARE}
        told = [f"process {pid} {share:.0%}" for pid, share in others.items()]
        found = [f"foreign_gpu: other processes used the same GPU: {', '.join(told)} of its time"] if told else []
        held_up = max((one["gpu_held_up"] for one in done.get("canary", {}).values()), default=0.0)
        if not told and held_up > _HELD_UP:
            found.append(
                f"foreign_gpu: another program used the same GPU, but the driver does not show which: fixed work on it "
                f"waited for {held_up:.0%} of its time"
            )
        for cause, share in self._held_back().items():
            if cause in _FAULTS and share > _HELD_SHARE:
                found.append(f"gpu_{cause}: {_FAULTS[cause]} lowered the GPU's clock for {share:.1%} of the time")
        return (*found, *self._troubles())

    def _troubles(self) -> Iterator[str]:
        """Return what went wrong in the card's memory or with its link to the host."""
        if errors := self._errors().get("ecc_uncorrected"):
            yield f"gpu_ecc: {errors} memory errors of the GPU could not be corrected"
        before, after = (side.get("link_width") for side in self._health)
        if before is not None and after is not None and before != after:
            yield f"gpu_link: the GPU's link to the host changed from {before:.0f} to {after:.0f} lanes"

    def _errors(self) -> dict[str, int]:
        before, after = self._health
        both = [name for name in before if name.endswith("_total") and name in after]
        grown = {name.removesuffix("_total"): int(after[name] - before[name]) for name in both}
        return {name: count for name, count in grown.items() if count > 0}

    def describe(self, done: Message) -> GpuFacts | None:
        """Return what is known of the card, with what the engine's own process told; None of a job without one."""
        if not self._has_device:
            return None
        about: dict[str, Any] = done.get("device", {})
        memory = about.get("memory", {})
        mib = {f"{name}_mib": size / _MIB for name, size in memory.items()}
        copied = {name: about[name] for name in ("bytes_in", "bytes_out", "host_memory") if name in about}
        return GpuFacts.read(
            {"card": self.card, "uuid_hash": "" if self._probe is None else self._probe.card_digest(self.card)}
            | self._energy(done) | self._state() | mib | copied
        )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        if self._begin is None:
            return {}
        last = self._end or self._gauges[-1]
        during = self._during() or [self._begin[1]]
        clocks = [values["sm_mhz"] for values in during if "sm_mhz" in values]
        used = [values["memory_used_mib"] for values in during if "memory_used_mib" in values]
        return {
            "clock_mhz": median(clocks) if clocks else None,
            "temperature_begin_c": self._begin[1].get("temperature_c"),
            "temperature_end_c": last[1].get("temperature_c"),
            "idle_power_w": self._idle.get(f"{self.card}_power_w"),
            "held_back": self._held_back(),
            "others": dict(self._others),
            "errors": self._errors(),
            **{name: int(value) for name, value in (self._health[1] or self._health[0]).items() if "link_" in name},
            "device_peak_mib": max(used) if used else None,
        }

    def average_use(self) -> dict[str, float]:
        """Return how busy the own card was from the first measured inference to the last; nothing without a card."""
        readings = [{f"{self.card}_{name}": value for name, value in one.items()} for one in self._during()]
        return average_card_use(readings, self.card) if self.card else {}

    def _during(self) -> list[dict[str, float]]:
        if self._begin is None:
            return []
        last_ns = (self._end or self._gauges[-1])[0]
        return [values for at_ns, values in self._gauges if self._begin[0] < at_ns <= last_ns]

    def _held_back(self) -> dict[str, float]:
        """Return the share of the window in which each cause held the clock down."""
        if self._begin is None or self._end is None or self._end[0] <= self._begin[0]:
            return {}
        (begin_ns, before), (end_ns, after) = self._begin, self._end
        totals = [name for name in before if name.startswith("held_") and name in after]
        return {
            name.removeprefix("held_").removesuffix("_ns_total"): min(
                1.0, max(0.0, (after[name] - before[name]) / (end_ns - begin_ns))
            )
            for name in totals
        }

    def _energy(self, done: Message) -> dict[str, Any]:
        phase = done.get("phases", {}).get("sustained")
        if not self.card:
            return {"energy_note": "the driver does not show which GPU the engine used"}
        if phase is None:
            return {"energy_note": "the GPU was not busy all the time"}
        inside = [step for step in self._steps if phase["begin_ns"] < step[0] <= phase["end_ns"]]
        if not self._steps:
            return {"energy_note": "this GPU has no energy counter; a part of a GPU (MIG) never has one"}
        window_s = (inside[-1][0] - inside[0][0]) / 1e9 if inside else 0.0
        if window_s < LEAST_ENERGY_S:
            told = f"its counter was read over {window_s:.1f} s, but at least {LEAST_ENERGY_S:g} s are needed"
            return {"energy_note": f"{told}: raise measure.energy_window"}
        return {"energy_j": (inside[-1][1] - inside[0][1]) / 1e6, "energy_window_s": window_s}


def add_gpu_canaries(done: Message | None, before: CanaryReading, after: CanaryReading) -> dict[str, CanaryReading]:
    """Return both readings of a repetition's canary with what the engine's own process timed on its card."""
    told: Message = (done or {}).get("canary", {})
    return {
        "canary_before": before.model_copy(update=told.get("before", {})),
        "canary_after": after.model_copy(update=told.get("after", {})),
    }


def average_card_use(readings: Sequence[Mapping[str, float]], card: str = "") -> dict[str, float]:
    """Return how busy a card and its memory were in the mean over these readings; without a name, the busiest card."""
    names = {name.removesuffix("_busy") for values in readings for name in values if name.endswith("_busy")}
    cards = [card] if card else [name for name in names if not name.endswith("_memory")]
    uses = [_average_use(readings, name) for name in sorted(cards)]
    return max(uses, key=lambda use: use.get("gpu", 0.0), default={})


def _average_use(readings: Sequence[Mapping[str, float]], card: str) -> dict[str, float]:
    counters = {
        "gpu": f"{card}_busy", "gpu_memory": f"{card}_memory_busy", "gpu_sm": f"{card}_sm_share",
        "gpu_tensor": f"{card}_tensor_share", "gpu_dram": f"{card}_dram_share",
    }  # fmt: skip
    series = {field: [values[name] for values in readings if name in values] for field, name in counters.items()}
    return {field: fmean(values) for field, values in series.items() if values}


def _is_steady(gauges: Sequence[Gauges]) -> bool:
    """Compare the last second with the one before it; after half a minute a card is as steady as it gets."""
    now_ns, now = gauges[-1]
    if now_ns - gauges[0][0] >= _SETTLE_MOST_NS:
        return True
    recent = [values for at_ns, values in gauges if now_ns - at_ns < _SETTLE_NS]
    earlier = [values for at_ns, values in gauges if _SETTLE_NS <= now_ns - at_ns < 2 * _SETTLE_NS]
    if not earlier or now_ns - gauges[0][0] < 2 * _SETTLE_NS:
        return False
    limits = {
        "sm_mhz": _CLOCK_CHANGE * now.get("sm_mhz", 0.0),
        "mean_power_w": max(_POWER_CHANGE_W, _POWER_CHANGE * now.get("mean_power_w", 0.0)),
        "temperature_c": _HEAT_CHANGE_C,
    }
    return all(_change(earlier, recent, name) <= most for name, most in limits.items())


def _change(before: Sequence[Mapping[str, float]], after: Sequence[Mapping[str, float]], name: str) -> float:
    sides = [[values[name] for values in side if name in values] for side in (before, after)]
    return abs(median(sides[0]) - median(sides[1])) if all(sides) else 0.0
