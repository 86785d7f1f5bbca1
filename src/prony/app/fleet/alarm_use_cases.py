"""Alarms of a fleet: made, listed, tried out; what they gathered told, once, until somebody has taken it."""

from __future__ import annotations

import asyncio
from functools import partial

from prony.app import notify
from prony.app.fleet import alarm_outbox
from prony.app.fleet.context import FleetContext
from prony.model.access import Principal
from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page
from prony.store import alarms as rows
from prony.store import notices
from prony.store.writer import Transaction


class Alarming(FleetContext):
    """Made, listed, tried out, told."""

    async def add_alarm(self, new: NewAlarm, *, who: Principal) -> MadeAlarm:
        made, source = await asyncio.to_thread(alarm_outbox.build_alarm, new, now=self.clock.now(), who=who.name)

        def keep(desk: Transaction) -> None:
            rows.add(desk.connection, made.alarm, source)
            desk.tell("alarms", "")

        await self.write(keep)
        await self.load_alarms()
        self.hook("alarm_added", alarm=made.alarm.name, who=who.name)
        return made

    async def alarms(self, *, limit: int = 50, cursor: str | None = None) -> Page[Alarm]:
        return await self.read(lambda connection: rows.page(connection, limit, cursor))

    async def alarm(self, alarm_id: str) -> Alarm:
        return await self.read(lambda connection: rows.find(connection, alarm_id))

    async def incidents(self, alarm_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Incident]:
        return await self.read(
            lambda connection: rows.incidents(connection, rows.find(connection, alarm_id), limit, cursor)
        )

    async def deliveries(self, alarm_id: str, *, limit: int = 50, cursor: str | None = None) -> Page[Delivery]:
        return await self.read(
            lambda connection: notices.deliveries(connection, rows.find(connection, alarm_id), limit, cursor)
        )

    async def remove_alarm(self, alarm_id: str, *, who: Principal) -> None:
        def act(desk: Transaction) -> None:
            alarm_outbox.remove(desk, alarm_id)
            desk.tell("alarms", "")

        await self.write(act)
        await self.load_alarms()
        self.hook("alarm_removed", alarm=alarm_id, who=who.name)

    async def test_alarm(self, alarm_id: str, *, who: Principal) -> TestAnswer:
        """Really send a message to each of its addresses, once, and say what came of it."""
        begin = partial(alarm_outbox.try_out, text=alarm_id, now=self.clock.now(), link=self.settings.url)
        alarm, notice_id, letters = await self.write(begin)
        self.hook("alarm_tested", alarm=alarm.name, who=who.name)
        await asyncio.gather(*(self._deliver(one, is_last=True) for one in letters))
        found = await self.read(lambda connection: notices.of_notice(connection, alarm, notice_id))
        return TestAnswer(deliveries=found)

    # By itself

    async def begin_alarms(self) -> None:
        """Have the alarms in mind; where this server is the only one, what an earlier one was sending is sent again."""
        await self.load_alarms()
        if self.siren.alarms and not self.is_shared:
            await self.write(lambda desk: notices.release(desk.connection))

    async def look_after_alarms(self) -> None:
        """Tell what is ready to be told, and again what lasts."""
        if not self.siren.alarms:
            return
        now = self.clock.now()

        def act(desk: Transaction) -> list[alarm_outbox.OutgoingMessage]:
            self.siren.remind(desk, now)
            alarm_outbox.close_ready(desk, now)
            return alarm_outbox.claim(desk, now=now, link=self.settings.url)

        if await self.read(lambda connection: self.siren.has_work(connection, now)):
            for posted in await self.write(act):
                self.spawn(self._deliver(posted))

    async def _deliver(self, posted: alarm_outbox.OutgoingMessage, *, is_last: bool = False) -> None:
        outcome = await asyncio.to_thread(notify.send, posted.letter)
        now = self.clock.now()
        await self.write(lambda desk: alarm_outbox.settle(desk, posted, outcome, now=now, is_last=is_last))
        told = {
            "alarm": posted.letter.message.alarm,
            "kind": posted.letter.message.kind,
            "attempt": posted.claim.number,
        }
        self.hook("delivered" if outcome.ok else "not_delivered", **told, said=outcome.said)
