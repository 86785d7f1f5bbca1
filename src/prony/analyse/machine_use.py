"""Estimate how much of the CPU and of the GPU a job used."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from prony.analyse.estimates import EstimateSet, single_estimates
from prony.model.result import Repetition

UseReading = Callable[[Repetition], float | None]


def own_cores(repetition: Repetition) -> float | None:
    """Return how many cores the processes of a model or a script used in the mean."""
    phase = repetition.phases.get("measure")
    length_ns = 0 if phase is None else phase.end_ns - phase.begin_ns
    return phase.cpu_ns / length_ns if phase is not None and length_ns > 0 else None


def service_cores(repetition: Repetition) -> float | None:
    """Return how many cores a loaded service used in the mean, where it ran on this machine."""
    return repetition.use.service_cores


def use_estimates(
    runs: Sequence[Repetition], cores: UseReading, *, without: Collection[str] = (), is_stopped: bool = False
) -> EstimateSet:
    """Return the metrics in percent but those named in `without`; what the system does not tell leaves no entry.

    `cores` says how many cores the job itself used in a run.
    """
    readings: dict[str, UseReading] = {"cpu_percent": cores, **_READINGS}
    found = EstimateSet()
    for metric, reading in readings.items():
        if metric in without:
            continue
        values = [100 * value for one in runs if (value := reading(one)) is not None]
        found |= single_estimates(metric, values, "runs", full=False, is_stopped=is_stopped)
    return found


def _client_cores(repetition: Repetition) -> float | None:
    shares = repetition.client.cpu_shares if repetition.client is not None else ()
    return sum(shares) if shares else None


_READINGS: dict[str, UseReading] = {
    "client_cpu_percent": _client_cores,
    "machine_cpu_percent": lambda repetition: repetition.use.machine_cpu,
    "gpu_percent": lambda repetition: repetition.use.gpu,
    "gpu_memory_percent": lambda repetition: repetition.use.gpu_memory,
    "gpu_sm_percent": lambda repetition: repetition.use.gpu_sm,
    "gpu_tensor_percent": lambda repetition: repetition.use.gpu_tensor,
    "gpu_dram_percent": lambda repetition: repetition.use.gpu_dram,
}
