"""Probe of NVIDIA GPUs: load, memory, power, heat, clock and energy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, ClassVar

from prony.instruments import kernel
from prony.instruments.device.nvidia import ask_library, handles, management

# The inode of the first PID namespace, the same on every Linux: inside another one the driver's PIDs are not ours.
_FIRST_NAMESPACE = "pid:[4026531836]"


class NvidiaProbe:
    """Counters of every GPU that the driver shows. `watch` names the processes whose memory is `vram_used_mib`."""

    name: ClassVar[str] = "nvidia"

    def __init__(self, pids: Collection[int] = ()) -> None:
        self._pids = frozenset(pids)
        self._handles: list[Any] | None = None

    def available(self) -> str | None:
        """Return why there is no GPU to read, or None."""
        if management() is None:
            return "no NVIDIA driver is loaded here"
        return None if handles() else "the NVIDIA driver shows no GPU to this process"

    def watch(self, pids: Collection[int]) -> None:
        """Count the device memory of these processes from now on."""
        self._pids = frozenset(pids)

    def read(self) -> dict[str, float]:
        """Read every counter of every GPU once."""
        library = management()
        if self._handles is None:
            self._handles = handles()
        found: dict[str, float] = {}
        for index, handle in enumerate(self._handles):
            found |= _one(library, index, handle)
        used_mib = self._used_mib(library) if self._pids else None
        return found if used_mib is None else {**found, "vram_used_mib": used_mib}

    def close(self) -> None:
        """The library stays open for the process: opening it is what costs."""

    def _used_mib(self, library: Any) -> float | None:
        """Return the watched processes' memory on all GPUs, or None where the driver's list does not show them."""
        lists = [ask_library(library.nvmlDeviceGetComputeRunningProcesses, handle) for handle in self._handles or ()]
        ours = [process for each in lists for process in each or () if process.pid in self._pids]
        sizes = [process.usedGpuMemory for process in ours]
        if any(size is None for size in sizes) or all(each is None for each in lists):
            return None
        if not ours and not _sees_real_pids():
            return None
        return float(sum(sizes)) / 2**20


def _one(library: Any, index: int, handle: Any) -> dict[str, float]:
    # The second version leaves out what the driver keeps for itself, as nvidia-smi does.
    memory = ask_library(library.nvmlDeviceGetMemoryInfo, handle, library.nvmlMemory_v2)
    load = ask_library(library.nvmlDeviceGetUtilizationRates, handle)
    questions: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
        f"gpu{index}_power_w": (library.nvmlDeviceGetPowerUsage, (), 1e-3),
        f"gpu{index}_temperature_c": (library.nvmlDeviceGetTemperature, (library.NVML_TEMPERATURE_GPU,), 1),
        f"gpu{index}_sm_mhz": (library.nvmlDeviceGetClockInfo, (library.NVML_CLOCK_SM,), 1),
        f"gpu{index}_throttle_reasons": (library.nvmlDeviceGetCurrentClocksThrottleReasons, (), 1),
        # The driver counts millijoules since it was loaded.
        f"energy_gpu{index}_uj_total": (library.nvmlDeviceGetTotalEnergyConsumption, (), 1e3),
    }
    answers = {name: (ask_library(ask, handle, *more), scale) for name, (ask, more, scale) in questions.items()}
    found = {name: float(value) * scale for name, (value, scale) in answers.items() if value is not None}
    if memory is not None:
        found[f"gpu{index}_memory_used_mib"] = memory.used / 2**20
    if load is not None:
        found[f"gpu{index}_busy"] = load.gpu / 100
    return found


def _sees_real_pids(root: Path = kernel.ROOT) -> bool:
    try:
        return str((root / "proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        return False
