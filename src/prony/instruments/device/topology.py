"""Read the CPU topology, caches and memory nodes from /sys/devices/system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prony.instruments import kernel

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


def read_topology(root: Path = kernel.ROOT) -> Topology:
    """Read it; what is not told (a guest sees little) is None."""
    online = kernel.cpu_list(kernel.text(root / _CPU / "online"))
    cores = _cores(root, online)
    strong, weak = _kinds(root, online)
    frequencies = max_frequencies_khz(root, online)
    nodes = kernel.cpu_list(kernel.text(root / "sys/devices/system/node/online"))
    return Topology(
        logical=len(online) or None,
        physical=len(set(cores.values())) if cores and len(cores) == len(online) else None,
        performance=len({cores.get(cpu, str(cpu)) for cpu in strong}) if weak else None,
        efficiency=len({cores.get(cpu, str(cpu)) for cpu in weak}) if weak else None,
        caches=read_caches(root, (*strong, *weak)),
        numa_nodes=len(nodes) or None,
        max_mhz=max(frequencies.values()) / 1000 if frequencies else None,
    )


def max_frequencies_khz(root: Path, cpus: tuple[int, ...]) -> dict[int, int]:
    """Return the highest clock of each CPU that tells it."""
    found = {cpu: kernel.number(root / _CPU / f"cpu{cpu}/cpufreq/cpuinfo_max_freq") for cpu in cpus}
    return {cpu: khz for cpu, khz in found.items() if khz}


def read_caches(root: Path, cpus: tuple[int, ...]) -> dict[str, int]:
    """Return the size of one cache of each level as the first of these CPUs sees it, and all of the last level's.

    Keys are `L1d_kib`, `L2_kib`, ...; `L3_total_kib` adds up the separate slices of a chiplet machine.
    """
    found: dict[str, int] = {}
    for index in kernel.folders(root / _CPU / f"cpu{cpus[0] if cpus else 0}/cache", "index[0-9]*"):
        level, size_kib = kernel.number(index / "level"), _kib(kernel.text(index / "size"))
        if level is None or size_kib is None:
            continue
        kind = {"Data": "d", "Instruction": "i"}.get(kernel.text(index / "type") or "", "")
        found[f"L{level}{kind}_kib"] = size_kib
        if level >= 3:
            found[f"L{level}_total_kib"] = _slices_kib(root, index.name, cpus)
    return found


def _slices_kib(root: Path, index: str, cpus: tuple[int, ...]) -> int:
    total, seen = 0, set[int]()
    for cpu in cpus:
        if cpu not in seen:
            folder = root / _CPU / f"cpu{cpu}/cache/{index}"
            seen.update(kernel.cpu_list(kernel.text(folder / "shared_cpu_list")), {cpu})
            total += _kib(kernel.text(folder / "size")) or 0
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
        siblings = kernel.first((kernel.text(folder / "core_cpus_list"), kernel.text(folder / "thread_siblings_list")))
        core, package = kernel.number(folder / "core_id"), kernel.number(folder / "physical_package_id")
        if siblings:
            found[cpu] = siblings
        elif core is not None:
            found[cpu] = f"{package}:{core}"
    return found


def _kinds(root: Path, cpus: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the strong and the weak CPUs; no weak ones where all are alike or nothing tells."""
    strong = kernel.cpu_list(kernel.text(root / "sys/devices/cpu_core/cpus"))
    weak = kernel.cpu_list(kernel.text(root / "sys/devices/cpu_atom/cpus"))
    if strong and weak:
        return strong, weak
    capacities = {cpu: kernel.number(root / _CPU / f"cpu{cpu}/cpu_capacity") for cpu in cpus}
    strengths = {cpu: value for cpu, value in capacities.items() if value} or max_frequencies_khz(root, cpus)
    if len(strengths) != len(cpus) or not cpus:
        return cpus, ()
    # Three kinds (prime, big, little) count as two: only the least are the efficient ones.
    least, most = min(strengths.values()), max(strengths.values())
    if least >= _SAME_KIND * most:
        return cpus, ()
    weak = tuple(cpu for cpu in cpus if strengths[cpu] * _SAME_KIND <= least)
    return tuple(sorted(set(cpus) - set(weak), key=lambda cpu: (-strengths[cpu], cpu))), weak
