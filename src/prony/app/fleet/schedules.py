"""Schedules of a fleet: made, listed, paused, fired when they are due or when somebody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from prony.app.fleet import schedule_rows
from prony.app.fleet.alarm_events import check_missed_fires
from prony.app.fleet.experiments import Experiments
from prony.app.fleet.submission import Plan, order_for
from prony.errors import PronyError
from prony.model.access import Principal
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule
from prony.store import schedules as rows
from prony.store.writer import Transaction

# So many schedules are looked after in one round; the next round goes on.
T = TypeVar("T")
_TOGETHER = 20


class Schedules(Experiments):
    """Made, listed, paused, fired."""

    async def add_schedule(self, new: NewSchedule, *, who: Principal) -> Schedule:
        read = await self.read_recipe(order_for(new.submission))
        home, now = self.store.home, self.clock.now()
        found = await self.readers.in_thread(schedule_rows.build_schedule, new, read, home, now=now, who=who.name)
        await self.through(self.write(lambda desk: rows.add(desk.connection, found)))
        self.hook("scheduled", schedule=found.id, name=found.name, who=who.name)
        return found

    async def schedules(self, *, limit: int = 50, cursor: str | None = None) -> Page[Schedule]:
        return await self.read(lambda connection: rows.page(connection, limit, cursor))

    async def schedule(self, schedule_id: str) -> Schedule:
        return await self.read(lambda connection: rows.find(connection, schedule_id))

    async def fires(self, schedule_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Fire]:
        return await self.read(
            lambda connection: rows.fires(connection, rows.find(connection, schedule_id).id, limit, cursor)
        )

    async def pause_schedule(self, schedule_id: str, *, who: Principal) -> Schedule:
        self.hook("paused", schedule=schedule_id, who=who.name)
        return await self.write(lambda desk: schedule_rows.pause(desk, schedule_id))

    async def resume_schedule(self, schedule_id: str, *, who: Principal) -> Schedule:
        self.hook("resumed", schedule=schedule_id, who=who.name)
        return await self.write(lambda desk: schedule_rows.resume(desk, schedule_id, now=self.clock.now()))

    async def remove_schedule(self, schedule_id: str, *, who: Principal) -> None:
        await self.write(lambda desk: schedule_rows.remove(desk, schedule_id))
        self.hook("unscheduled", schedule=schedule_id, who=who.name)

    async def run_schedule(self, schedule_id: str, *, who: Principal) -> Fire:
        """Submit its recipe now, beside the plan."""
        found = await self.schedule(schedule_id)
        now = self.clock.now()
        plan = await self._plan_of(found, now)
        keep = self._keep_plan(plan, lambda desk: schedule_rows.run_now(desk, found, plan, now=now))
        fire = await self.through(keep)
        self.hook("fired", schedule=found.id, experiment=fire.experiment_id, who=who.name)
        return fire

    async def look_after_schedules(self) -> None:
        """Fire what is due."""
        now = self.clock.now()
        for found in await self.read(lambda connection: rows.due(connection, now, _TOGETHER)):
            begin = found.next_at
            if begin is not None:
                for turn in await asyncio.to_thread(schedule_rows.turns, found.timing, begin, now):
                    await self._take_turn(found, turn)

    async def _take_turn(self, found: Schedule, turn: schedule_rows.Turn) -> None:
        now = self.clock.now()
        plan = None
        if turn.cause != "skipped":
            plan = await self._plan_of(found, now)

        def act(desk: Transaction) -> Fire | None:
            fire = schedule_rows.take(desk, found, turn, plan, now=now)
            happening = check_missed_fires(found, fire) if fire is not None else None
            if happening is not None:
                self.siren.report(desk, happening)
            return fire

        fire = await self._keep_plan(plan, act)
        if fire is not None:
            told = fire.model_dump(include={"cause", "missed", "reason"})
            self.hook("fired", schedule=found.id, experiment=fire.experiment_id, **told)

    async def _plan_of(self, found: Schedule, now: datetime) -> Plan | PronyError:
        """Return the experiment that a schedule makes now, or why there is none."""
        try:
            read = await self.read_recipe(order_for(found.submission))
        except PronyError as exc:
            return exc
        return await self.readers.in_thread(schedule_rows.plan_fire, found, read, self.offers(), now=now)

    async def _keep_plan(self, plan: Plan | PronyError | None, operation: Callable[[Transaction], T]) -> T:
        """Write with the plan's lots in mind, so that whoever waits is offered them at once."""
        if not isinstance(plan, Plan):
            return await self.write(operation)
        with self.about_to_come(plan.lots.values()):
            return await self.write(operation)
