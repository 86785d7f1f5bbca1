"""Read the CPU time of every process on this machine, and sum it over trees of processes."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prony.instruments.counters import TICK_S

_PROC = Path("/proc")
_NAMED = 3
# A process below this share of the machine is not worth a name.
_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class ProcessTimes:
    """One process. `own_s` is its own CPU time, `waited_s` that of children that ended and that it waited for."""

    parent: int
    name: str
    begun: float
    own_s: float
    waited_s: float


@dataclass(frozen=True)
class ProcessTable:
    """Every process at one instant; those that other users hide from us are missing."""

    at_ns: int
    processes: Mapping[int, ProcessTimes]

    @classmethod
    def read(cls, proc: Path = _PROC) -> ProcessTable:
        """Read all: about two milliseconds for a hundred processes."""
        found = _read_proc(proc) if (proc / "self" / "stat").exists() or proc != _PROC else _read_psutil()
        return cls(time.perf_counter_ns(), found)

    def below(self, roots: Collection[int]) -> set[int]:
        """Return these processes and all that descend from them."""
        children: dict[int, list[int]] = {}
        for pid, one in self.processes.items():
            children.setdefault(one.parent, []).append(pid)
        found: set[int] = set()
        waiting = [root for root in roots if root in self.processes]
        while waiting:
            pid = waiting.pop()
            if pid not in found:
                found.add(pid)
                waiting += children.get(pid, ())
        return found

    def above(self, pid: int) -> set[int]:
        """Return the parent of a process, its parent, and so on."""
        found: set[int] = set()
        while (one := self.processes.get(pid)) is not None and one.parent and one.parent not in found:
            pid = one.parent
            found.add(pid)
        return found


def tree_cpu_s(before: ProcessTable, after: ProcessTable, roots: Collection[int], alone: Collection[int] = ()) -> float:
    """Return the CPU seconds that these processes and all below them used between two readings, those that ended
    meanwhile with them; of the processes in `alone`, only their own."""
    then, now = before.below(roots), after.below(roots)
    # One that ended and was waited for outside of the tree is in no later reading: what it had used is taken from both.
    lost = {pid for pid in then if pid not in after.processes and before.processes[pid].parent not in then}
    used = sum(_all_s(after.processes[pid]) for pid in now)
    used -= sum(_all_s(before.processes[pid]) for pid in then - lost)
    for pid in set(alone) - now:
        used += grown_cpu_s(before.processes.get(pid), after.processes.get(pid))
    return max(0.0, used)


def busiest_processes(
    before: ProcessTable, after: ProcessTable, without: Collection[int], cpus: int
) -> dict[str, float]:
    """Return who used most of the machine's CPU between two readings, by name; processes in `without` are left out."""
    window_s = (after.at_ns - before.at_ns) / 1e9 * cpus
    gone_s: dict[int, float] = {}  # by who waited for them: what processes that ended meanwhile had used before
    for pid, one in before.processes.items():
        if pid not in after.processes:
            heir = _living_ancestor(one, before, after)
            gone_s[heir] = gone_s.get(heir, 0.0) + _all_s(one)
    shares: dict[str, float] = {}
    for pid, one in after.processes.items():
        if pid in without or window_s <= 0:
            continue
        earlier = before.processes.get(pid)
        used = grown_cpu_s(earlier, one)
        if earlier is not None and earlier.begun == one.begun:
            used += max(0.0, one.waited_s - earlier.waited_s - gone_s.get(pid, 0.0))
        shares[one.name] = shares.get(one.name, 0.0) + used / window_s
    ordered = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
    # Over a short window the kernel's ticks can say more than there is.
    return {name: round(min(1.0, share), 3) for name, share in ordered[:_NAMED] if share >= _LEAST_SHARE}


def sample_busiest(seconds: float = 0.1) -> dict[str, float]:
    """Return who uses most of the CPU just now, besides this process and all that it started."""
    before = ProcessTable.read()
    time.sleep(seconds)
    after = ProcessTable.read()
    return busiest_processes(before, after, after.below({os.getpid()}), os.cpu_count() or 1)


def _living_ancestor(one: ProcessTimes, before: ProcessTable, after: ProcessTable) -> int:
    """Return who has the time of a process that ended: its parent, or that one's where the parent has ended too."""
    while one.parent not in after.processes and one.parent in before.processes:
        one = before.processes[one.parent]
    return one.parent


def _all_s(one: ProcessTimes) -> float:
    return one.own_s + one.waited_s


def grown_cpu_s(earlier: ProcessTimes | None, later: ProcessTimes | None) -> float:
    """Return a process's own CPU time between two readings; a new process has the number of an old one at times."""
    if later is None:
        return 0.0
    known = earlier is not None and earlier.begun == later.begun
    return max(0.0, later.own_s - (earlier.own_s if known and earlier is not None else 0.0))


def _read_proc(proc: Path) -> dict[int, ProcessTimes]:
    found: dict[int, ProcessTimes] = {}
    for entry in os.scandir(proc):
        if not entry.name.isdecimal():
            continue
        with suppress(OSError, ValueError, IndexError):
            # The name of the program comes in brackets and may hold any character.
            head, _, rest = _read_once(f"{entry.path}/stat").rpartition(b")")
            words = rest.split(None, 20)
            name = head.partition(b"(")[2].decode(errors="replace")
            own, waited = (int(words[11]) + int(words[12])) * TICK_S, (int(words[13]) + int(words[14])) * TICK_S
            found[int(entry.name)] = ProcessTimes(int(words[1]), name, float(words[19]), own, waited)
    return found


def _read_once(path: str) -> bytes:
    """Return a small file of the kernel's: a third of the time that an open file of Python takes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _read_psutil() -> dict[int, ProcessTimes]:
    import psutil

    found: dict[int, ProcessTimes] = {}
    for process in psutil.process_iter(["ppid", "name", "create_time", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None:
            waited = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            found[process.pid] = ProcessTimes(
                process.info["ppid"] or 0, process.info["name"] or "", process.info["create_time"] or 0.0,
                times.user + times.system, waited,
            )  # fmt: skip
    return found
