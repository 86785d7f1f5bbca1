"""Hash a machine's hardware and its software into two ids for comparability."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from prony.model.device import Gpu, Hardware, Software

_CPU_PARTS = frozenset({
    "model", "vendor", "family", "model_number", "stepping", "architecture", "flags", "physical_cores",
    "logical_cores", "performance_cores", "efficiency_cores", "allowed_cores", "quota_cores", "caches", "numa_nodes",
})  # fmt: skip
_GPU_PARTS = frozenset({
    "name", "vendor", "uuid_hash", "memory_mib", "compute_capability", "power_limit_w", "pcie_width",
})  # fmt: skip


def digest(document: Any) -> str:
    """Return the first 16 hex digits of a document's sha256, whatever the order of its keys."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def hardware_id(hardware: Hardware) -> str:
    """Hash what decides speed and does not change by itself.

    Left out on purpose: clocks (a governor changes them), driver versions (software), the machine's product name, and
    the memory limit, which ends a run but does not slow it. Allowed CPUs and the quota are in: four cores of
    sixty-four are another device.
    """
    parts = {
        "cpu": hardware.cpu.model_dump(mode="json", include=set(_CPU_PARTS)),
        "memory_gib": _memory_gib(hardware),
        "gpus": sorted((_gpu_parts(gpu) for gpu in hardware.gpus), key=digest),
        "virtualization": hardware.virtualization,
    }
    return digest(parts)


def software_id(software: Software) -> str:
    """Hash all of it."""
    return digest(software.model_dump(mode="json"))


def _gpu_parts(gpu: Gpu) -> dict[str, Any]:
    return gpu.model_dump(mode="json", include=set(_GPU_PARTS))


def _memory_gib(hardware: Hardware) -> float:
    """What is installed; else what the kernel counts, rounded, because each version of it keeps some for itself."""
    if hardware.memory_installed_mib is not None:
        return hardware.memory_installed_mib / 1024
    return max(1.0, float(round((hardware.memory_mib or 0) / 1024)))
