"""Probe of NVIDIA GPUs: load, memory, power, heat, clock and energy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from prony.instruments.device.nvidia import ask_library, handles, hash_serial, management, read_uuid, sees_real_pids

_PREFIX = "gpu"
# Counters with the name of their field and what makes them of their unit: the power of this instant and of the last
# second, and for how long something held the clock down.
_FIELDS: dict[str, tuple[str, float]] = {
    "power_w": ("NVML_FI_DEV_POWER_INSTANT", 1e-3),
    "mean_power_w": ("NVML_FI_DEV_POWER_AVERAGE", 1e-3),
    "held_power_ns_total": ("NVML_FI_DEV_PERF_POLICY_POWER", 1),
    "held_thermal_ns_total": ("NVML_FI_DEV_PERF_POLICY_THERMAL", 1),
    "held_sync_boost_ns_total": ("NVML_FI_DEV_PERF_POLICY_SYNC_BOOST", 1),
    "held_board_limit_ns_total": ("NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", 1),
    "held_reliability_ns_total": ("NVML_FI_DEV_PERF_POLICY_RELIABILITY", 1),
    "held_brake_ns_total": ("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", 1),
}
# Of the time since the reading before: which part of the card's processors worked, of their tensor cores, and of what
# its memory can carry. Hopper and newer cards tell it.
_PIPES = {
    "sm_share": "NVML_GPM_METRIC_SM_UTIL",
    "tensor_share": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "dram_share": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}
_LEAST_PIPES_NS = 100_000_000


class NvidiaProbe:
    """Counters of every GPU that the driver shows. `watch` names the processes whose memory is `vram_used_mib`."""

    name: ClassVar[str] = "nvidia"

    def __init__(self, pids: Collection[int] = ()) -> None:
        self._pids = frozenset(pids)
        self._handles: list[Any] | None = None
        self._pipes: list[PipeSampler] | None = None

    def available(self) -> str | None:
        """Return why there is no GPU to read, or None."""
        if management() is None:
            return "no NVIDIA driver is loaded"
        return None if handles() else "the NVIDIA driver shows no GPU to this process"

    def watch(self, pids: Collection[int]) -> None:
        """Count the device memory of these processes from now on."""
        self._pids = frozenset(pids)

    def read(self) -> dict[str, float]:
        """Read every counter of every GPU once."""
        library = management()
        found: dict[str, float] = {}
        if self._pipes is None:
            self._pipes = [PipeSampler(library, handle) for handle in self._all_handles()]
        for index, (handle, pipes) in enumerate(zip(self._all_handles(), self._pipes, strict=True)):
            found |= _one(library, index, handle)
            found |= {f"gpu{index}_{name}": share for name, share in pipes.read().items()}
        used_mib = self._used_mib(library) if self._pids else None
        return found if used_mib is None else {**found, "vram_used_mib": used_mib}

    def find_card(self, device_id: str) -> str | None:
        """Return the card of this UUID as the counters call it."""
        found = [index for index, uuid in enumerate(self._uuids()) if device_id and uuid == device_id]
        return f"{_PREFIX}{found[0]}" if found else None

    def card_digest(self, card: str) -> str:
        """Return the digest that `environment.json` has of the same card."""
        return hash_serial(self._uuids()[_index(card)])

    def read_energy_uj(self, card: str) -> float | None:
        """Read the energy counter of one card."""
        library, handle = _library(), self._all_handles()[_index(card)]
        millijoules = ask_library(library.nvmlDeviceGetTotalEnergyConsumption, handle)
        return None if millijoules is None else millijoules * 1e3

    def read_health(self, card: str) -> Mapping[str, float]:
        """Read errors of memory and link, and how wide the link to the host is now."""
        library, handle = _library(), self._all_handles()[_index(card)]
        volatile = library.NVML_VOLATILE_ECC
        errors = library.nvmlDeviceGetTotalEccErrors
        answers = {
            "ecc_uncorrected_total": ask_library(errors, handle, library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, volatile),
            "ecc_corrected_total": ask_library(errors, handle, library.NVML_MEMORY_ERROR_TYPE_CORRECTED, volatile),
            "pcie_replay_total": ask_library(library.nvmlDeviceGetPcieReplayCounter, handle),
            "link_generation": ask_library(library.nvmlDeviceGetCurrPcieLinkGeneration, handle),
            "link_width": ask_library(library.nvmlDeviceGetCurrPcieLinkWidth, handle),
            "link_width_max": ask_library(library.nvmlDeviceGetMaxPcieLinkWidth, handle),
        }
        return {name: float(value) for name, value in answers.items() if value is not None}

    def read_others(self, card: str, since_us: int) -> Mapping[str, float] | None:
        """Return the mean share of the card's time by process, over the driver's samples since then."""
        library, handle = _library(), self._all_handles()[_index(card)]
        if not sees_real_pids():
            return None
        samples = ask_library(library.nvmlDeviceGetProcessUtilization, handle, since_us)
        if samples is None:
            return None
        shares: dict[int, list[float]] = {}
        for sample in samples:
            if sample.timeStamp >= since_us and sample.smUtil and not self._is_watched(sample.pid):
                shares.setdefault(sample.pid, []).append(min(100, sample.smUtil) / 100)
        means = {pid: sum(each) / len(each) for pid, each in shares.items()}
        return {user: share for pid, share in means.items() for user in self._name_users(handle, pid)}

    def _name_users(self, handle: Any, pid: int) -> list[str]:
        """Return who used the card under this process id: under MPS its server works for all its clients, ours too."""
        if not _is_mps_server(pid):
            return [str(pid)]
        clients = ask_library(_library().nvmlDeviceGetMPSComputeRunningProcesses, handle) or ()
        others = sorted(client.pid for client in clients if not self._is_watched(client.pid))
        return [f"{other} (by MPS, together with this run)" for other in others]

    def _is_watched(self, pid: int) -> bool:
        """Is it one of the run's processes, or did one of them start it?"""
        if pid in self._pids:
            return True
        try:
            return os.getpgid(pid) in self._pids
        except OSError:
            return False

    def _all_handles(self) -> list[Any]:
        if self._handles is None:
            self._handles = handles()
        return self._handles

    def _uuids(self) -> list[str]:
        return [read_uuid(_library(), handle) for handle in self._all_handles()]

    def close(self) -> None:
        """The library stays open for the process: opening it is what costs."""

    def _used_mib(self, library: Any) -> float | None:
        """Return the watched processes' memory on all GPUs, or None where the driver's list does not show them."""
        lists = [ask_library(library.nvmlDeviceGetComputeRunningProcesses, handle) for handle in self._handles or ()]
        ours = [process for each in lists for process in each or () if process.pid in self._pids]
        sizes = [process.usedGpuMemory for process in ours]
        if any(size is None for size in sizes) or all(each is None for each in lists):
            return None
        if not ours and not sees_real_pids():
            return None
        return float(sum(sizes)) / 2**20


