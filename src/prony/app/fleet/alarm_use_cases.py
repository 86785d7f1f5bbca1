"""Alarms of a fleet: made, listed, tried out; what they gathered told, once, until somebody has taken it."""

from __future__ import annotations

import asyncio
from functools import partial

from prony.app import notify
from prony.app.fleet import alarm_outbox
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.context import FleetContext
from prony.model.access import Principal
from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page
from prony.store import alarms as rows
from prony.store import notices
from prony.store.writer import Transaction


class Alarms:
    """Add, list, test and remove alarms, and send what they have to tell."""

    def __init__(self, context: FleetContext, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._alarm_engine = alarm_engine

    async def add(self, new: NewAlarm, *, who: Principal) -> MadeAlarm:
        made, source = await asyncio.to_thread(
            alarm_outbox.build_alarm, new, now=self._context.clock.now(), who=who.name
        )

        def keep(desk: Transaction) -> None:
            rows.add(desk.connection, made.alarm, source)
            desk.tell("alarms", "")

        await self._context.write(keep)
        await self.load()
        self._context.hook("alarm_added", alarm=made.alarm.name, who=who.name)
        return made

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[Alarm]:
        return await self._context.read(lambda connection: rows.page(connection, limit, cursor))

    async def get(self, alarm_id: str) -> Alarm:
        return await self._context.read(lambda connection: rows.find(connection, alarm_id))

    async def incidents(self, alarm_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Incident]:
        return await self._context.read(
            lambda connection: rows.incidents(connection, rows.find(connection, alarm_id), limit, cursor)
        )

    async def deliveries(self, alarm_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Delivery]:
        return await self._context.read(
            lambda connection: notices.deliveries(connection, rows.find(connection, alarm_id), limit, cursor)
        )

    async def remove(self, alarm_id: str, *, who: Principal) -> None:
        def act(desk: Transaction) -> None:
            alarm_outbox.remove(desk, alarm_id)
            desk.tell("alarms", "")

        await self._context.write(act)
        await self.load()
        self._context.hook("alarm_removed", alarm=alarm_id, who=who.name)

    async def send_test(self, alarm_id: str, *, who: Principal) -> TestAnswer:
        """Really send a message to each of its addresses, once, and say what came of it."""
        begin = partial(
            alarm_outbox.try_out, text=alarm_id, now=self._context.clock.now(), link=self._context.settings.url
        )
        alarm, notice_id, letters = await self._context.write(begin)
        self._context.hook("alarm_tested", alarm=alarm.name, who=who.name)
        await asyncio.gather(*(self._deliver(one, is_last=True) for one in letters))
        found = await self._context.read(lambda connection: notices.of_notice(connection, alarm, notice_id))
        return TestAnswer(deliveries=found)

    # By itself

    async def load(self, _: str = "") -> None:
        """Have in mind which alarms there are."""
        self._alarm_engine.alarms = await self._context.read(rows.every)

    async def begin(self) -> None:
        """Have the alarms in mind; where this server is the only one, what an earlier one was sending is sent again."""
        await self.load()
        if self._alarm_engine.alarms and not self._context.is_shared:
            await self._context.write(lambda desk: notices.release(desk.connection))

    async def send_ready(self) -> None:
        """Tell what is ready to be told, and again what lasts."""
        if not self._alarm_engine.alarms:
            return
        now = self._context.clock.now()

        def act(desk: Transaction) -> list[alarm_outbox.OutgoingMessage]:
            self._alarm_engine.remind(desk, now)
            alarm_outbox.close_ready(desk, now)
            return alarm_outbox.claim(desk, now=now, link=self._context.settings.url)

        if await self._context.read(lambda connection: self._alarm_engine.has_work(connection, now)):
            for posted in await self._context.write(act):
                self._context.spawn(self._deliver(posted))

    async def _deliver(self, posted: alarm_outbox.OutgoingMessage, *, is_last: bool = False) -> None:
        outcome = await asyncio.to_thread(notify.send, posted.letter)
        now = self._context.clock.now()
        await self._context.write(lambda desk: alarm_outbox.settle(desk, posted, outcome, now=now, is_last=is_last))
        told = {
            "alarm": posted.letter.message.alarm,
            "kind": posted.letter.message.kind,
            "attempt": posted.claim.number,
        }
        self._context.hook("delivered" if outcome.ok else "not_delivered", **told, said=outcome.said)
