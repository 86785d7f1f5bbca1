"""Rows of alarms and incidents: add, read and change them in an open transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, or_, select, update

from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.alarm import Alarm, Happening, Incident
from prony.model.queue import Page
from prony.store import result_rows, tables
from prony.store.cursors import read_number_cursor

_T = tables.alarm
_I = tables.incident


@dataclass(frozen=True)
class AlarmSource:
    """What is needed to tell somebody, and is never shown: the addresses of an alarm and what signs its messages."""

    alarm_id: str
    addresses: tuple[str, ...]
    secret: str


def add(connection: Connection, alarm: Alarm, source: AlarmSource) -> None:
    """Keep a new alarm; its name must be free."""
    _check_via(connection, alarm)
    if not result_rows.insert_new(connection, _T, _row(alarm, source)):
        hint = f"give it another name, or `prony alarm remove {alarm.name}` first"
        raise ConflictError(f"an alarm called {alarm.name!r} exists already", hint=hint)


def replace(connection: Connection, alarm: Alarm, source: AlarmSource) -> None:
    """Keep an alarm in the place of the one of its name, whose incidents stay."""
    _check_via(connection, alarm)
    if not result_rows.insert_new(connection, _T, _row(alarm, source)):
        kept = find(connection, alarm.name)
        known = alarm.model_copy(update={"id": kept.id, "created_at": kept.created_at})
        connection.execute(update(_T).where(_T.c.id == kept.id).values(document=_document(known)))


def _check_via(connection: Connection, alarm: Alarm) -> None:
    """Refuse an alarm that counts on others which are not there."""
    known = set(connection.execute(select(_T.c.name).where(_T.c.name.in_(alarm.via))).scalars()) if alarm.via else set()
    for name in alarm.via:
        if name not in known:
            hint = "`prony alarm list` shows what there is; an admin adds one with `prony alarm add NAME --to URL`"
            raise InputError(
                f"alarm {alarm.name} uses the addresses of alarm {name!r}, which does not exist", hint=hint
            )


def find(connection: Connection, text: str) -> Alarm:
    """Return the alarm of this id or name."""
    row = connection.execute(select(_T).where(or_(_T.c.id == text, _T.c.name == text))).first()
    if row is None:
        hint = "`prony alarm list` shows what there is"
        raise NotFoundError(f"no alarm {text[:200]!r}", hint=hint, code="no_alarm")
    return _read(connection, [row])[0]


def page(connection: Connection, limit: int, cursor: str | None) -> Page[Alarm]:
    """Return alarms by name; the cursor is the last one's name."""
    query = select(_T).order_by(_T.c.name).limit(limit + 1)
    rows = connection.execute(query if cursor is None else query.where(_T.c.name > cursor)).all()
    found = _read(connection, rows[:limit])
    return Page[Alarm](items=tuple(found), next=found[-1].name if len(rows) > limit else None)


def every(connection: Connection) -> tuple[Alarm, ...]:
    """Return all alarms, in an order that is the same for everybody."""
    rows = connection.execute(select(_T).order_by(_T.c.id)).all()
    return tuple(_alarm(row, 0) for row in rows)


def remove(connection: Connection, alarm_id: str) -> None:
    connection.execute(delete(_T).where(_T.c.id == alarm_id))


def alarm_sources(connection: Connection, alarm: Alarm) -> list[AlarmSource]:
    """Return whom an alarm tells: its own addresses, and those of the alarms that it names."""
    rows = connection.execute(select(_T).where(or_(_T.c.id == alarm.id, _T.c.name.in_(alarm.via))).order_by(_T.c.name))
    return [_source(row) for row in rows]


def source(connection: Connection, alarm_id: str) -> AlarmSource | None:
    row = connection.execute(select(_T).where(_T.c.id == alarm_id)).first()
    return None if row is None else _source(row)


def told_at(connection: Connection, alarm_id: str) -> tuple[bool, datetime | None]:
    """Return whether the alarm is there, and stays until the commit; and when it last told something."""
    query = select(_T.c.told_at).where(_T.c.id == alarm_id).with_for_update(read=True, key_share=True)
    row = connection.execute(query).first()
    return row is not None, row.told_at if row is not None else None


def note_told(connection: Connection, alarm_id: str, at: datetime) -> None:
    connection.execute(update(_T).where(_T.c.id == alarm_id).values(told_at=at))


# Incidents


def begin(connection: Connection, alarm_id: str, happening: Happening) -> tuple[bool, str | None]:
    """Open an incident, or count one more of an open one; return whether it is new, and the notice it was told with."""
    mine = (_I.c.alarm_id == alarm_id, _I.c.subject == happening.subject, _I.c.closed_at.is_(None))
    values = {"last_at": happening.at, "document": happening.model_dump_json()}
    again = update(_I).where(*mine).values(**values, count=_I.c.count + 1).returning(_I.c.notice_id)
    known = connection.execute(again).first()
    if known is not None:
        return False, known.notice_id
    fresh = {"alarm_id": alarm_id, "subject": happening.subject, "opened_at": happening.at, "count": 1}
    if result_rows.insert_new(connection, _I, values | fresh):
        return True, None
    return False, connection.execute(again).scalar()  # another server opened it in the same instant


