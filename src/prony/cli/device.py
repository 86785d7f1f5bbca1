"""Print a device and its compute units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prony.cli.output import print_text
from prony.model.device import Device, EngineUnit, Gpu
from prony.ports import plugins
from prony.ports.agent_link import AgentLink


def show_device(device: Device, units: Sequence[EngineUnit], home: str) -> None:
    pairs = [*_hardware(device), *_software(device), ("home", home)]
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print_text(f"{name:<{width}}  {value}")
    print_text("\nAvailable Compute Units:")
    links: list[AgentLink] = list(plugins.create_all(plugins.AGENT_LINKS).values())
    for unit in units:
        known_as = "".join(f"  ({named})" for link in links if (named := link.describe_unit(unit)))
        print_text(f"- {unit.engine} on {unit.unit}: {', '.join(unit.precisions)}{known_as}")


def _hardware(device: Device) -> Iterator[tuple[str, str]]:
    cpu, hardware = device.hardware.cpu, device.hardware
    yield "device", device.name
    yield "fingerprint", f"hardware {device.hardware_id}, software {device.software_id}"
    yield "cpu", f"{cpu.model or 'unknown'} ({cpu.architecture})"
    yield "cores", _cores(device)
    yield "flags", " ".join(cpu.flags) or "none that matter"
    limit = f", limited to {hardware.memory_limit_mib} MiB" if hardware.memory_limit_mib else ""
    yield "memory", f"{(hardware.memory_mib or 0) / 1024:.1f} GiB{limit}"
    for gpu in hardware.gpus:
        yield f"gpu {gpu.index}", _gpu(gpu)
    if not hardware.gpus:
        yield "gpu", "none found"
    yield "virtual", hardware.virtualization or "no sign of it"


def _cores(device: Device) -> str:
    cpu = device.hardware.cpu
    physical = f", {cpu.physical_cores} physical" if cpu.physical_cores else ""
    quota = f", quota {cpu.quota_cores:g}" if cpu.quota_cores else ""
    return f"{cpu.logical_cores} logical{physical}, {cpu.allowed_cores} allowed{quota}"


def _gpu(gpu: Gpu) -> str:
    memory = f", {gpu.memory_mib / 1024:.0f} GiB" if gpu.memory_mib else ""
    return f"{gpu.name}{memory}, {' '.join(gpu.precisions)}"


def _software(device: Device) -> Iterator[tuple[str, str]]:
    software = device.software
    yield "system", f"{software.os} {software.os_version or ''}, kernel {software.kernel}"
    yield "python", software.python
    yield "packages", ", ".join(f"{name} {version}" for name, version in software.packages.items()) or "none"
    yield "prony", software.prony
