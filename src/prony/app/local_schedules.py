"""Schedules of the home's own database, without a server: a server on this home fires them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from prony.app.fleet import schedules
from prony.app.fleet.scripts import store_scripts
from prony.app.fleet.submission import order_for, read_recipe
from prony.app.local_store import database, whoever
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule
from prony.ports.clock import SystemClock
from prony.store import schedules as rows
from prony.store.database import Engine, reading, writing
from prony.store.home import home
from prony.store.writer import Transaction

T = TypeVar("T")


@contextmanager
def open_schedules() -> Iterator[LocalSchedules]:
    with database() as engine:
        yield LocalSchedules(engine)


class LocalSchedules:
    """What the client has for a server, under the same names."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clock = SystemClock()

    def add_schedule(self, new: NewSchedule) -> Schedule:
        read = read_recipe(order_for(new.submission))
        found = schedules.build_schedule(new, read, home(), now=self._clock.now(), who=whoever())
        self._write(lambda desk: rows.add(desk.connection, found))
        return found

    def keep_scripts(self, sha256: str, pieces: Iterable[bytes]) -> None:
        """Keep the folder of a script as it is now: that is what runs when it is due."""
        store_scripts(home(), sha256, pieces)

    def schedules(self, *, limit: int = 100, cursor: str | None = None) -> Page[Schedule]:
        with reading(self._engine) as connection:
            return rows.page(connection, limit, cursor)

    def schedule(self, schedule_id: str) -> Schedule:
        with reading(self._engine) as connection:
            return rows.find(connection, schedule_id)

    def fires(self, schedule_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Fire]:
        with reading(self._engine) as connection:
            return rows.fires(connection, rows.find(connection, schedule_id).id, limit, cursor)

    def pause_schedule(self, schedule_id: str) -> Schedule:
        return self._write(lambda desk: schedules.pause_schedule(desk, schedule_id))

    def resume_schedule(self, schedule_id: str) -> Schedule:
        return self._write(lambda desk: schedules.resume_schedule(desk, schedule_id, now=self._clock.now()))

    def run_schedule(self, schedule_id: str) -> Fire:
        """Queue its recipe now; it runs as soon as a server is up in this home."""
        found, now = self.schedule(schedule_id), self._clock.now()
        read = read_recipe(order_for(found.submission))
        plan = schedules.plan_fire(found, read, dict, now=now)
        return self._write(lambda desk: schedules.fire_now(desk, found, plan, now=now))

    def remove_schedule(self, schedule_id: str) -> None:
        self._write(lambda desk: schedules.remove_schedule(desk, schedule_id))

    def _write(self, operation: Callable[[Transaction], T]) -> T:
        with writing(self._engine) as connection:
            return operation(Transaction(connection))
