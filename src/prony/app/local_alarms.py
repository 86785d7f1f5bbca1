"""Alarms of the home's own database, without a server: a server on this home raises them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from prony.app import notify
from prony.app.fleet.alarms import OutgoingMessage, build_alarm, prepare_test, record_delivery, remove_alarm
from prony.app.local_store import whoever
from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page
from prony.ports.clock import SystemClock
from prony.store import alarms as rows
from prony.store import notices
from prony.store.database import Connection, Engine, reading, writing
from prony.store.writer import Transaction

T = TypeVar("T")


class LocalAlarms:
    """Alarms; each is named by its id or its name. See `prony.ports.use_cases.AlarmUseCases`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clock = SystemClock()

    def add(self, alarm: NewAlarm) -> MadeAlarm:
        """Make one; the secret that signs its webhooks is in this answer and never again."""
        made, source = build_alarm(alarm, now=self._clock.now(), who=whoever())
        self._write(lambda transaction: rows.add(transaction.connection, made.alarm, source))
        return made

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Alarm]:
        """Return alarms, a page at a time."""
        return self._read(lambda connection: rows.page(connection, limit, cursor))

    def get(self, alarm_id: str) -> Alarm:
        """Return one alarm."""
        return self._read(lambda connection: rows.find(connection, alarm_id))

    def incidents(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Incident]:
        """Return what it found, the newest first."""
        return self._read(lambda connection: rows.incidents(connection, rows.find(connection, alarm_id), limit, cursor))

    def deliveries(self, alarm_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[Delivery]:
        """Return the messages that it sent, the newest first."""
        return self._read(
            lambda connection: notices.deliveries(connection, rows.find(connection, alarm_id), limit, cursor)
        )

    def test(self, alarm_id: str) -> TestAnswer:
        """Really send a message to each of its addresses."""
        now = self._clock.now()
        alarm, notice_id, notifications = self._write(
            lambda transaction: prepare_test(transaction, alarm_id, now=now, link="")
        )
        for one in notifications:
            self._settle(one, notify.send(one.notification))
        return TestAnswer(deliveries=self._read(lambda connection: notices.of_notice(connection, alarm, notice_id)))

    def _settle(self, outgoing: OutgoingMessage, outcome: notify.DeliveryOutcome) -> None:
        now = self._clock.now()
        self._write(lambda transaction: record_delivery(transaction, outgoing, outcome, now=now, is_last=True))

    def remove(self, alarm_id: str) -> None:
        """Forget an alarm."""
        self._write(lambda transaction: remove_alarm(transaction, alarm_id))

    def _read(self, question: Callable[[Connection], T]) -> T:
        with reading(self._engine) as connection:
            return question(connection)

    def _write(self, operation: Callable[[Transaction], T]) -> T:
        with writing(self._engine) as connection:
            return operation(Transaction(connection))
