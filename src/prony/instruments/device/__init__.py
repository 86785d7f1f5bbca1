"""Detect what this machine is and runs, with two hashes that say which results are comparable."""

from __future__ import annotations

import platform
import re
import sys
from functools import cache

from prony.instruments.device.identity import hardware_id, software_id
from prony.model.device import Device, Hardware

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
