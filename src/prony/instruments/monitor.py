"""Read what the whole machine does now, from one reading to the next."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from prony.instruments import counters
from prony.instruments.counters import HostCounters, busy_share
from prony.instruments.device.nvidia import describe_absence, read_cards, sees_real_pids
from prony.instruments.processes import ProcessTable, grown_cpu_s
from prony.model.monitor import CardMoment, MachineMoment, ProcessMoment

_MIB = 2**20
_MOST_PROCESSES = 8
_LEAST_PERCENT = 0.5


class MachineMonitor:
    """Each `read` tells what happened since the one before; the first one since the monitor was made."""

    def __init__(self, now: Callable[[], datetime], most: int = _MOST_PROCESSES) -> None:
        self._now, self._most = now, most
        self._table, self._counters = ProcessTable.read(), HostCounters.read()

    def read(self) -> MachineMoment:
        before, table_before = self._counters, self._table
        after, table = HostCounters.read(), ProcessTable.read()
        self._counters, self._table = after, table
        window_s = (after.at_ns - before.at_ns) / 1e9
        heat, used = counters.heat(), busy_share(before, after)
        cards = read_cards()
        return MachineMoment(
            taken_at=self._now(), window_s=window_s,
            cpu_percent=None if used is None else 100 * used,
            core_percents=_core_percents(before, after), clock_mhz=counters.frequency_mhz(),
            temperature_c=None if heat is None else heat.hottest_c,
            load_average=os.getloadavg() if hasattr(os, "getloadavg") else (),
            pressure_percents=_pressures(before, after),
            processes=_busiest(table_before, table, self._most),
            cards=tuple(map(_name_users, cards)), cards_note="" if cards else describe_absence(),
            **_memory(),
        )  # fmt: skip


def _core_percents(before: HostCounters, after: HostCounters) -> dict[int, float]:
    """Return how busy each core was: what is neither idle, nor waiting, nor stolen."""
    found = {}
    for cpu in sorted(before.cpus.keys() & after.cpus.keys()):
        then, now = before.cpus[cpu], after.cpus[cpu]
        busy_s = now.busy_s - then.busy_s
        whole_s = busy_s + now.idle_s - then.idle_s + now.iowait_s - then.iowait_s + now.steal_s - then.steal_s
        found[cpu] = min(100.0, max(0.0, 100 * busy_s / whole_s)) if whole_s > 0 else 0.0
    return found


def _pressures(before: HostCounters, after: HostCounters) -> dict[str, float]:
    window_us = (after.at_ns - before.at_ns) / 1e3
    both = before.pressure_us.keys() & after.pressure_us.keys()
    grown = {name: after.pressure_us[name] - before.pressure_us[name] for name in sorted(both)}
    return {name: min(100.0, max(0.0, 100 * us / window_us)) for name, us in grown.items() if window_us > 0}


def _busiest(before: ProcessTable, after: ProcessTable, most: int) -> tuple[ProcessMoment, ...]:
    window_s = (after.at_ns - before.at_ns) / 1e9
    if window_s <= 0:
        return ()
    percents = {
        pid: 100 * grown_cpu_s(before.processes.get(pid), one) / window_s for pid, one in after.processes.items()
    }
    busy = sorted((pid for pid, one in percents.items() if one >= _LEAST_PERCENT), key=lambda pid: -percents[pid])
    return tuple(
        ProcessMoment(pid=pid, name=after.processes[pid].name, cpu_percent=percents[pid], memory_mib=_resident_mib(pid))
        for pid in busy[:most]
    )


def _resident_mib(pid: int) -> float | None:
    import psutil

    with suppress(psutil.Error):
        return float(psutil.Process(pid).memory_info().rss) / _MIB
    return None


def _name_users(card: CardMoment) -> CardMoment:
    """Return a card whose users have names; in a container their numbers are those of other processes."""
    import psutil

    if not card.processes or not (sees_real_pids() or sys.platform == "win32"):
        return card
    named = []
    for one in card.processes:
        name = one.name
        with suppress(psutil.Error):
            name = psutil.Process(one.pid).name()
        named.append(one.model_copy(update={"name": name}))
    return card.model_copy(update={"processes": tuple(named)})


def _memory() -> dict[str, float]:
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    return {
        "memory_used_mib": (memory.total - memory.available) / _MIB,
        "memory_total_mib": memory.total / _MIB,
        "swap_used_mib": swap.used / _MIB,
        "swap_total_mib": swap.total / _MIB,
    }
