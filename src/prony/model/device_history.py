"""What a server knows of an agent's device over time: recent readings, its results' canaries, calibrations, checks."""

from __future__ import annotations

from datetime import datetime

from prony.model.base import Noun
from prony.model.calibration import Calibration
from prony.model.device import Condition
from prony.model.estimate import Grade


class ReadingLine(Noun):
    """One quantity of a device; its values belong to the instants of `RecentReadings`, None where there is none."""

    name: str
    title: str
    unit: str
    # What it is of: `host`, or a GPU as its counters call it.
    part: str
    values: tuple[float | None, ...]


class RecentReadings(Noun):
    """What the probes of a device read lately, the oldest first; empty where the server heard nothing yet."""

    agent_id: str
    at: tuple[datetime, ...] = ()
    lines: tuple[ReadingLine, ...] = ()


class DeviceResult(Noun):
    """One result of an agent: how fast a fixed piece of work was beside it (ms), and how much its runs vary."""

    job_id: str
    experiment_id: str
    title: str
    ended_at: datetime | None
    grade: Grade
    canary: dict[str, float] = {}
    noise: float | None = None


class DeviceHistory(Noun):
    """The newest results of an agent, the oldest of them first, and the calibrations of its machine: the newest, and
    those that the results were measured with.

    `conditions` are what would disturb a measurement, as the newest result or the agent's begin found them at
    `checked_at`.
    """

    agent_id: str
    results: tuple[DeviceResult, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    conditions: tuple[Condition, ...] = ()
    checked_at: datetime | None = None
