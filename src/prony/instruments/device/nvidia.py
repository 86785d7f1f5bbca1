"""Describe NVIDIA GPUs through NVML. The vendor's package is imported only in here."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from prony.instruments import kernel
from prony.model.device import Gpu
from prony.model.monitor import CardMoment, ProcessMoment

# From this compute capability on, these precisions are added (and the ones in `_DROPPED` go again).
_PRECISIONS: tuple[tuple[tuple[int, int], tuple[str, ...]], ...] = (
    ((1, 3), ("fp64", "fp32")),
    ((5, 3), ("fp16",)),
    ((6, 1), ("int8",)),
    ((7, 5), ("int4",)),
    ((8, 0), ("tf32", "bf16")),
    ((8, 9), ("fp8",)),
    ((10, 0), ("fp4", "fp6")),
)
_DROPPED: dict[str, tuple[int, int]] = {"int4": (9, 0)}
# Half precision runs at a sixty-fourth of the rate on this one: nobody should choose it.
_CRAWLS: dict[str, tuple[int, int]] = {"fp16": (6, 1)}

# Bits of the mask of reasons for a lower clock. Idle (1) and clocks that a user set (2) are no fault.
THROTTLES: dict[int, str] = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake (hardware)",
    0x100: "display clock",
    0x200: "board limit",
    0x400: "reliability",
}
# The inode of the first PID namespace, the same on every Linux: inside another one the driver's PIDs are not ours.
_FIRST_NAMESPACE = "pid:[4026531836]"
_LIBRARIES = {"win32": "nvml.dll"}


@cache
def management() -> Any | None:
    """Return the opened management library, or None where there is no NVIDIA driver. Opened once a process.

    The library is looked for before the package is imported: failing inside it is slow.
    """
    try:
        ctypes.CDLL(_LIBRARIES.get(sys.platform, "libnvidia-ml.so.1"))
    except OSError:
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def driver_cuda() -> str | None:
    """Return the version of CUDA that the driver is for; None without a driver."""
    library = management()
    version = None if library is None else ask_library(library.nvmlSystemGetCudaDriverVersion_v2)
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"


def describe_absence() -> str:
    """Return why NVML shows no GPU here."""
    if management() is not None:
        return "no GPU: the NVIDIA driver is loaded, but shows no GPU to this process"
    return f"no GPU: NVML not found ({_LIBRARIES.get(sys.platform, 'libnvidia-ml.so.1')}, part of NVIDIA's driver)"


def ask_library(question: Callable[..., Any], *about: Any) -> Any | None:
    """Return the library's answer, or None where this GPU or driver does not offer it."""
    import pynvml

    try:
        return question(*about)
    except pynvml.NVMLError:
        return None


def handles() -> list[Any]:
    """Return a handle for each GPU, in the driver's order."""
    library = management()
    if library is None:
        return []
    count = ask_library(library.nvmlDeviceGetCount) or 0
    found = (ask_library(library.nvmlDeviceGetHandleByIndex, index) for index in range(count))
    return [handle for handle in found if handle is not None]


def read_uuid(library: Any, handle: Any) -> str:
    """Return the UUID of a card; empty where the driver does not tell."""
    uuid = ask_library(library.nvmlDeviceGetUUID, handle)
    return uuid.decode() if isinstance(uuid, bytes) else uuid or ""


def nvidia_gpus() -> tuple[Gpu, ...]:
    """Return every GPU that the driver shows to this process."""
    library = management()
    return tuple(_gpu(index, handle, library) for index, handle in enumerate(handles()))


def precisions(capability: tuple[int, int]) -> tuple[str, ...]:
    """Return the number formats that a GPU of this compute capability computes in."""
    found = [name for least, names in _PRECISIONS if capability >= least for name in names]
    dropped = {name for name, since in _DROPPED.items() if capability >= since}
    crawling = {name for name, at in _CRAWLS.items() if capability == at}
    return tuple(sorted(set(found) - dropped - crawling))


def throttles(mask: int) -> tuple[str, ...]:
    """Return the reasons in a mask that hold a GPU below the clock it could run at."""
    return tuple(words for bit, words in THROTTLES.items() if mask & bit)


