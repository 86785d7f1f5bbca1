"""Detect a PC's hardware from the Windows registry."""

from __future__ import annotations

import ctypes
import platform
import re
import sys
from collections.abc import Mapping

from prony.instruments.device import cpuinfo as flags
from prony.model.device import Cpu, Gpu, Hardware

_CPU = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
_BIOS = r"HARDWARE\DESCRIPTION\System\BIOS"


def read_hardware(gpus: tuple[Gpu, ...]) -> Hardware:
    """Ask this PC."""
    import psutil

    bios = _registry(_BIOS)
    memory_mib = psutil.virtual_memory().total // 2**20
    return Hardware(
        cpu=cpu(_registry(_CPU), _features(), psutil.cpu_count(logical=True) or 1, psutil.cpu_count(logical=False)),
        memory_mib=memory_mib,
        gpus=gpus,
        virtualization=virtualization(bios),
        machine=" ".join(filter(None, (bios.get("SystemManufacturer"), bios.get("SystemProductName")))) or None,
    )


def cpu(said: Mapping[str, str], features: set[str], logical: int, physical: int | None) -> Cpu:
    """Return the CPU from the registry's words, such as `Intel64 Family 6 Model 140 Stepping 1`."""
    numbers = {key.lower(): int(value) for key, value in re.findall(r"(\w+) (\d+)", said.get("Identifier", ""))}
    name = said.get("ProcessorNameString")
    return Cpu(
        model=" ".join(name.split()) if name else None,
        vendor=said.get("VendorIdentifier"),
        family=numbers.get("family"),
        model_number=numbers.get("model"),
        stepping=numbers.get("stepping"),
        architecture=platform.machine(),
        flags=flags.relevant(features),
        physical_cores=physical,
        logical_cores=logical,
        allowed_cores=_count_allowed(logical),
    )


def virtualization(bios: Mapping[str, str]) -> str | None:
    """Return the hypervisor that the firmware names, or None: its silence proves nothing here."""
    words = " ".join(bios.values()).lower()
    signs = {"virtual machine": "hyper-v", "vmware": "vmware", "virtualbox": "virtualbox", "kvm": "kvm", "qemu": "qemu"}
    return next((name for sign, name in signs.items() if sign in words), None)


def _count_allowed(logical: int) -> int:
    import psutil

    return len(psutil.Process().cpu_affinity() or range(logical))


def _features() -> set[str]:
    """Return the flags that Windows tells at once; py-cpuinfo, which takes seconds, only where it tells none."""
    if sys.platform == "win32":
        told = {
            name for number, name in flags.WINDOWS.items() if ctypes.windll.kernel32.IsProcessorFeaturePresent(number)
        }
        return told or _slow_features()
    return set()


def _slow_features() -> set[str]:
    try:
        import cpuinfo
    except ImportError:
        return set()
    return set(cpuinfo.get_cpu_info().get("flags", ()))


def _registry(key: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
                for index in range(winreg.QueryInfoKey(opened)[1]):
                    name, value, _ = winreg.EnumValue(opened, index)
                    found[name] = str(value)
        except OSError:
            return found
    return found
