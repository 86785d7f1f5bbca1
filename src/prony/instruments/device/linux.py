"""Detect a Linux machine's hardware and CPU microcode from /proc and /sys."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from prony.instruments import cgroup, kernel
from prony.instruments.device import cpuinfo, machine
from prony.instruments.device.drm import drm_gpus
from prony.instruments.device.topology import read_topology
from prony.model.device import Cpu, Gpu, Hardware


def read_hardware(
    gpus: tuple[Gpu, ...] = (), root: Path = kernel.ROOT, allowed: int | None = None
) -> tuple[Hardware, str | None]:
    """Return the hardware, and the microcode's revision. `gpus` are those already found by their vendor's library."""
    who = cpuinfo.identify(kernel.text(root / "proc/cpuinfo") or "", machine.dmi("sys_vendor", root))
    memory_mib = kernel.table(root / "proc/meminfo").get("MemTotal", 0) // 1024
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
    block = kernel.text(folder / "block_size_bytes")
    count = len(kernel.folders(folder, "memory[0-9]*"))
    return int(block, 16) * count // 2**20 if block and count else None


def _cpu(who: cpuinfo.Identity, root: Path, allowed: int) -> Cpu:
    shape = read_topology(root)
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
