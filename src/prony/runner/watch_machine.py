"""Watch the whole machine beside a run: counters before and after, and whose CPU time is the run's own.

Its own are this process, all that it started, and the service under load wherever it runs on this machine: whoever
listens at the endpoint, what descends from it, and those on this machine to whom it has connections.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil

from prony.instruments.counters import HostCounters, busy_share
from prony.instruments.noise import noise_between
from prony.instruments.processes import ProcessTable, busiest_processes, tree_cpu_s
from prony.load.endpoint import is_local
from prony.model.result import MachineUse, Noise
from prony.ports.driver import Endpoint

ELSEWHERE = "the service runs on another machine, which was not monitored"
_HIDDEN = "the service belongs to another user, so its use cannot be separated from that of other programs"
_FORWARDED = "{name} forwards the endpoint, so the service's use cannot be separated from that of other programs"
_NOBODY = "no process was found at the endpoint, so the service's use cannot be separated from that of other programs"
# Programs that only pass bytes on to a container: the service runs somewhere else.
_FORWARDERS = frozenset(("docker-proxy", "rootlessport", "slirp4netns", "pasta", "pasta.avx2", "gvproxy"))
_LOOK_AGAIN_S = 1.0
_WELL_SEEN_NS = 500_000_000
_MOST_EARLIER = 50
# What the kernel counts to the last event: these need no long window.
EXACT_READINGS = ("quota_throttled_ms", "thermal_events", "swapped_pages")
_EVERYWHERE = ("0.0.0.0", "::", "*")


@dataclass
class FoundService:
    """The processes of a service: `trees` with all below them, `alone` without; `reason` says why they are not known,
    `is_elsewhere` that the service runs on another machine."""

    trees: set[int] = field(default_factory=set)
    alone: set[int] = field(default_factory=set)
    reason: str = ""
    is_elsewhere: bool = False


@dataclass(frozen=True)
class MachineReading:
    """The whole machine at one instant: its counters, read last, and every process."""

    table: ProcessTable
    counters: HostCounters

    @classmethod
    def read(cls) -> MachineReading:
        return cls(ProcessTable.read(), HostCounters.read())


class EarlierReadings:
    """Readings from before a run, one for each run so far: the counters move in ticks, so what disturbed a short run is
    seen only over a longer time."""

    def __init__(self) -> None:
        self._kept: deque[MachineReading] = deque(maxlen=_MOST_EARLIER)

    def add(self, reading: MachineReading) -> None:
        self._kept.append(reading)

    def long_before(self, reading: MachineReading, end_ns: int) -> MachineReading:
        """Return the reading itself where its time is long enough, else the latest for which it is, else the oldest."""
        for one in (reading, *reversed(self._kept)):
            if end_ns - one.counters.at_ns >= _WELL_SEEN_NS:
                return one
        return self._kept[0] if self._kept else reading


class MachineWatch:
    """Watches one run, from `begin` to `end`. `endpoint` is what is loaded where this process did not start it itself;
    `blind` says why nothing can be told apart from the start on; `earlier` are readings from before, for short runs
    between which this process and its own do all the work."""

    def __init__(
        self, endpoint: Endpoint | None = None, blind: str = "", earlier: EarlierReadings | None = None
    ) -> None:
        self._endpoint, self._blind, self._earlier = endpoint, blind, earlier
        self._service = FoundService()
        self._before: MachineReading | None = None
        self._look_at = float("inf")
        self.use = MachineUse()

    def begin(self) -> None:
        """Read everything; the counters last, so that what reading costs is in no window."""
        if self._endpoint is not None:
            self._service = find_service(self._endpoint, ProcessTable.read())
            self._look_at = time.monotonic() + _LOOK_AGAIN_S
        self._before = MachineReading.read()
        if self._earlier is not None:
            self._earlier.add(self._before)

    @property
    def elapsed_s(self) -> float:
        """How long it has watched."""
        return 0.0 if self._before is None else (time.perf_counter_ns() - self._before.counters.at_ns) / 1e9

    def tick(self) -> None:
        """Look once more for those who work for the service: some connections are only made under load."""
        if time.monotonic() >= self._look_at and self._endpoint is not None:
            self._look_at = float("inf")
            if not self._service.is_elsewhere and not self._service.reason:
                self._add(find_service(self._endpoint, ProcessTable.read()))

    def end(self) -> Noise:
        """Return what else the machine did."""
        if self._before is None:
            return Noise()
        after = HostCounters.read()
        before = self._before if self._earlier is None else self._earlier.long_before(self._before, after.at_ns)
        table = ProcessTable.read()
        self.use = self._measure_use(self._before, after, table)
        service, own = self._service, {os.getpid()}
        own_s = tree_cpu_s(before.table, table, own | service.trees, service.alone)
        noise = noise_between(before.counters, after, own_s, _our_cpus())
        if before is not self._before:  # what the kernel counts to the last event needs no long time
            exact = noise_between(self._before.counters, after, own_s, _our_cpus())
            noise = noise.model_copy(update={name: getattr(exact, name) for name in EXACT_READINGS})
        if unknown := self._blind or service.reason:
            return noise.model_copy(update={"foreign_cpu": None, "unwatched": unknown})
        without = table.below(own | service.trees) | service.alone
        busiest = busiest_processes(before.table, table, without, os.cpu_count() or 1)
        unwatched = ELSEWHERE if service.is_elsewhere else ""
        return noise.model_copy(update={"busiest": busiest, "unwatched": unwatched})

    def _measure_use(self, before: MachineReading, after: HostCounters, table: ProcessTable) -> MachineUse:
        """Return how much of the CPU was in use, and by the service where it was found."""
        service, window_s = self._service, (after.at_ns - before.counters.at_ns) / 1e9
        cores = None
        if (service.trees or service.alone) and window_s > 0:
            cores = tree_cpu_s(before.table, table, service.trees, service.alone) / window_s
        return MachineUse(service_cores=cores, machine_cpu=busy_share(before.counters, after))

    def _add(self, found: FoundService) -> None:
        self._service.trees |= found.trees
        self._service.alone |= found.alone


def find_service(endpoint: Endpoint, table: ProcessTable) -> FoundService:
    """Find who serves an endpoint on this machine."""
    here = _own_addresses()
    if not is_local(endpoint) and not _addresses(endpoint.host) & here:
        return FoundService(is_elsewhere=True)
    try:
        connections = psutil.net_connections("unix" if endpoint.path else "tcp")
    except psutil.AccessDenied:
        return FoundService(reason=_HIDDEN)
    listening = [one for one in connections if _serves(one, endpoint)]
    if not listening:
        return FoundService(reason=_NOBODY)
    pids = {one.pid for one in listening if one.pid is not None}
    if not pids:
        return FoundService(reason=_HIDDEN)
    forwarders = [name for pid in pids if (name := _name(table, pid)) in _FORWARDERS]
    if forwarders:
        return FoundService(reason=_FORWARDED.format(name=forwarders[0]))
    inside = connections if not endpoint.path else psutil.net_connections("tcp")
    return _with_helpers(pids, inside, table, here)


def _with_helpers(pids: set[int], connections: Sequence[Any], table: ProcessTable, here: set[str]) -> FoundService:
    """Add those on this machine whom the service is connected to, and whom these are: they work for it."""
    listeners: dict[int, set[int]] = {}
    asking: list[tuple[int, int]] = []  # who is connected to which port of this machine
    for one in connections:
        if one.pid is None:
            continue
        if one.status == psutil.CONN_LISTEN:
            listeners.setdefault(one.laddr.port, set()).add(one.pid)
        elif one.raddr and _plain(one.raddr.ip) in here:
            asking.append((one.pid, one.raddr.port))
    own, above = table.below({os.getpid()}), table.above(os.getpid())
    found = FoundService()
    waiting = set(pids)
    while waiting:
        # One that we descend from holds us and our strangers alike: only its own CPU time is the service's.
        found.alone |= waiting & above
        found.trees |= waiting - above - own
        family = table.below(found.trees) | found.alone
        partners = {other for pid, port in asking if pid in family for other in listeners.get(port, ())}
        waiting = partners - family - own - found.trees
    return found


def _serves(one: Any, endpoint: Endpoint) -> bool:
    if endpoint.path:
        return bool(one.laddr == os.path.realpath(endpoint.path) or one.laddr == endpoint.path)
    if one.status != psutil.CONN_LISTEN or one.laddr.port != endpoint.port:
        return False
    address = _plain(one.laddr.ip)
    return address in _EVERYWHERE or address in _addresses(endpoint.host)


def _own_addresses() -> set[str]:
    return {_plain(one.address) for several in psutil.net_if_addrs().values() for one in several}


def _addresses(host: str) -> set[str]:
    with suppress(OSError, UnicodeError):
        return {_plain(str(found[4][0])) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    return set()


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:").partition("%")[0]


def _name(table: ProcessTable, pid: int) -> str:
    one = table.processes.get(pid)
    return "" if one is None else one.name


def _our_cpus() -> Collection[int] | None:
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
