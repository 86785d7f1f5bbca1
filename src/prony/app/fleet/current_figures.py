"""What agents last said of their devices and of the jobs that run there, for whoever watches the fleet's figures.

It is kept in memory alone and replaced by what comes next; results are not made of it.
"""

from __future__ import annotations

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


class CurrentFigures:
    """Remembers the last readings of each agent and the last progress of each lease."""

    def __init__(self) -> None:
        self.readings: dict[str, DeviceReadings] = {}
        self.progress: dict[str, JobProgress] = {}

    def note_readings(self, agent_id: str, values: Mapping[str, float], now_s: float) -> None:
        if values:
            self.readings[agent_id] = DeviceReadings(values, now_s)

    def note_event(self, lease_id: str, event: Event) -> None:
        before = self.progress.get(lease_id, JobProgress())
        if event.kind == "load":
            before = replace(before, live=event.live)
        if event.total:
            before = replace(before, done=event.done, total=event.total)
        self.progress[lease_id] = before

    def forget_agent(self, agent_id: str) -> None:
        self.readings.pop(agent_id, None)

    def forget_lease(self, lease_id: str) -> None:
        self.progress.pop(lease_id, None)

    def keep_leases(self, lease_ids: Container[str]) -> None:
        """Forget every lease but these."""
        self.progress = {one: progress for one, progress in self.progress.items() if one in lease_ids}
