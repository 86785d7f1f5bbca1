"""Read the CPU and memory limits of a process's control groups.

A limit on any ancestor binds all below it, so each hierarchy is walked from the leaf up. Versions 1 and 2 may be
mounted side by side; both are asked. Needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.instruments import kernel


@dataclass(frozen=True)
class Mount:
    """One mounted hierarchy; `below` is the part of it that is visible at `point` (not `/` in some containers)."""

    point: Path
    below: str
    controllers: frozenset[str]
    version: int


def mounts(root: Path = kernel.ROOT) -> list[Mount]:
    """Return every control-group hierarchy that is mounted."""
    lines = (kernel.read_text(root / "proc/self/mountinfo") or "").splitlines()
    found: list[Mount] = []
    for line in lines:
        left, _, right = line.partition(" - ")
        head, tail = left.split(), right.split()
        if len(head) < 5 or len(tail) < 1 or tail[0] not in ("cgroup", "cgroup2"):
            continue
        options = frozenset(tail[-1].split(","))
        version = 2 if tail[0] == "cgroup2" else 1
        found.append(Mount(root / head[4].lstrip("/"), head[3], options, version))
    return found


def groups(controller: str, version: int, root: Path = kernel.ROOT) -> Iterator[Path]:
    """Yield the folder of this process's group under one controller, then its ancestors' up to the mount."""
    for mount in mounts(root):
        if mount.version != version or (version == 1 and controller not in mount.controllers):
            continue
        leaf = _leaf(_own_path(controller, version, root), mount)
        while leaf != mount.point:
            yield leaf
            leaf = leaf.parent
        yield mount.point
        return


def quota_cores(root: Path = kernel.ROOT) -> float | None:
    """Return how many CPUs' worth of time the groups allow, or None where nothing limits it."""
    found: list[float] = []
    for group in groups("cpu", 2, root):
        words = (kernel.read_text(group / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[1]) > 0:
            found.append(int(words[0]) / int(words[1]))
    for group in groups("cpu", 1, root):
        quota, period = kernel.number(group / "cpu.cfs_quota_us"), kernel.number(group / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            found.append(quota / period)
    return min(found, default=None)


def memory_limit_bytes(root: Path = kernel.ROOT) -> int | None:
    """Return the smallest memory limit, or None. Version 1 writes an enormous number for "no limit"."""
    files = [group / "memory.max" for group in groups("memory", 2, root)]
    files += [group / "memory.limit_in_bytes" for group in groups("memory", 1, root)]
    limits = (kernel.number(file) for file in files)
    return min((limit for limit in limits if limit is not None and limit < 2**60), default=None)


def throttle_files(root: Path = kernel.ROOT) -> tuple[Path, ...]:
    """Return the `cpu.stat` files that tell how long a quota held this process's groups back."""
    files = [group / "cpu.stat" for version in (2, 1) for group in groups("cpu", version, root)]
    return tuple(file for file in files if kernel.read_table(file).keys() & {"throttled_usec", "throttled_time"})


def throttled_us(files: tuple[Path, ...]) -> int | None:
    """Return the time all those groups were held back, in microseconds; None where no group tells."""
    if not files:
        return None
    tables = [kernel.read_table(file) for file in files]
    # Version 2 counts microseconds, version 1 nanoseconds.
    return sum(each.get("throttled_usec", 0) + each.get("throttled_time", 0) // 1000 for each in tables)


def _own_path(controller: str, version: int, root: Path) -> str:
    for line in (kernel.read_text(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if (version == 2 and number == "0") or (version == 1 and controller in names.split(",")):
            return path
    return "/"


def _leaf(path: str, mount: Mount) -> Path:
    """Return the group's folder. Where it is not visible (in a container), the mount is the group."""
    below = mount.below.rstrip("/")
    inside = path.removeprefix(below) if below and (path + "/").startswith(below + "/") else path
    leaf = mount.point / inside.strip("/")
    return leaf if ".." not in leaf.parts and leaf.is_dir() else mount.point
