"""Schedules of a server."""

from __future__ import annotations

from prony.client.connection import ApiRequests
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule


class RemoteSchedules:
    """Schedules; each is named by its id or its name. See `prony.ports.use_cases.ScheduleUseCases`."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def add(self, new: NewSchedule) -> Schedule:
        """Make one; its recipe is checked first."""
        return self._requests.send(Schedule, "POST", "schedules", body=new)

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Schedule]:
        """Return schedules, a page at a time."""
        return self._requests.get(Page[Schedule], "schedules", limit=limit, cursor=cursor)

    def get(self, schedule_id: str) -> Schedule:
        """Return one schedule."""
        return self._requests.get(Schedule, "schedules", schedule_id)

    def fires(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Fire]:
        """Return when it fired, the newest first, a page at a time."""
        return self._requests.get(Page[Fire], "schedules", schedule_id, "fires", limit=limit, cursor=cursor)

    def pause(self, schedule_id: str) -> Schedule:
        """Let nothing fire until it is resumed."""
        return self._requests.send(Schedule, "POST", "schedules", schedule_id, "pause")

    def resume(self, schedule_id: str) -> Schedule:
        """Go on with its next time."""
        return self._requests.send(Schedule, "POST", "schedules", schedule_id, "resume")

    def run(self, schedule_id: str) -> Fire:
        """Submit its recipe now, beside its times."""
        return self._requests.send(Fire, "POST", "schedules", schedule_id, "run")

    def remove(self, schedule_id: str) -> None:
        """Forget it; its experiments stay."""
        self._requests.do("DELETE", "schedules", schedule_id)