def end(connection: Connection, alarm_id: str, subject: str, at: datetime) -> bool:
    """Close an incident; False where none was open."""
    mine = (_I.c.alarm_id == alarm_id, _I.c.subject == subject, _I.c.closed_at.is_(None))
    return connection.execute(update(_I).where(*mine).values(closed_at=at)).rowcount > 0


def note_incident(connection: Connection, alarm_id: str, subject: str, notice_id: str) -> None:
    """Remember with which notice an open incident is told."""
    mine = (_I.c.alarm_id == alarm_id, _I.c.subject == subject, _I.c.closed_at.is_(None))
    connection.execute(update(_I).where(*mine).values(notice_id=notice_id))


def note_all_told(connection: Connection, notice_id: str, at: datetime) -> None:
    connection.execute(update(_I).where(_I.c.notice_id == notice_id).values(told_at=at))


def has_lasting(connection: Connection, before: datetime) -> bool:
    """Is anything open that was last told before then?"""
    query = select(_I.c.id).where(_I.c.closed_at.is_(None), _I.c.told_at <= before).limit(1)
    return connection.execute(query).first() is not None


def lasting(connection: Connection, alarm_id: str, before: datetime, limit: int) -> list[Happening]:
    """Return what is open and was last told before then."""
    query = select(_I.c.document).where(_I.c.alarm_id == alarm_id, _I.c.closed_at.is_(None), _I.c.told_at <= before)
    query = query.order_by(_I.c.id).limit(limit).with_for_update(skip_locked=True)
    return [Happening.read_json(text) for text in connection.execute(query).scalars()]


def incidents(connection: Connection, alarm: Alarm, limit: int, cursor: str | None) -> Page[Incident]:
    """Return the newest first; the cursor is the last one's id."""
    query = select(_I).where(_I.c.alarm_id == alarm.id).order_by(_I.c.id.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(_I.c.id < read_number_cursor(cursor))
    rows = connection.execute(query).all()
    found = tuple(_incident(row, alarm) for row in rows[:limit])
    return Page[Incident](items=found, next=str(found[-1].id) if len(rows) > limit else None)


def open_incidents(connection: Connection, limit: int) -> tuple[Incident, ...]:
    """Return what is open of every alarm, the newest first."""
    query = select(_I).where(_I.c.closed_at.is_(None)).order_by(_I.c.id.desc()).limit(limit)
    rows = connection.execute(query).all()
    known = {alarm.id: alarm for alarm in every(connection)} if rows else {}
    return tuple(_incident(row, known[row.alarm_id]) for row in rows)


def prune(connection: Connection, before: datetime) -> None:
    """Forget what ended long ago, with what was told of it."""
    connection.execute(delete(_I).where(_I.c.closed_at < before))
    old = tables.notice
    connection.execute(delete(old).where(old.c.created_at < before, old.c.ready_at.is_(None)))


def _incident(row: Row[Any], alarm: Alarm) -> Incident:
    happening = Happening.read_json(row.document)
    told = {"alarm": alarm.name, "severity": alarm.severity, "text": happening.text}
    return Incident.read(dict(row._mapping) | told)


# Rows


def _row(alarm: Alarm, source: AlarmSource) -> dict[str, Any]:
    return {
        "id": alarm.id,
        "name": alarm.name,
        "created_at": alarm.created_at,
        "document": _document(alarm),
        "addresses": json.dumps(source.addresses),
        "secret": source.secret,
    }


def _document(alarm: Alarm) -> str:
    return alarm.model_dump_json(exclude={"open", "told_at"})


def _source(row: Row[Any]) -> AlarmSource:
    return AlarmSource(row.id, tuple(json.loads(row.addresses)), row.secret)


def _read(connection: Connection, rows: Sequence[Row[Any]]) -> list[Alarm]:
    count = select(_I.c.alarm_id, func.count()).where(_I.c.closed_at.is_(None)).group_by(_I.c.alarm_id)
    ids = [row.id for row in rows]
    counted = connection.execute(count.where(_I.c.alarm_id.in_(ids))) if ids else ()
    opened = {alarm_id: int(number) for alarm_id, number in counted}
    return [_alarm(row, opened.get(row.id, 0)) for row in rows]


def _alarm(row: Row[Any], opened: int) -> Alarm:
    found = Alarm.read_json(row.document)
    return found.model_copy(update={"open": opened, "told_at": row.told_at})
