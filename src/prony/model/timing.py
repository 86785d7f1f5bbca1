"""When something is due: what a person writes under `schedule`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.cron import CronText, ZoneName, parse, zone_of

Missed = Literal["skip", "once", "all"]


class Timing(Noun):
    """Due instants by cron, on the wall of a zone, and what becomes of those that nobody was there for."""

    cron: CronText = Field(description="five fields (minute, hour, day, month, weekday) or @daily and its like")
    zone: ZoneName = Field(default="UTC", description="the time zone whose wall clock decides, as in Europe/Paris")
    missed: Missed = Field(
        default="once", description="what runs for times at which no server was up: skip (nothing), once or all"
    )

    def after(self, instant: datetime) -> datetime:
        """Return the first due instant after this one."""
        return next(self.dues(instant))

    def dues(self, after: datetime) -> Iterator[datetime]:
        return parse(self.cron).dues(after, zone_of(self.zone))
