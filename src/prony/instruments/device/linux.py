"""Detect a Linux machine's hardware from /proc and /sys: CPU and microcode, topology, caches, memory nodes and GPUs.

GPUs of AMD and Intel (and NVIDIA's without its driver) are found in /sys/class/drm.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prony.instruments import cgroup, kernel
from prony.instruments.device import cpuinfo, machine
from prony.instruments.device.nvidia import hash_serial
from prony.model.device import Cpu, Gpu, Hardware

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
    unique, vram = kernel.read_text(folder / "unique_id"), kernel.number(folder / "mem_info_vram_total")
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
    own = kernel.read_text(folder / "product_name")
    listed = None if device is None else _look_up_pci_name(kernel.number(folder / "vendor") or 0, device, root)
    name = kernel.first((own, listed)) or ("GPU" if device is None else f"GPU {device:#06x}")
    return name if name.startswith(_NAMES[vendor]) else f"{_NAMES[vendor]} {name}"


def _driver(folder: Path, root: Path) -> str | None:
    """Return the module's name and, where it has one of its own beside the kernel's, its version."""
    try:
        module = (folder / "driver").resolve(strict=True).name
    except OSError:
        return None
    version = kernel.read_text(root / f"sys/module/{module}/version")
    return f"{module} {version}" if version else module


def _target(folder: Path, root: Path) -> str | None:
    """Return AMD's name for the instruction set (gfx942), which the compute driver keeps by render node."""
    renders = [int(node.name[7:]) for node in kernel.folders(folder / "drm", "renderD[0-9]*")]
    for node in kernel.folders(root / "sys/class/kfd/kfd/topology/nodes", "[0-9]*"):
        properties = kernel.read_table(node / "properties")
        version = properties.get("gfx_target_version", 0)
        if version and properties.get("drm_render_minor") in renders:
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    return None


@cache
def _look_up_pci_name(vendor: int, device: int, root: Path) -> str | None:
    """Return a device's name in the system's own list of PCI ids, where one is installed."""
    text = kernel.first(kernel.read_text(root / file) for file in _ID_FILES)
    section = re.search(rf"^{vendor:04x}  .*\n((?:[\t#].*\n|\n)*)", text or "", re.MULTILINE)
    line = re.search(rf"^\t{device:04x}  (.+)$", section.group(1), re.MULTILINE) if section else None
    return line.group(1).strip() if line else None


_CPU = "sys/devices/system/cpu"
# Cores of one kind differ by a few per cent in their best clock (favoured cores); kinds differ by far more.
_SAME_KIND = 0.85


@dataclass(frozen=True)
class Topology:
    """Cores are physical; a machine whose cores are all alike has neither performance nor efficiency cores."""

    logical: int | None
    physical: int | None
    performance: int | None
    efficiency: int | None
    caches: dict[str, int]
    numa_nodes: int | None
    max_mhz: float | None


def _read_topology(root: Path = kernel.ROOT) -> Topology:
    """Read it; what is not told (a guest sees little) is None."""
    online = kernel.cpu_list(kernel.read_text(root / _CPU / "online"))
    cores = _cores(root, online)
    strong, weak = _kinds(root, online)
    frequencies = _max_frequencies_khz(root, online)
    nodes = kernel.cpu_list(kernel.read_text(root / "sys/devices/system/node/online"))
    return Topology(
        logical=len(online) or None,
        physical=len(set(cores.values())) if cores and len(cores) == len(online) else None,
        performance=len({cores.get(cpu, str(cpu)) for cpu in strong}) if weak else None,
        efficiency=len({cores.get(cpu, str(cpu)) for cpu in weak}) if weak else None,
        caches=_read_caches(root, (*strong, *weak)),
        numa_nodes=len(nodes) or None,
        max_mhz=max(frequencies.values()) / 1000 if frequencies else None,
    )


