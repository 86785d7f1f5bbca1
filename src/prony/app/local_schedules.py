"""Schedules of the home's own database, and the scripts that they run: a server on this home fires them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from prony.app.fleet import schedules
from prony.app.fleet.read_recipe import read_recipe
from prony.app.fleet.scripts import store_scripts
from prony.app.fleet.submission import order_for
from prony.app.local_store import whoever
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule
from prony.ports.clock import SystemClock
from prony.store import schedules as rows
from prony.store.database import Engine, reading, writing
from prony.store.home import Home
from prony.store.writer import Transaction

T = TypeVar("T")


class LocalScripts:
    """Folders of scripts that recipes name. See `prony.ports.use_cases.ScriptUseCases`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def keep(self, sha256: str, content: Iterable[bytes]) -> None:
        """Keep the tar of a folder as it is now: that is what runs when it is due."""
        store_scripts(self._home, sha256, content)


class LocalSchedules:
    """Schedules; each is named by its id or its name. See `prony.ports.use_cases.ScheduleUseCases`."""

    def __init__(self, engine: Engine, home: Home) -> None:
        self._engine = engine
        self._home = home
        self._clock = SystemClock()

    def add(self, new: NewSchedule) -> Schedule:
        """Make one; its recipe is checked first."""
        read = read_recipe(order_for(new.submission))
        found = schedules.build_schedule(new, read, self._home, now=self._clock.now(), who=whoever())
        self._write(lambda transaction: rows.add(transaction.connection, found))
        return found

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Schedule]:
        """Return schedules, a page at a time."""
        with reading(self._engine) as connection:
            return rows.page(connection, limit, cursor)

    def get(self, schedule_id: str) -> Schedule:
        """Return one schedule."""
        with reading(self._engine) as connection:
            return rows.find(connection, schedule_id)

    def fires(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Fire]:
        """Return when it fired, the newest first, a page at a time."""
        with reading(self._engine) as connection:
            return rows.fires(connection, rows.find(connection, schedule_id).id, limit, cursor)

    def pause(self, schedule_id: str) -> Schedule:
        """Let nothing fire until it is resumed."""
        return self._write(lambda transaction: schedules.pause_schedule(transaction, schedule_id))

    def resume(self, schedule_id: str) -> Schedule:
        """Go on with its next time."""
        return self._write(
            lambda transaction: schedules.resume_schedule(transaction, schedule_id, now=self._clock.now())
        )

    def run(self, schedule_id: str) -> Fire:
        """Queue its recipe now; it runs as soon as a server is up in this home."""
        found, now = self.get(schedule_id), self._clock.now()
        read = read_recipe(order_for(found.submission))
        plan = schedules.plan_fire(found, read, dict, now=now)
        return self._write(lambda transaction: schedules.fire_now(transaction, found, plan, now=now))

    def remove(self, schedule_id: str) -> None:
        """Forget it; its experiments stay."""
        self._write(lambda transaction: schedules.remove_schedule(transaction, schedule_id))

    def _write(self, operation: Callable[[Transaction], T]) -> T:
        with writing(self._engine) as connection:
            return operation(Transaction(connection))
