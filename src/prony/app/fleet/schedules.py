"""Schedules of a fleet: made, listed, paused, fired when they are due or when somebody asks."""

from __future__ import annotations

import asyncio
from datetime import datetime

from prony.app.fleet import schedule_rows
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.alarm_events import check_missed_fires
from prony.app.fleet.context import FleetContext
from prony.app.fleet.save_submission import list_offers, write_plan
from prony.app.fleet.state import FleetState
from prony.app.fleet.submission import Plan, order_for
from prony.errors import PronyError
from prony.model.access import Principal
from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule
from prony.store import schedules as rows
from prony.store.writer import Transaction

# So many schedules are looked after in one round; the next round goes on.
_TOGETHER = 20


class Schedules:
    """Add, list, pause and remove schedules, and fire those that are due."""

    def __init__(self, context: FleetContext, state: FleetState, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine

    async def add(self, new: NewSchedule, *, who: Principal) -> Schedule:
        read = await self._context.read_recipe(order_for(new.submission))
        home, now = self._context.store.home, self._context.clock.now()
        found = await self._context.readers.in_thread(
            schedule_rows.build_schedule, new, read, home, now=now, who=who.name
        )
        await self._context.through(self._context.write(lambda desk: rows.add(desk.connection, found)))
        self._context.hook("scheduled", schedule=found.id, name=found.name, who=who.name)
        return found

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[Schedule]:
        return await self._context.read(lambda connection: rows.page(connection, limit, cursor))

    async def get(self, schedule_id: str) -> Schedule:
        return await self._context.read(lambda connection: rows.find(connection, schedule_id))

    async def fires(self, schedule_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Fire]:
        return await self._context.read(
            lambda connection: rows.fires(connection, rows.find(connection, schedule_id).id, limit, cursor)
        )

    async def pause(self, schedule_id: str, *, who: Principal) -> Schedule:
        self._context.hook("paused", schedule=schedule_id, who=who.name)
        return await self._context.write(lambda desk: schedule_rows.pause(desk, schedule_id))

    async def resume(self, schedule_id: str, *, who: Principal) -> Schedule:
        self._context.hook("resumed", schedule=schedule_id, who=who.name)
        return await self._context.write(
            lambda desk: schedule_rows.resume(desk, schedule_id, now=self._context.clock.now())
        )

    async def remove(self, schedule_id: str, *, who: Principal) -> None:
        await self._context.write(lambda desk: schedule_rows.remove(desk, schedule_id))
        self._context.hook("unscheduled", schedule=schedule_id, who=who.name)

    async def run_now(self, schedule_id: str, *, who: Principal) -> Fire:
        """Submit its recipe now, beside the plan."""
        found = await self.get(schedule_id)
        now = self._context.clock.now()
        plan = await self._plan_of(found, now)
        keep = write_plan(
            self._context, self._state, plan, lambda desk: schedule_rows.run_now(desk, found, plan, now=now)
        )
        fire = await self._context.through(keep)
        self._context.hook("fired", schedule=found.id, experiment=fire.experiment_id, who=who.name)
        return fire

    async def fire_due(self) -> None:
        """Fire what is due."""
        now = self._context.clock.now()
        for found in await self._context.read(lambda connection: rows.due(connection, now, _TOGETHER)):
            begin = found.next_at
            if begin is not None:
                for turn in await asyncio.to_thread(schedule_rows.turns, found.timing, begin, now):
                    await self._take_turn(found, turn)

    async def _take_turn(self, found: Schedule, turn: schedule_rows.Turn) -> None:
        now = self._context.clock.now()
        plan = None
        if turn.cause != "skipped":
            plan = await self._plan_of(found, now)

        def act(desk: Transaction) -> Fire | None:
            fire = schedule_rows.take(desk, found, turn, plan, now=now)
            happening = check_missed_fires(found, fire) if fire is not None else None
            if happening is not None:
                self._alarm_engine.report(desk, happening)
            return fire

        fire = await write_plan(self._context, self._state, plan, act)
        if fire is not None:
            told = fire.model_dump(include={"cause", "missed", "reason"})
            self._context.hook("fired", schedule=found.id, experiment=fire.experiment_id, **told)

    async def _plan_of(self, found: Schedule, now: datetime) -> Plan | PronyError:
        """Return the experiment that a schedule makes now, or why there is none."""
        try:
            read = await self._context.read_recipe(order_for(found.submission))
        except PronyError as exc:
            return exc
        return await self._context.readers.in_thread(
            schedule_rows.plan_fire, found, read, list_offers(self._state), now=now
        )