def _max_frequencies_khz(root: Path, cpus: tuple[int, ...]) -> dict[int, int]:
    """Return the highest clock of each CPU that tells it."""
    found = {cpu: kernel.number(root / _CPU / f"cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in cpus}
    return {cpu: khz for cpu, khz in found.items() if khz}


def _read_caches(root: Path, cpus: tuple[int, ...]) -> dict[str, int]:
    """Return the size of one cache of each level as the first of these CPUs sees it, and all of the last level's.

    Keys are `L1d_kib`, `L2_kib`, ...; `L3_total_kib` adds up the separate slices of a chiplet machine.
    """
    found: dict[str, int] = {}
    for index in kernel.folders(root / _CPU / f"cpu{cpus[0] if cpus else 0}/cache", "index[0-9]*"):
        level, size_kib = kernel.number(index / "level"), _kib(kernel.read_text(index / "size"))
        if level is None or size_kib is None:
            continue
        kind = {"Data": "d", "Instruction": "i"}.get(kernel.read_text(index / "type") or "", "")
        found[f"L{level}{kind}_kib"] = size_kib
        if level >= 3:
            found[f"L{level}_total_kib"] = _slices_kib(root, index.name, cpus)
    return found


def _slices_kib(root: Path, index: str, cpus: tuple[int, ...]) -> int:
    total, seen = 0, set[int]()
    for cpu in cpus:
        if cpu not in seen:
            folder = root / _CPU / f"cpu{cpu}/cache/{index}"
            seen.update(kernel.cpu_list(kernel.read_text(folder / "shared_cpu_list")), {cpu})
            total += _kib(kernel.read_text(folder / "size")) or 0
    return total


def _kib(size: str | None) -> int | None:
    """Return a kernel size such as `512K` or `32M` in KiB."""
    if not size or not size[:-1].isdecimal():
        return None
    return int(size[:-1]) * {"K": 1, "M": 1024, "G": 1024**2}.get(size[-1], 0) or None


def _cores(root: Path, cpus: tuple[int, ...]) -> dict[int, str]:
    """Return each CPU's physical core. Core ids repeat between clusters on some boards, lists of siblings never."""
    found: dict[int, str] = {}
    for cpu in cpus:
        folder = root / _CPU / f"cpu{cpu}/topology"
        siblings = kernel.first(
            (kernel.read_text(folder / "core_cpus_list"), kernel.read_text(folder / "thread_siblings_list"))
        )
        core, package = kernel.number(folder / "core_id"), kernel.number(folder / "physical_package_id")
        if siblings:
            found[cpu] = siblings
        elif core is not None:
            found[cpu] = f"{package}:{core}"
    return found


def _kinds(root: Path, cpus: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the strong and the weak CPUs; no weak ones where all are alike or nothing tells."""
    strong = kernel.cpu_list(kernel.read_text(root / "sys/devices/cpu_core/cpus"))
    weak = kernel.cpu_list(kernel.read_text(root / "sys/devices/cpu_atom/cpus"))
    if strong and weak:
        return strong, weak
    capacities = {cpu: kernel.number(root / _CPU / f"cpu{cpu}/cpu_capacity") for cpu in cpus}
    strengths = {cpu: value for cpu, value in capacities.items() if value} or _max_frequencies_khz(root, cpus)
    if len(strengths) != len(cpus) or not cpus:
        return cpus, ()
    # Three kinds (prime, big, little) count as two: only the least are the efficient ones.
    least, most = min(strengths.values()), max(strengths.values())
    if least >= _SAME_KIND * most:
        return cpus, ()
    weak = tuple(cpu for cpu in cpus if strengths[cpu] * _SAME_KIND <= least)
    return tuple(sorted(set(cpus) - set(weak), key=lambda cpu: (-strengths[cpu], cpu))), weak


def read_hardware(
    gpus: tuple[Gpu, ...] = (), root: Path = kernel.ROOT, allowed: int | None = None
) -> tuple[Hardware, str | None]:
    """Return the hardware, and the microcode's revision. `gpus` are those already found by their vendor's library."""
    who = cpuinfo.identify(kernel.read_text(root / "proc/cpuinfo") or "", machine.dmi("sys_vendor", root))
    memory_mib = kernel.read_table(root / "proc/meminfo").get("MemTotal", 0) // 1024
    limit = cgroup.memory_limit_bytes(root)
    others = drm_gpus(root, first=len(gpus), passed_over=frozenset(gpu.vendor for gpu in gpus))
    hardware = Hardware(
        cpu=_cpu(who, root, allowed_cpus() if allowed is None else allowed),
        memory_mib=memory_mib,
        memory_installed_mib=installed_mib(root),
        # A limit above what there is limits nothing.
        memory_limit_mib=None if limit is None or limit // 2**20 >= memory_mib else limit // 2**20,
        gpus=(*gpus, *others),
        virtualization=machine.virtualization(who.is_guest, root),
        machine=machine.product(root),
    )
    return hardware, who.microcode


def allowed_cpus() -> int:
    """Return how many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def installed_mib(root: Path = kernel.ROOT) -> int | None:
    """Return the memory that is fitted, from the kernel's blocks of it, or None where it does not list them."""
    folder = root / "sys/devices/system/memory"
    block = kernel.read_text(folder / "block_size_bytes")
    count = len(kernel.folders(folder, "memory[0-9]*"))
    return int(block, 16) * count // 2**20 if block and count else None


def _cpu(who: cpuinfo.CpuIdentity, root: Path, allowed: int) -> Cpu:
    shape = _read_topology(root)
    return Cpu(
        model=who.model,
        vendor=who.vendor,
        family=who.family,
        model_number=who.model_number,
        stepping=who.stepping,
        architecture=platform.machine(),
        flags=who.flags,
        physical_cores=shape.physical,
        logical_cores=shape.logical or os.cpu_count() or allowed,
        performance_cores=shape.performance,
        efficiency_cores=shape.efficiency,
        allowed_cores=allowed,
        quota_cores=cgroup.quota_cores(root),
        caches=shape.caches,
        numa_nodes=shape.numa_nodes,
        max_mhz=shape.max_mhz,
    )
