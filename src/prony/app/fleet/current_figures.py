"""What agents last said of their devices and of the jobs that run there, for whoever watches the fleet's figures.

It is kept in memory alone and replaced by what comes next; results are not made of it.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from prony.model.event import Event, Live


@dataclass(frozen=True)
class DeviceReadings:
    """What the probes of an agent's device read; `heard_s` is when it came, on the fleet's clock for lives."""

    values: Mapping[str, float]
    heard_s: float


@dataclass(frozen=True)
class JobProgress:
    """How far a job is: its repetitions, and its load as it goes just now, where it has one."""

    done: int = 0
    total: int = 0
    live: Live | None = None


# A device is read every 5 s, and an agent that waits tells it every 30 s: from ten minutes to an hour.
_MOST_RECENT = 120
# Of so many agents, those that were heard last; with forty counters each, about 40 MB.
_MOST_AGENTS = 1000


class ReadingHistory:
    """The last readings of one agent. Names are kept once, because they hardly ever change."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._kept: deque[tuple[float, tuple[str, ...], array[float]]] = deque(maxlen=_MOST_RECENT)

    def add(self, values: Mapping[str, float], now_s: float) -> None:
        """Keep a reading; one that was told before is no news."""
        names, numbers = tuple(values), array("d", values.values())
        self._names = self._names if names == self._names else names
        if not self._kept or self._kept[-1][1:] != (self._names, numbers):
            self._kept.append((now_s, self._names, numbers))

    def list_readings(self) -> list[DeviceReadings]:
        """Return them, the oldest first."""
        return [DeviceReadings(dict(zip(names, numbers, strict=True)), at) for at, names, numbers in self._kept]


class CurrentFigures:
    """Remembers the last readings of each agent and the last progress of each lease."""

    def __init__(self) -> None:
        self.readings: dict[str, DeviceReadings] = {}
        self.recent: OrderedDict[str, ReadingHistory] = OrderedDict()
        self.progress: dict[str, JobProgress] = {}

    def note_readings(self, agent_id: str, values: Mapping[str, float], now_s: float) -> None:
        if not values:
            return
        self.readings[agent_id] = DeviceReadings(values, now_s)
        recent = self.recent.pop(agent_id, None) or ReadingHistory()
        recent.add(values, now_s)
        self.recent[agent_id] = recent
        if len(self.recent) > _MOST_AGENTS:
            self.recent.popitem(last=False)

    def note_event(self, lease_id: str, event: Event) -> None:
        before = self.progress.get(lease_id, JobProgress())
        if event.kind == "load":
            before = replace(before, live=event.live)
        if event.total:
            before = replace(before, done=event.done, total=event.total)
        self.progress[lease_id] = before

    def forget_agent(self, agent_id: str) -> None:
        self.readings.pop(agent_id, None)
        self.recent.pop(agent_id, None)

    def forget_lease(self, lease_id: str) -> None:
        self.progress.pop(lease_id, None)

    def keep_leases(self, lease_ids: Container[str]) -> None:
        """Forget every lease but these."""
        self.progress = {one: progress for one, progress in self.progress.items() if one in lease_ids}
