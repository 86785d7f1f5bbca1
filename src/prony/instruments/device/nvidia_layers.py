"""Ask NVML and nvidia-smi, each by itself, what NVIDIA GPUs there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from xml.etree import ElementTree

from prony.instruments.device.nvidia import ask_library, describe_absence, handles, management
from prony.model.gpu_detection import FactValue, GpuFields, LayerAnswer

NVML, SMI = "nvml", "nvidia-smi"
_PATIENCE_S = 30
_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_SWITCH = {0: "off", 1: "on"}


def ask_nvml() -> LayerAnswer:
    """Return what the driver's library says of each card."""
    library = management()
    if library is None:
        return LayerAnswer(layer=NVML, state="absent", note=describe_absence())
    cards = tuple(_nvml_card(library, handle) for handle in handles())
    return LayerAnswer(layer=NVML, state="asked", cards=cards, note="" if cards else describe_absence())


def _nvml_card(library: Any, handle: Any) -> GpuFields:
    def ask(question: str, *more: Any) -> Any | None:
        call = getattr(library, f"nvmlDevice{question}", None)
        return None if call is None else ask_library(call, handle, *more)

    memory, capability, pci = ask("GetMemoryInfo"), ask("GetCudaComputeCapability"), ask("GetPciInfo")
    ecc, mig, limit = ask("GetEccMode"), ask("GetMigMode"), ask("GetEnforcedPowerLimit")
    cuda = ask_library(library.nvmlSystemGetCudaDriverVersion_v2)
    return _drop_unknown({
        "name": _text(ask("GetName")),
        "uuid": _text(ask("GetUUID")),
        "pci": None if pci is None else _text(pci.busId),
        "compute_capability": None if capability is None else f"{capability[0]}.{capability[1]}",
        "memory_mib": None if memory is None else memory.total // 2**20,
        "memory_bus_bits": ask("GetMemoryBusWidth"),
        "multiprocessors": _multiprocessors(library, handle),
        "max_clock_mhz": ask("GetMaxClockInfo", library.NVML_CLOCK_SM),
        "driver": _text(ask_library(library.nvmlSystemGetDriverVersion)),
        "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
        "power_limit_w": None if limit is None else limit / 1000,
        "ecc": None if ecc is None else _SWITCH.get(ecc[0]),
        "mig": None if mig is None else _SWITCH.get(mig[0]),
        "mig_slices": _slices(ask, mig),
        "mps_clients": _count(ask("GetMPSComputeRunningProcesses")),
        "persistence": _SWITCH.get(ask("GetPersistenceMode")),  # type: ignore[arg-type]
        "compute_mode": _MODES.get(ask("GetComputeMode")),  # type: ignore[arg-type]
        "link_generation": ask("GetCurrPcieLinkGeneration"),
        "link_generation_max": ask("GetMaxPcieLinkGeneration"),
        "link_width": ask("GetCurrPcieLinkWidth"),
        "link_width_max": ask("GetMaxPcieLinkWidth"),
    })  # fmt: skip


def _multiprocessors(library: Any, handle: Any) -> int | None:
    """Return the number of multiprocessors, which older versions of the library do not tell."""
    call = getattr(library, "nvmlDeviceGetAttributes_v2", None)
    told = None if call is None else ask_library(call, handle)
    return None if told is None else int(told.multiprocessorCount)


def _slices(ask: Callable[..., Any], mig: Any) -> int | None:
    if mig is None or not mig[0]:
        return None
    most = ask("GetMaxMigDeviceCount") or 0
    return sum(ask("GetMigDeviceHandleByIndex", index) is not None for index in range(most))


def _count(listed: Any) -> int | None:
    return len(listed) if listed else None


def _drop_unknown(fields: Mapping[str, FactValue | None]) -> GpuFields:
    return {name: value for name, value in fields.items() if value is not None}


def _text(value: Any) -> str | None:
    # Older versions of the package answer in bytes.
    return value.decode() if isinstance(value, bytes) else value


