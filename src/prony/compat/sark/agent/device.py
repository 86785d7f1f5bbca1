"""Describe this device as a SARK orchestrator wants it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from prony.compat.sark.nouns import Registration, WorkerDevice
from prony.model.agent import Capabilities
from prony.model.device import Device, EngineReport


def registration_of(offered: Capabilities, device: Device, *, udid: str, ip_address: str) -> Registration:
    return Registration(
        device_name=device.name,
        ip_address=ip_address,
        capabilities=tuple(capabilities_of(offered.engines)),
        device_info=worker_device(device, udid).model_dump(),
    )


def capabilities_of(engines: Iterable[EngineReport]) -> dict[str, tuple[str, str]]:
    """Return SARK's words for what works here, each with the engine and the unit that it means on this device."""
    found: dict[str, tuple[str, str]] = {}
    for report in engines:
        for unit in report.units:
            if report.state == "ready" and unit.seed_name:
                found.setdefault(unit.seed_name, (unit.engine, unit.unit))
    return found


def worker_device(device: Device, udid: str | None = None) -> WorkerDevice:
    """Describe a device in SARK's fields; what Prony does not know, as the year it was built, stays None."""
    hardware, software = device.hardware, device.software
    gpu = hardware.gpus[0] if hardware.gpus else None
    memory_mib = hardware.memory_installed_mib or hardware.memory_mib
    return WorkerDevice(
        device_name=device.name,
        soc=hardware.cpu.model,
        ram=str(round(memory_mib / 1024)) if memory_mib else None,
        discrete_gpu=gpu.name if gpu else None,
        v_ram=str(round(gpu.memory_mib / 1024)) if gpu and gpu.memory_mib else None,
        device_os=software.os.capitalize(),
        device_os_version=software.os_version or software.kernel,
        udid=udid,
    )


def address_towards(url: str) -> str:
    """Return this device's own address on the way to a server; asks the routing table, sends nothing."""
    there = urlsplit(url)
    family = socket.AF_INET6 if ":" in (there.hostname or "") else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((there.hostname or "127.0.0.1", there.port or 80))
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
