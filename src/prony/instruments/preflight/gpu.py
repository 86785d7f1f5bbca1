"""Preflight checks of NVIDIA GPUs: read their state and judge it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from prony.instruments.device.nvidia import ask_library, handles, management, throttles
from prony.model.device import Condition

Value = float | int | str | None


def see_gpus() -> dict[str, Value]:
    """Return the state of every NVIDIA GPU; nothing at all on a machine without one."""
    library = management()
    found: dict[str, Value] = {}
    for index, handle in enumerate(handles()):
        found |= {f"gpu{index}_{name}": value for name, value in _one(library, handle).items()}
    return found


def judge_gpus(values: Mapping[str, Value]) -> list[Condition]:
    """Return the conditions of every GPU in the values."""
    count = sum(name.endswith("_strangers") for name in values)
    return [condition for index in range(count) for condition in _judge(index, values)]


def _one(library: Any, handle: Any) -> dict[str, Value]:
    running = ask_library(library.nvmlDeviceGetComputeRunningProcesses, handle)
    persistence = ask_library(library.nvmlDeviceGetPersistenceMode, handle)
    return {
        "strangers": None if running is None else sum(process.pid != os.getpid() for process in running),
        "temperature_c": ask_library(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU),
        "sm_mhz": ask_library(library.nvmlDeviceGetClockInfo, handle, library.NVML_CLOCK_SM),
        "sm_max_mhz": ask_library(library.nvmlDeviceGetMaxClockInfo, handle, library.NVML_CLOCK_SM),
        "throttle_reasons": ask_library(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
        "persistence": None if persistence is None else ("on" if persistence else "off"),
    }


def _judge(index: int, values: Mapping[str, Value]) -> list[Condition]:
    seen = {name: values.get(f"gpu{index}_{name}") for name in ("strangers", "persistence", "sm_mhz", "sm_max_mhz")}
    return [
        _strangers(index, seen["strangers"]),
        _check_throttling(index, values.get(f"gpu{index}_throttle_reasons")),
        _persistence(index, seen["persistence"]),
        Condition(
            code=f"gpu{index}_clocks",
            title=f"GPU {index} clocks",
            status="unknown",
            value=f"{seen['sm_mhz']} MHz now, {seen['sm_max_mhz']} MHz at most; the driver does not tell if locked",
            hint=f"to hold them still: sudo nvidia-smi -i {index} --lock-gpu-clocks=MHZ (undo: --reset-gpu-clocks)",
        ),
    ]


def _strangers(index: int, count: Value) -> Condition:
    code, title = f"gpu{index}_processes", f"Other processes on GPU {index}"
    if not isinstance(count, int):
        return Condition(code=code, title=title, status="unknown", value="the driver does not list them here")
    hint = f"see who: nvidia-smi -i {index} --query-compute-apps=pid,name,used_memory --format=csv" if count else ""
    return Condition(code=code, title=title, status="warn" if count else "pass", value=str(count or "none"), hint=hint)


def _check_throttling(index: int, mask: Value) -> Condition:
    code, title = f"gpu{index}_throttling", f"GPU {index} throttling"
    if not isinstance(mask, int):
        return Condition(code=code, title=title, status="unknown", value="the driver does not tell")
    reasons = throttles(mask)
    hint = "let it cool down, or raise the limit: nvidia-smi -q -d PERFORMANCE,POWER" if reasons else ""
    status = "warn" if reasons else "pass"
    return Condition(code=code, title=title, status=status, value=", ".join(reasons) or "none", hint=hint)


def _persistence(index: int, mode: Value) -> Condition:
    code, title = f"gpu{index}_persistence", f"GPU {index} persistence mode"
    if mode is None:
        return Condition(code=code, title=title, status="unknown", value="the driver does not tell")
    hint = "" if mode == "on" else f"the driver reloads for every first use: sudo nvidia-smi -i {index} -pm 1"
    return Condition(code=code, title=title, status="pass" if mode == "on" else "warn", value=str(mode), hint=hint)
