"""Find AMD and Intel GPUs (and NVIDIA's without its driver) in /sys/class/drm on Linux."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from prony.instruments import kernel
from prony.instruments.device.nvidia import hash_serial
from prony.model.device import Gpu

VENDORS = {0x1002: "amd", 0x8086: "intel", 0x10DE: "nvidia"}
_NAMES = {"amd": "AMD", "intel": "Intel", "nvidia": "NVIDIA"}
_ID_FILES = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")

# AMD's target -> what its matrix units compute in, newest first; a target starts with one of these.
_AMD_PRECISIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gfx12", ("bf16", "fp16", "fp32", "fp64", "fp8", "int4", "int8")),
    ("gfx11", ("bf16", "fp16", "fp32", "fp64", "int4", "int8")),
    ("gfx10", ("fp16", "fp32", "fp64", "int8")),
    ("gfx950", ("bf16", "fp16", "fp32", "fp4", "fp6", "fp64", "fp8", "int8")),
    ("gfx942", ("bf16", "fp16", "fp32", "fp64", "fp8", "int8", "tf32")),
    ("gfx90a", ("bf16", "fp16", "fp32", "fp64", "int8")),
    ("gfx908", ("bf16", "fp16", "fp32", "fp64", "int8")),
    ("gfx9", ("fp16", "fp32", "fp64", "int8")),
)


def drm_gpus(root: Path = kernel.ROOT, *, first: int = 0, passed_over: frozenset[str] = frozenset()) -> tuple[Gpu, ...]:
    """Return every card of the vendors we know, numbered from `first`, less the vendors that were asked otherwise."""
    cards = [card for card in kernel.folders(root / "sys/class/drm", "card[0-9]*") if card.name[4:].isdecimal()]
    known = [(card / "device", VENDORS.get(kernel.number(card / "device/vendor") or 0)) for card in cards]
    wanted = [(folder, vendor) for folder, vendor in known if vendor and vendor not in passed_over]
    return tuple(_gpu(first + index, folder, vendor, root) for index, (folder, vendor) in enumerate(wanted))


def _gpu(index: int, folder: Path, vendor: str, root: Path) -> Gpu:
    unique, vram = kernel.text(folder / "unique_id"), kernel.number(folder / "mem_info_vram_total")
    target = _target(folder, root) if vendor == "amd" else None
    caps = [kernel.number(file) for file in kernel.folders(folder / "hwmon", "hwmon[0-9]*/power1_cap")]
    return Gpu(
        index=index,
        name=_name(folder, vendor, root),
        vendor=vendor,
        uuid_hash=hash_serial(unique) if unique else None,
        memory_mib=None if vram is None else vram // 2**20,
        compute_capability=target,
        precisions=next((names for start, names in _AMD_PRECISIONS if (target or "").startswith(start)), ()),
        power_limit_w=next((cap / 1e6 for cap in caps if cap), None),
        pcie_width=kernel.number(folder / "max_link_width"),
        driver=_driver(folder, root),
    )


def _name(folder: Path, vendor: str, root: Path) -> str:
    device = kernel.number(folder / "device")
    own = kernel.text(folder / "product_name")
    listed = None if device is None else _look_up_pci_name(kernel.number(folder / "vendor") or 0, device, root)
    name = kernel.first((own, listed)) or ("GPU" if device is None else f"GPU {device:#06x}")
    return name if name.startswith(_NAMES[vendor]) else f"{_NAMES[vendor]} {name}"


def _driver(folder: Path, root: Path) -> str | None:
    """Return the module's name and, where it has one of its own beside the kernel's, its version."""
    try:
        module = (folder / "driver").resolve(strict=True).name
    except OSError:
        return None
    version = kernel.text(root / f"sys/module/{module}/version")
    return f"{module} {version}" if version else module


def _target(folder: Path, root: Path) -> str | None:
    """Return AMD's name for the instruction set (gfx942), which the compute driver keeps by render node."""
    renders = [int(node.name[7:]) for node in kernel.folders(folder / "drm", "renderD[0-9]*")]
    for node in kernel.folders(root / "sys/class/kfd/kfd/topology/nodes", "[0-9]*"):
        properties = kernel.table(node / "properties")
        version = properties.get("gfx_target_version", 0)
        if version and properties.get("drm_render_minor") in renders:
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return None


@cache
def _look_up_pci_name(vendor: int, device: int, root: Path) -> str | None:
    """Return a device's name in the system's own list of PCI ids, where one is installed."""
    text = kernel.first(kernel.text(root / file) for file in _ID_FILES)
    section = re.search(rf"^{vendor:04x}  .*\n((?:[\t#].*\n|\n)*)", text or "", re.MULTILINE)
    line = re.search(rf"^\t{device:04x}  (.+)$", section.group(1), re.MULTILINE) if section else None
    return line.group(1).strip() if line else None
