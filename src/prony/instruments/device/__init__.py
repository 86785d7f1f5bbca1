"""Detect what this machine is and runs, with two hashes that say which results are comparable.

One hash is of the machine's hardware, the other of its software.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from functools import cache
from typing import Any

from prony.model.device import Device, Gpu, Hardware, Software

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


__all__ = ["detect"]

# Names that installers and containers give, which tell one machine from another to nobody.
_NAMELESS = re.compile(r"(localhost.*|vm|debian|ubuntu|fedora|archlinux|\(none\)|[0-9a-f]{12}|)")


@cache
def detect() -> Device:
    """Return what this machine is, found out once a process. Call it before pinning the process to some CPUs."""
    from prony.instruments.device.software import read_software

    hardware, microcode = _hardware()
    software = read_software(hardware, microcode)
    return Device(
        name=device_name(platform.node(), hardware),
        hardware_id=hardware_id(hardware),
        software_id=software_id(software),
        hardware=hardware,
        software=software,
    )


def device_name(host: str, hardware: Hardware) -> str:
    """Return the host's name, or where that is a stock one, what the machine is sold as."""
    if not _NAMELESS.fullmatch(host.lower()):
        return host
    return hardware.machine or host or "unnamed"


def _hardware() -> tuple[Hardware, str | None]:
    if sys.platform == "darwin":
        from prony.instruments.device import apple

        return apple.read_hardware(), None
    from prony.instruments.device.nvidia import nvidia_gpus

    if sys.platform == "win32":
        from prony.instruments.device import windows

        return windows.read_hardware(nvidia_gpus()), None
    from prony.instruments.device import linux

    return linux.read_hardware(nvidia_gpus())