class PipeSampler:
    """Tells which share of a card's parts worked between two readings that are not too close to each other."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library, self._handle = library, handle
        support = ask_library(library.nvmlGpmQueryDeviceSupport, handle)
        self._is_supported = support is not None and bool(support.isSupportedDevice)
        self._before: Any = None
        self._at_ns = 0

    def read(self) -> dict[str, float]:
        now_ns = time.perf_counter_ns()
        if not self._is_supported or now_ns - self._at_ns < _LEAST_PIPES_NS:
            return {}
        library, sample = self._library, ask_library(self._library.nvmlGpmSampleAlloc)
        if sample is None or ask_library(library.nvmlGpmSampleGet, self._handle, sample) is None:
            self._is_supported = False
            return {}
        before, self._before, self._at_ns = self._before, sample, now_ns
        if before is None:
            return {}
        found = self._between(before, sample)
        ask_library(library.nvmlGpmSampleFree, before)
        return found

    def _between(self, before: Any, after: Any) -> dict[str, float]:
        library = self._library
        question = library.c_nvmlGpmMetricsGet_t()
        question.version, question.numMetrics = library.NVML_GPM_METRICS_GET_VERSION, len(_PIPES)
        question.sample1, question.sample2 = before, after
        for place, constant in enumerate(_PIPES.values()):
            question.metrics[place].metricId = getattr(library, constant)
        if ask_library(library.nvmlGpmMetricsGet, question) is None:
            return {}
        answers = zip(_PIPES, question.metrics, strict=False)
        return {name: one.value / 100 for name, one in answers if one.nvmlReturn == library.NVML_SUCCESS}


def _one(library: Any, index: int, handle: Any) -> dict[str, float]:
    # The second version leaves out what the driver keeps for itself, as nvidia-smi does.
    memory = ask_library(library.nvmlDeviceGetMemoryInfo, handle, library.nvmlMemory_v2)
    load = ask_library(library.nvmlDeviceGetUtilizationRates, handle)
    questions: dict[str, tuple[Callable[..., Any], tuple[Any, ...], float]] = {
        # From Ampere on it is the mean of the last second; the field below, where there is one, is of this instant.
        f"gpu{index}_power_w": (library.nvmlDeviceGetPowerUsage, (), 1e-3),
        f"gpu{index}_temperature_c": (library.nvmlDeviceGetTemperature, (library.NVML_TEMPERATURE_GPU,), 1),
        f"gpu{index}_sm_mhz": (library.nvmlDeviceGetClockInfo, (library.NVML_CLOCK_SM,), 1),
        f"gpu{index}_throttle_reasons": (library.nvmlDeviceGetCurrentClocksThrottleReasons, (), 1),
        # The driver counts millijoules since it was loaded.
        f"energy_gpu{index}_uj_total": (library.nvmlDeviceGetTotalEnergyConsumption, (), 1e3),
    }
    answers = {name: (ask_library(ask, handle, *more), scale) for name, (ask, more, scale) in questions.items()}
    found = {name: float(value) * scale for name, (value, scale) in answers.items() if value is not None}
    found |= _fields(library, index, handle)
    if memory is not None:
        found[f"gpu{index}_memory_used_mib"] = memory.used / 2**20
    if load is not None:
        found[f"gpu{index}_busy"] = load.gpu / 100
        found[f"gpu{index}_memory_busy"] = load.memory / 100
    return found


def _fields(library: Any, index: int, handle: Any) -> dict[str, float]:
    """Return what the driver tells by the numbers of fields, in one question; a field that it lacks is left out."""
    known = {name: getattr(library, constant, None) for name, (constant, _) in _FIELDS.items()}
    asked = {name: number for name, number in known.items() if number is not None}
    answers = ask_library(library.nvmlDeviceGetFieldValues, handle, list(asked.values())) or ()
    found = {}
    for name, answer in zip(asked, answers, strict=False):
        if answer.nvmlReturn == library.NVML_SUCCESS:
            value = (
                answer.value.uiVal if answer.valueType == library.NVML_VALUE_TYPE_UNSIGNED_INT else answer.value.ullVal
            )
            found[f"gpu{index}_{name}"] = float(value) * _FIELDS[name][1]
    return found


def _library() -> Any:
    """Return the opened library; only a probe that is available is asked."""
    return management()


def _index(card: str) -> int:
    return int(card.removeprefix(_PREFIX))


def _is_mps_server(pid: int) -> bool:
    try:
        name = Path(f"/proc/{pid}/comm").read_text()
    except OSError:  # it has ended, or this system keeps no such files
        return False
    return name.startswith("nvidia-cuda-mps")
