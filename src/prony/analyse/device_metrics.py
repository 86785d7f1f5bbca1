"""Compute the metrics of a device that works beside the host: its own time, launches, copies, memory and state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prony.analyse.estimates import EstimateSet, single_estimates
from prony.analyse.per_run_metrics import power_w, sustained_s
from prony.analyse.runs import NS_PER_MS, Columns
from prony.analyse.selection import Selection
from prony.model.result import GpuFacts, Repetition

# The phases of which one number a run is published, the median of its samples.
_PHASES = {
    "device": "device_ms", "launch": "launch_ms", "copy_in": "copy_in_ms", "copy_out": "copy_out_ms",
    "roundtrip": "roundtrip_ms",
}  # fmt: skip
_STAGES = {"compile": "compile_ms", "capture": "capture_ms"}
_BYTES_PER_MS = 1e6  # of a rate in GB/s

GpuReading = Callable[[GpuFacts], float | None]


def device_estimates(selection: Selection, samples: Columns, *, is_stopped: bool = False) -> EstimateSet:
    """Return what a device's runs tell beyond the inference itself; of a run on the CPU, what compiling it took."""
    found = EstimateSet()
    for phase, metric in _PHASES.items():
        values = _medians_ms(samples, phase, selection.used)
        found |= single_estimates(metric, list(values.values()), "runs", full=False, is_stopped=is_stopped)
    for phase, metric in _STAGES.items():
        values = _medians_ms(samples, phase, selection.cold)
        found |= single_estimates(metric, list(values.values()), "cold starts", full=False)
    for metric, numbers in _of_runs(selection, samples).items():
        known = [value for value in numbers if value is not None]
        found |= single_estimates(metric, known, "runs", full=False, is_stopped=is_stopped)
    return found


def _medians_ms(samples: Columns, phase: str, repetitions: tuple[Repetition, ...]) -> dict[int, float]:
    rows = samples.in_phase(phase)
    if not rows.any():
        return {}
    found = {}
    for one in repetitions:
        mine = rows & (samples.repetition == one.index)
        if mine.any():
            found[one.index] = float(np.median(samples.end_ns[mine] - samples.begin_ns[mine])) / NS_PER_MS
    return found


def _of_runs(selection: Selection, samples: Columns) -> dict[str, list[float | None]]:
    """Return the metrics that each run has one number of."""
    used = [one for one in selection.used if one.gpu is not None]
    if not used:
        return {}
    launches, calls = (_medians_ms(samples, phase, selection.used) for phase in ("launch", "measure"))
    copies = {way: _medians_ms(samples, f"copy_{way}", selection.used) for way in ("in", "out")}
    found: dict[str, list[float | None]] = {
        metric: [reading(one.gpu) for one in used if one.gpu is not None] for metric, reading in _READINGS.items()
    }
    found["launch_share"] = [_ratio(launches.get(one.index), calls.get(one.index)) for one in used]
    # A call that cannot be queued waits for the one before also where they follow each other.
    queued = [one if "launch" in one.phases else None for one in used]
    found["hot_ms"] = [None if one is None or (each_s := sustained_s(one)) is None else each_s * 1e3 for one in queued]
    found["energy_net_j"] = [_net_j(one) for one in used]
    for way, times in copies.items():
        found[f"copy_{way}_gb_s"] = [_rate(getattr(one.gpu, f"bytes_{way}"), times.get(one.index)) for one in used]
    return found


def _ratio(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole else None


def _rate(size: int | None, took_ms: float | None) -> float | None:
    return size / took_ms / _BYTES_PER_MS if size and took_ms else None


def _net_j(repetition: Repetition) -> float | None:
    power, each_s = power_w(repetition), sustained_s(repetition)
    idle = repetition.gpu.idle_power_w if repetition.gpu is not None else None
    return None if power is None or each_s is None or idle is None else (power - idle) * each_s


_READINGS: dict[str, GpuReading] = {
    "vram_weights_mib": lambda gpu: gpu.weights_mib,
    "vram_run_peak_mib": lambda gpu: gpu.allocated_peak_mib,
    "vram_reserved_mib": lambda gpu: gpu.reserved_peak_mib,
    "vram_device_mib": lambda gpu: gpu.device_peak_mib,
    "idle_power_w": lambda gpu: gpu.idle_power_w,
    "gpu_clock_mhz": lambda gpu: gpu.clock_mhz,
    "gpu_temperature_c": lambda gpu: gpu.temperature_end_c,
    "gpu_held_power": lambda gpu: gpu.held_back.get("power"),
    "gpu_held_thermal": lambda gpu: gpu.held_back.get("thermal"),
}