def ask_nvidia_smi() -> LayerAnswer:
    """Return what `nvidia-smi -q -x` says; another program than the library, of the same driver."""
    program = shutil.which(SMI)
    if program is None:
        return LayerAnswer(layer=SMI, state="absent", note="nvidia-smi not found on PATH")
    try:
        done = subprocess.run([program, "-q", "-x"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        cards = parse_smi(done.stdout) if done.returncode == 0 else ()
    except (OSError, subprocess.TimeoutExpired, ElementTree.ParseError) as exc:
        return LayerAnswer(layer=SMI, state="failed", note=f"nvidia-smi -q -x: {exc}")
    if done.returncode != 0:
        said = (done.stdout or done.stderr).strip().splitlines()
        return LayerAnswer(layer=SMI, state="failed", note=said[-1] if said else f"it ended with {done.returncode}")
    return LayerAnswer(layer=SMI, state="asked", cards=cards, note="" if cards else "it lists no GPU")


# A field and where it is written, the newest name first: NVIDIA renames them from driver to driver.
_SMI_FIELDS: dict[str, tuple[str, ...]] = {
    "name": ("product_name",),
    "uuid": ("uuid",),
    "architecture": ("product_architecture",),
    "memory_mib": ("fb_memory_usage/total",),
    "max_clock_mhz": ("max_clocks/sm_clock",),
    "power_limit_w": (
        "gpu_power_readings/current_power_limit", "gpu_power_readings/enforced_power_limit",
        "power_readings/enforced_power_limit", "power_readings/power_limit",
    ),
    "ecc": ("ecc_mode/current_ecc",),
    "mig": ("mig_mode/current_mig",),
    "persistence": ("persistence_mode",),
    "compute_mode": ("compute_mode",),
    "link_generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",),
    "link_generation_max": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",),
    "link_width": ("pci/pci_gpu_link_info/link_widths/current_link_width",),
    "link_width_max": ("pci/pci_gpu_link_info/link_widths/max_link_width",),
    "virtualization": ("gpu_virtualization_mode/virtualization_mode",),
}  # fmt: skip
_NOTHING = re.compile(r"\[?N/A\]?|Unknown Error|Requested functionality has been deprecated|None|")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:x|MiB|MHz|W|C|%)?")
_SMI_WORDS = {"enabled": "on", "disabled": "off", "exclusive_process": "exclusive process"}
_TEXTS = frozenset({"name", "uuid", "architecture", "virtualization"})


def parse_smi(text: str) -> tuple[GpuFields, ...]:
    """Return each card of nvidia-smi's XML, of whichever version; what it does not know is left out."""
    root = ElementTree.fromstring(text)
    shared = _drop_unknown({"driver": _first(root, ("driver_version",)), "cuda": _first(root, ("cuda_version",))})
    return tuple(_smi_card(one, shared) for one in root.iter("gpu"))


def _smi_card(card: ElementTree.Element, shared: GpuFields) -> GpuFields:
    told = {name: _first(card, paths) for name, paths in _SMI_FIELDS.items()}
    values = {name: _value(name, text) for name, text in told.items() if text is not None}
    slices = len(card.findall("mig_devices/mig_device"))
    pci = card.get("id") or _first(card, ("pci/pci_bus_id",))
    return _drop_unknown({**values, **shared, "pci": pci, "mig_slices": slices or None})


def _first(place: ElementTree.Element, paths: Iterable[str]) -> str | None:
    texts = ((place.findtext(path) or "").strip() for path in paths)
    return next((text for text in texts if not _NOTHING.fullmatch(text)), None)


def _value(name: str, text: str) -> FactValue:
    number = None if name in _TEXTS else _NUMBER.fullmatch(text)
    if number is None:
        return text if name in _TEXTS else _SMI_WORDS.get(text.lower(), text.lower())
    value = float(number[1])
    return int(value) if value.is_integer() and name != "power_limit_w" else value
