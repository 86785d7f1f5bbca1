"""Operations on schedules: make one, list, look at when it fired, pause, resume, run now, remove."""

from __future__ import annotations

from prony.client.request_shapes import Asking
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule


class Schedules(Asking):
    """A schedule is named by its id or its name."""

    def add_schedule(self, new: NewSchedule) -> Schedule:
        return self._send(Schedule, "POST", "schedules", body=new)

    def schedules(self, *, limit: int = 100, cursor: str | None = None) -> Page[Schedule]:
        return self._get(Page[Schedule], "schedules", limit=limit, cursor=cursor)

    def schedule(self, schedule_id: str) -> Schedule:
        return self._get(Schedule, "schedules", schedule_id)

    def fires(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Fire]:
        """Return the newest first, a page at a time."""
        return self._get(Page[Fire], "schedules", schedule_id, "fires", limit=limit, cursor=cursor)

    def pause_schedule(self, schedule_id: str) -> Schedule:
        return self._send(Schedule, "POST", "schedules", schedule_id, "pause")

    def resume_schedule(self, schedule_id: str) -> Schedule:
        return self._send(Schedule, "POST", "schedules", schedule_id, "resume")

    def run_schedule(self, schedule_id: str) -> Fire:
        """Submit its recipe now, beside its times."""
        return self._send(Fire, "POST", "schedules", schedule_id, "run")

    def remove_schedule(self, schedule_id: str) -> None:
        self._do("DELETE", "schedules", schedule_id)
