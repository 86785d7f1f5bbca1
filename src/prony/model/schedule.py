"""A recipe that is submitted again and again, and the history of when it was."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from prony.model.agent import Name
from prony.model.base import Noun
from prony.model.cron import CronText, Missed, Timing, ZoneName
from prony.model.queue import Submission


class ScheduleState(StrEnum):
    """Whether a schedule starts experiments."""

    ACTIVE = "active"
    PAUSED = "paused"


class NewSchedule(Noun):
    """What is not given is taken from the recipe's own `schedule`; the name is the recipe's."""

    submission: Submission
    name: Name | None = None
    cron: CronText | None = None
    zone: ZoneName | None = None
    missed: Missed | None = None


class Schedule(Noun):
    """`next_at` is None while it is paused; `missed` counts the times for which nothing ran."""

    id: str
    name: str
    recipe: str
    timing: Timing
    state: ScheduleState
    next_at: datetime | None = None
    last_at: datetime | None = None
    fires: int = 0
    missed: int = 0
    created_at: datetime
    created_by: str = ""
    submission: Submission


class Fire(Noun):
    """One time of a schedule. `due`: on time; `late`: for times that were missed; `skipped`: nothing ran for them;
    `now`: somebody asked for it; `failed`: no experiment could be made, and `reason` says why.

    `missed` counts the earlier times that this one stands for.
    """

    schedule_id: str
    due_at: datetime
    fired_at: datetime
    cause: Literal["due", "late", "skipped", "now", "failed"]
    experiment_id: str | None = None
    missed: int = 0
    reason: str = ""