def read_cards() -> tuple[CardMoment, ...]:
    """Return what every GPU does now."""
    library = management()
    return tuple(_read_card(index, handle, library) for index, handle in enumerate(handles()))


def _read_card(index: int, handle: Any, library: Any) -> CardMoment:
    def ask(question: str, *more: Any) -> Any | None:
        return ask_library(getattr(library, question), handle, *more)

    def scale(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    memory, load = ask("nvmlDeviceGetMemoryInfo", library.nvmlMemory_v2), ask("nvmlDeviceGetUtilizationRates")
    mask = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    return CardMoment(
        index=index, name=_word(ask("nvmlDeviceGetName")) or "NVIDIA GPU",
        clock_mhz=ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_SM),
        max_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", library.NVML_CLOCK_SM),
        memory_clock_mhz=ask("nvmlDeviceGetClockInfo", library.NVML_CLOCK_MEM),
        power_w=scale(ask("nvmlDeviceGetPowerUsage"), 1e-3),
        power_limit_w=scale(ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
        temperature_c=ask("nvmlDeviceGetTemperature", library.NVML_TEMPERATURE_GPU),
        busy_percent=None if load is None else load.gpu, memory_busy_percent=None if load is None else load.memory,
        memory_used_mib=None if memory is None else memory.used / 2**20,
        memory_total_mib=None if memory is None else memory.total / 2**20,
        held_by=() if mask is None else throttles(mask), processes=card_processes(handle, library),
    )  # fmt: skip


def sees_real_pids(root: Path = kernel.ROOT) -> bool:
    """Are the numbers of processes that the driver tells those that this process knows?"""
    try:
        return str((root / "proc/self/ns/pid").readlink()) == _FIRST_NAMESPACE
    except OSError:
        return False


def card_processes(handle: Any, library: Any) -> tuple[ProcessMoment, ...] | None:
    """Return who computes or draws on a card, each once; None where the driver does not list them."""
    questions = ("Compute", "Graphics", "MPSCompute")
    lists = [ask_library(getattr(library, f"nvmlDeviceGet{kind}RunningProcesses"), handle) for kind in questions]
    if all(one is None for one in lists):
        return None
    used = {process.pid: process.usedGpuMemory for listed in lists for process in listed or ()}
    return tuple(
        ProcessMoment(pid=pid, name="?", memory_mib=None if size is None else size / 2**20)
        for pid, size in sorted(used.items())
    )


def _gpu(index: int, handle: Any, library: Any) -> Gpu:
    uuid, memory = ask_library(library.nvmlDeviceGetUUID, handle), ask_library(library.nvmlDeviceGetMemoryInfo, handle)
    capability = ask_library(library.nvmlDeviceGetCudaComputeCapability, handle)
    limit_mw = ask_library(library.nvmlDeviceGetEnforcedPowerLimit, handle)
    return Gpu(
        index=index,
        name=_word(ask_library(library.nvmlDeviceGetName, handle)) or "NVIDIA GPU",
        vendor="nvidia",
        uuid_hash=None if uuid is None else hash_serial(_word(uuid) or ""),
        memory_mib=None if memory is None else memory.total // 2**20,
        compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
        precisions=() if capability is None else precisions((capability[0], capability[1])),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
        # The most it can be: the width in use may shrink while the GPU idles.
        pcie_width=ask_library(library.nvmlDeviceGetMaxPcieLinkWidth, handle),
        driver=_word(ask_library(library.nvmlSystemGetDriverVersion)),
        runtime=_cuda(ask_library(library.nvmlSystemGetCudaDriverVersion_v2)),
    )


def hash_serial(secret: str) -> str:
    """Return a short digest, so that a serial number can be compared and not read."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16]


def _word(value: Any) -> str | None:
    # Older versions of the package answer in bytes.
    return value.decode() if isinstance(value, bytes) else value


def _cuda(version: int | None) -> str | None:
    return None if version is None else f"CUDA {version // 1000}.{version % 1000 // 10}"
