"""Alarms of a fleet: made, listed, tested; their messages written and sent until somebody has taken them."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from prony.app import notify
from prony.app.check_jobs import new_id
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.context import FleetContext
from prony.app.fleet.submission import SubmissionPlan
from prony.app.notify import DeliveryOutcome, Notification, check_address, mask_address
from prony.model.access import Principal
from prony.model.alarm import (
    Alarm,
    Delivery,
    Happening,
    Incident,
    MadeAlarm,
    Message,
    NewAlarm,
    RecipeAlarm,
    TestAnswer,
    Try,
)
from prony.model.queue import Page
from prony.store import alarms as rows
from prony.store import notices
from prony.store.writer import Transaction

# How long a server may take to send what it has claimed, before another one may.
CLAIM_S = 60.0
_MESSAGES_TOGETHER = 20
_MOST_TRIES = 12
_FIRST_PAUSE_S = 5.0
_LONGEST_PAUSE_S = 3600.0
_HEADS = {"firing": "", "again": "still: ", "resolved": "over: ", "test": "test: "}


@dataclass(frozen=True)
class OutgoingMessage:
    """A letter to be sent, and the claim under which that is done."""

    claim: notices.NoticeClaim
    notification: Notification


def build_alarm(new: NewAlarm, *, now: datetime, who: str) -> tuple[MadeAlarm, rows.AlarmSource]:
    """Return the alarm that somebody asks for, and what is kept of it in secret."""
    for address in new.to:
        check_address(address)
    alarm = Alarm(
        id=new_id(time.time(), chance=4),
        created_at=now,
        created_by=who,
        to=tuple(mask_address(address) for address in new.to),
        **new.model_dump(exclude={"to"}),
    )
    secret = secrets.token_urlsafe(32)
    return MadeAlarm(alarm=alarm, secret=secret), rows.AlarmSource(alarm.id, new.to, secret)


def keep_recipe_alarms(transaction: Transaction, plan: SubmissionPlan, *, now: datetime) -> bool:
    """Keep the alarms that a submitted recipe brings, each in the place of an earlier one of its name."""
    recipe = plan.experiment.recipe
    for own in recipe.alarms:
        made, source = build_alarm(_of_recipe(own, recipe.name), now=now, who=plan.experiment.submitted_by)
        rows.replace(transaction.connection, made.alarm, source)
    return bool(recipe.alarms)


def _of_recipe(own: RecipeAlarm, recipe: str) -> NewAlarm:
    named = {"name": f"{recipe}.{own.name}"[:100], "recipe": recipe, "via": own.to}
    return NewAlarm.model_validate(own.model_dump(exclude={"name", "to"}) | named)


def remove_alarm(transaction: Transaction, text: str) -> str:
    """Forget an alarm with all that it found; return its id."""
    found = rows.find(transaction.connection, text)
    rows.remove(transaction.connection, found.id)
    return found.id


# Messages


def _close_ready_messages(transaction: Transaction, now: datetime) -> int:
    """Turn what was gathered for long enough into deliveries; return how many messages that were."""
    found = notices.ready(transaction.connection, now.timestamp(), _MESSAGES_TOGETHER)
    for notice in found:
        alarm = rows.find(transaction.connection, notice.alarm_id)
        _address(transaction, alarm, notice, now)
        rows.note_all_told(transaction.connection, notice.id, now)
        if notice.kind != "resolved":
            rows.note_told(transaction.connection, alarm.id, now)
    return len(found)


def _address(transaction: Transaction, alarm: Alarm, notice: notices.GatheredMessages, now: datetime) -> None:
    whom = [
        (source, [mask_address(address) for address in source.addresses])
        for source in rows.alarm_sources(transaction.connection, alarm)
    ]
    notices.address(transaction.connection, notice, whom, now)


def _claim_messages(transaction: Transaction, *, now: datetime, link: str) -> list[OutgoingMessage]:
    """Take letters that are to be sent now."""
    claims = notices.claim(transaction.connection, now=now, until_s=now.timestamp() + CLAIM_S, limit=_MESSAGES_TOGETHER)
    return _build_messages(transaction, claims, now=now, link=link)


def prepare_test(
    transaction: Transaction, text: str, *, now: datetime, link: str
) -> tuple[Alarm, str, list[OutgoingMessage]]:
    """Return letters that say that this is a test, one for each address."""
    alarm = rows.find(transaction.connection, text)
    happening = Happening(
        kind=alarm.condition.kind,
        subject="test",
        severity=alarm.severity,
        at=now,
        text="nothing happened: this is a test",
    )
    notice = notices.add_closed(transaction.connection, alarm.id, "test", happening)
    _address(transaction, alarm, notice, now)
    until_s = now.timestamp() + CLAIM_S
    claims = notices.claim(transaction.connection, now=now, until_s=until_s, limit=1000, notice_id=notice.id)
    return alarm, notice.id, _build_messages(transaction, claims, now=now, link=link)


def _build_messages(
    transaction: Transaction, claims: list[notices.NoticeClaim], *, now: datetime, link: str
) -> list[OutgoingMessage]:
    found = []
    for one in claims:
        source = rows.source(transaction.connection, one.source_id)
        if source is None or one.place >= len(source.addresses):  # that alarm was removed meanwhile
            notices.record(
                transaction.connection, one, Try(at=now, ok=False, said="the address was removed"), again_s=None
            )
            continue
        if one.number > _MOST_TRIES:  # nobody who tried lived to tell what came of it
            notices.record(
                transaction.connection,
                one,
                Try(at=now, ok=False, said="not tried again: it failed too often"),
                again_s=None,
            )
            continue
        alarm = rows.find(transaction.connection, one.notice.alarm_id)
        message = _write_message(alarm, one.notice, at=one.created_at, link=link)
        found.append(OutgoingMessage(one, Notification(one.id, message, source.addresses[one.place], source.secret)))
    return found


def record_delivery(
    transaction: Transaction,
    outgoing: OutgoingMessage,
    outcome: DeliveryOutcome,
    *,
    now: datetime,
    is_last: bool = False,
) -> bool:
    """Write down what came of a letter; False where somebody else has taken it over."""
    number = outgoing.claim.number
    is_over = outcome.ok or outcome.is_final or is_last or number >= _MOST_TRIES
    pause_s = min(_FIRST_PAUSE_S * 2 ** (number - 1), _LONGEST_PAUSE_S)
    again_s = None if is_over else now.timestamp() + pause_s
    return notices.record(
        transaction.connection, outgoing.claim, Try(at=now, ok=outcome.ok, said=outcome.said), again_s=again_s
    )


def _write_message(alarm: Alarm, notice: notices.GatheredMessages, *, at: datetime, link: str) -> Message:
    """Return one message for all that was gathered."""
    where = f"{link}/api/v1/alarms/{alarm.id}/incidents" if link else ""
    rest = notice.count - len(notice.items)
    lines = [
        f"[{alarm.severity}] {_HEADS[notice.kind]}{alarm.name}"
        + (f": {notice.count} times" if notice.count > 1 else ""),
        *(item.text or f"{item.kind} {item.subject}" for item in notice.items),
        *([f"and {rest} more"] if rest > 0 else []),
        *([where] if where else []),
    ]
    return Message.model_validate(
        {
            "kind": notice.kind,
            "alarm": alarm.name,
            "when": alarm.when,
            "severity": alarm.severity,
            "count": notice.count,
            "items": notice.items,
            "at": at,
            "text": "\n".join(lines),
            "link": where,
        }
    )


class Alarms:
    """Add, list, test and remove alarms, and send what they have to tell."""

    def __init__(self, context: FleetContext, alarm_engine: AlarmEngine) -> None:
        self._context = context
        self._alarm_engine = alarm_engine

    async def add(self, new: NewAlarm, *, who: Principal) -> MadeAlarm:
        made, source = await asyncio.to_thread(build_alarm, new, now=self._context.clock.now(), who=who.name)

        def keep(transaction: Transaction) -> None:
            rows.add(transaction.connection, made.alarm, source)
            transaction.publish("alarms", "")

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
        def act(transaction: Transaction) -> None:
            remove_alarm(transaction, alarm_id)
            transaction.publish("alarms", "")

        await self._context.write(act)
        await self.load()
        self._context.hook("alarm_removed", alarm=alarm_id, who=who.name)

    async def send_test(self, alarm_id: str, *, who: Principal) -> TestAnswer:
        """Really send a message to each of its addresses, once, and say what came of it."""
        begin = partial(prepare_test, text=alarm_id, now=self._context.clock.now(), link=self._context.settings.url)
        alarm, notice_id, notifications = await self._context.write(begin)
        self._context.hook("alarm_tested", alarm=alarm.name, who=who.name)
        await asyncio.gather(*(self._deliver(one, is_last=True) for one in notifications))
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
            await self._context.write(lambda transaction: notices.release(transaction.connection))

    async def send_ready(self) -> None:
        """Tell what is ready to be told, and again what lasts."""
        if not self._alarm_engine.alarms:
            return
        now = self._context.clock.now()

        def act(transaction: Transaction) -> list[OutgoingMessage]:
            self._alarm_engine.remind(transaction, now)
            _close_ready_messages(transaction, now)
            return _claim_messages(transaction, now=now, link=self._context.settings.url)

        if await self._context.read(lambda connection: self._alarm_engine.has_work(connection, now)):
            for outgoing in await self._context.write(act):
                self._context.spawn(self._deliver(outgoing))

    async def _deliver(self, outgoing: OutgoingMessage, *, is_last: bool = False) -> None:
        outcome = await asyncio.to_thread(notify.send, outgoing.notification)
        now = self._context.clock.now()
        await self._context.write(
            lambda transaction: record_delivery(transaction, outgoing, outcome, now=now, is_last=is_last)
        )
        told = {
            "alarm": outgoing.notification.message.alarm,
            "kind": outgoing.notification.message.kind,
            "attempt": outgoing.claim.number,
        }
        self._context.hook("delivered" if outcome.ok else "not_delivered", **told, said=outcome.said)
