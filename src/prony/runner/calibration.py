"""Calibrate the instrument on this machine: clock, harness and run-to-run noise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from prony.errors import MeasurementError
from prony.instruments.clock import cost_of_reading_ns, smallest_step_ns
from prony.model.calibration import Calibration
from prony.model.device import Device
from prony.model.estimate import Estimate
from prony.ports.clock import Clock
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.host import EngineHost, Watch
from prony.stats.run_intervals import median_interval
from prony.stats.spread import robust_cv

_TIMEOUT_NS = 60 * 10**9
_NOOP_RUNS = 20_000
_KERNEL_RUNS = 60


@dataclass(frozen=True)
class _Run:
    """One fresh process: its own samples in nanoseconds, and what it cost to have it."""

    durations_ns: np.ndarray[tuple[int], np.dtype[np.int64]]
    wall_ms: float


def calibrate(
    device: Device,
    scratch: Path,
    *,
    clock: Clock,
    identity: str,
    repeats: int = 20,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Calibration:
    """Measure the instrument in `repeats` fresh processes of each kind, taking turns."""
    with EngineHost("null", sys.executable, scratch / "null.log") as host:
        noops, kernels = [], []
        for index in range(repeats):
            noops.append(_once(host, scratch, "noop", _NOOP_RUNS))
            kernels.append(_once(host, scratch, "kernel", _KERNEL_RUNS))
            progress(index + 1, repeats)
    figures = _clock_figures() | _harness_figures(noops) | _kernel_figures(kernels)
    return Calibration(
        id=identity,
        hardware_id=device.hardware_id,
        software_id=device.software_id,
        taken_at=clock.now(),
        figures=figures,
    )


def equal_runs(scratch: Path, *, count: int, progress: Callable[[int, int], None] = lambda *_: None) -> list[float]:
    """Run the fixed kernel in so many fresh interpreters, as the repetitions of a result have; return each one's median
    in milliseconds, in their order."""
    medians = []
    for index in range(count):
        with EngineHost("null", sys.executable, scratch / "null.log") as host:
            run = _once(host, scratch, "kernel", _KERNEL_RUNS)
        medians.append(float(np.median(run.durations_ns)) / 1e6)
        progress(index + 1, count)
    return medians


def _once(host: EngineHost, scratch: Path, model: str, runs: int) -> _Run:
    samples = scratch / "calibration.i64"
    order = ChildOrder(op="measure", model=f"{model}.null", runs=runs, warmup=runs // 10, samples=str(samples))
    begin_ns = time.perf_counter_ns()
    answer = host.perform(order, Watch(timeout_ns=_TIMEOUT_NS))
    wall_ms = (time.perf_counter_ns() - begin_ns) / 1e6
    if answer.done is None:
        reason = answer.failure.message if answer.failure else "no answer"
        raise MeasurementError(f"the calibration failed: {reason}", hint="check whether the machine is overloaded")
    return _Run(_read_samples(samples, answer.done), wall_ms)


def _read_samples(samples: Path, done: Message) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = done["counts"]["measure"]
    stamps = np.fromfile(samples, dtype=np.int64)[-2 * count :]
    return stamps[count:] - stamps[:count]


def _clock_figures() -> dict[str, Estimate]:
    step_ns = float(smallest_step_ns())
    costs = [cost_of_reading_ns() for _ in range(10)]
    return {
        "clock_resolution_ns": Estimate(value=step_ns, unit="ns", count=1, method="smallest step seen"),
        "clock_cost_ns": estimate(costs, "ns", "median of batches of readings"),
    }


def _harness_figures(runs: list[_Run]) -> dict[str, Estimate]:
    # What the loop shows for a call that does nothing is all that it adds inside the timer to one that does something.
    overheads = [float(np.median(run.durations_ns)) / 1e3 for run in runs]
    walls = [run.wall_ms for run in runs]
    return {
        "harness_overhead_us": estimate(overheads, "us", "median of fresh processes' medians over an empty call"),
        "repetition_cost_ms": estimate(walls, "ms", "median wall time of a fresh process with an empty call"),
    }


def _kernel_figures(runs: list[_Run]) -> dict[str, Estimate]:
    medians = np.array([float(np.median(run.durations_ns)) / 1e6 for run in runs])
    noise = robust_cv(medians)
    return {
        "kernel_ms": estimate(medians.tolist(), "ms", "median of fresh processes' medians"),
        "kernel_noise": Estimate(
            value=noise, unit="1", count=len(runs), method="MAD of run medians, divided by their median"
        ),
    }


def estimate(values: list[float], unit: str, method: str) -> Estimate:
    """Return the median of one number a run, with its interval."""
    ordered, ranks = sorted(values), median_interval(np.array(values))
    return Estimate(
        value=float(np.median(values)),
        unit=unit,
        low=ordered[ranks.low - 1] if ranks else None,
        high=ordered[ranks.high - 1] if ranks else None,
        confidence=ranks.confidence if ranks else None,
        count=len(values),
        method=f"{method}; order statistics",
    )
