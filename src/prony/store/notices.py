"""Rows of notifications: gather, claim and record deliveries in an open transaction.

A message waits in the database and not in a server, so that one that is killed loses none. Whoever sends it has claimed
it before, for a while; if nothing is heard of it by then, another one sends it, under the same key.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, and_, insert, or_, select, update

from prony.model.alarm import Alarm, Delivery, Happening, Try
from prony.model.queue import Page
from prony.store import result_rows, tables
from prony.store.alarms import AlarmSource
from prony.store.cursors import read_time_cursor, write_time_cursor

FIRST_FEW = 5
_N = tables.notice
_D = tables.delivery
_HAPPENINGS = TypeAdapter(tuple[Happening, ...])
_TRIES = TypeAdapter(tuple[Try, ...])
_LOST = "the server stopped before the answer came"


@dataclass(frozen=True)
class GatheredMessages:
    """A message that is ready."""

    id: str
    alarm_id: str
    kind: str
    count: int
    items: tuple[Happening, ...]


@dataclass(frozen=True)
class NoticeClaim:
    """A delivery that is ours to try. `number` counts the tries: a later one of somebody else's beats ours."""

    id: str
    notice: GatheredMessages
    source_id: str
    place: int
    number: int
    created_at: datetime


# Gathering


def gather(connection: Connection, alarm_id: str, kind: str, happening: Happening, *, ready_at: float) -> str:
    """Add to the message that an alarm gathers, or begin one that is ready at this time; return its id."""
    fresh = {
        "id": secrets.token_hex(8),
        "alarm_id": alarm_id,
        "kind": kind,
        "ready_at": ready_at,
        "created_at": happening.at,
        "count": 1,
        "document": _HAPPENINGS.dump_json((happening,)).decode(),
    }
    if result_rows.insert_new(connection, _N, fresh):
        return str(fresh["id"])
    mine = (_N.c.alarm_id == alarm_id, _N.c.kind == kind, _N.c.ready_at.is_not(None))
    row = connection.execute(select(_N).where(*mine).with_for_update()).first()
    if row is None:  # another server has just told it
        return gather(connection, alarm_id, kind, happening, ready_at=ready_at)
    values: dict[str, Any] = {"count": row._mapping["count"] + 1}
    items = _HAPPENINGS.validate_json(row.document)
    if len(items) < FIRST_FEW:
        values["document"] = _HAPPENINGS.dump_json((*items, happening)).decode()
    connection.execute(update(_N).where(_N.c.id == row.id).values(values))
    return str(row.id)


def count_more(connection: Connection, notice_id: str) -> None:
    """Count one more of what a message tells already, while it is gathered."""
    gathering = (_N.c.id == notice_id, _N.c.ready_at.is_not(None))
    connection.execute(update(_N).where(*gathering).values(count=_N.c.count + 1))


def gathering_until(connection: Connection, alarm_id: str, kind: str) -> float | None:
    """Return when the message that an alarm gathers will be ready, None where it gathers none."""
    mine = (_N.c.alarm_id == alarm_id, _N.c.kind == kind, _N.c.ready_at.is_not(None))
    return connection.execute(select(_N.c.ready_at).where(*mine)).scalar()


def ready(connection: Connection, now_s: float, limit: int) -> list[GatheredMessages]:
    """Return the messages whose time has come, closed for whatever happens from now on."""
    query = select(_N).where(_N.c.ready_at <= now_s).order_by(_N.c.ready_at).limit(limit)
    rows = connection.execute(query.with_for_update(skip_locked=True)).all()
    for row in rows:
        connection.execute(update(_N).where(_N.c.id == row.id).values(ready_at=None))
    return [_build_gathered(row) for row in rows]


def has_due(connection: Connection, now_s: float) -> bool:
    """Is a message ready, or a delivery due?"""
    queries = (select(_N.c.id).where(_N.c.ready_at <= now_s), select(_D.c.id).where(_D.c.not_before <= now_s))
    return any(connection.execute(query.limit(1)).first() is not None for query in queries)


def add_closed(connection: Connection, alarm_id: str, kind: str, happening: Happening) -> GatheredMessages:
    """Keep a message that gathers nothing more."""
    row = {"id": secrets.token_hex(8), "alarm_id": alarm_id, "kind": kind, "created_at": happening.at, "count": 1}
    connection.execute(insert(_N).values(row | {"document": _HAPPENINGS.dump_json((happening,)).decode()}))
    return GatheredMessages(str(row["id"]), alarm_id, kind, 1, (happening,))


# Delivering


def address(
    connection: Connection,
    notice: GatheredMessages,
    sources: Sequence[tuple[AlarmSource, Sequence[str]]],
    now: datetime,
) -> None:
    """Let a message wait for each of these addresses, which are given with how they may be shown."""
    rows = [
        {
            "id": secrets.token_hex(12),
            "alarm_id": notice.alarm_id,
            "notice_id": notice.id,
            "source_id": source.alarm_id,
            "place": place,
            "address": masked,
            "state": "waiting",
            "tries": 0,
            "not_before": 0.0,
            "created_at": now,
            "attempts": "[]",
        }
        for source, shown in sources
        for place, masked in enumerate(shown)
    ]
    if rows:
        connection.execute(insert(_D), rows)


def claim(
    connection: Connection, *, now: datetime, until_s: float, limit: int, notice_id: str | None = None
) -> list[NoticeClaim]:
    """Take deliveries that are due, or whose claim has run out, for as long as `until_s`."""
    query = select(_D, *(_N.c[name].label(f"notice_{name}") for name in ("kind", "count", "document")))
    query = query.join(_N, _N.c.id == _D.c.notice_id).where(_D.c.not_before <= now.timestamp())
    query = query if notice_id is None else query.where(_D.c.notice_id == notice_id)
    query = query.order_by(_D.c.not_before, _D.c.id).limit(limit).with_for_update(skip_locked=True, of=_D)
    found = []
    for row in connection.execute(query).all():
        values = {"state": "sending", "tries": row.tries + 1, "not_before": until_s}
        if row.state == "sending":
            values["attempts"] = _with(row, Try(at=now, ok=False, said=_LOST))
        connection.execute(update(_D).where(_D.c.id == row.id).values(values))
        items = _HAPPENINGS.validate_json(row.notice_document)
        notice = GatheredMessages(row.notice_id, row.alarm_id, row.notice_kind, row.notice_count, items)
        found.append(NoticeClaim(row.id, notice, row.source_id, row.place, row.tries + 1, row.created_at))
    return found


def record(connection: Connection, claim: NoticeClaim, done: Try, *, again_s: float | None) -> bool:
    """Write down what came of a try, and when the next one is, if any; False where it is not ours any more."""
    mine = and_(_D.c.id == claim.id, _D.c.tries == claim.number, _D.c.state == "sending")
    row = connection.execute(select(_D).where(mine).with_for_update()).first()
    if row is None:
        return False
    values: dict[str, Any] = {"attempts": _with(row, done), "not_before": again_s}
    if done.ok or again_s is None:
        values |= {"state": "delivered" if done.ok else "failed", "ended_at": done.at, "not_before": None}
    else:
        values["state"] = "waiting"
    connection.execute(update(_D).where(_D.c.id == row.id).values(values))
    return True


def release(connection: Connection) -> None:
    """Let everything that is claimed be claimed again: nobody else can be sending."""
    connection.execute(update(_D).where(_D.c.state == "sending").values(not_before=0.0))


# Looking


def deliveries(connection: Connection, alarm: Alarm, limit: int, cursor: str | None) -> Page[Delivery]:
    """Return the newest first."""
    query = _show_alarm(alarm).order_by(_D.c.created_at.desc(), _D.c.id.desc()).limit(limit + 1)
    if cursor is not None:
        at, last = read_time_cursor(cursor)
        query = query.where(or_(_D.c.created_at < at, and_(_D.c.created_at == at, _D.c.id < last)))
    rows = connection.execute(query).all()
    found = tuple(_delivery(row, alarm) for row in rows[:limit])
    return Page[Delivery](
        items=found, next=write_time_cursor(found[-1].created_at, found[-1].id) if len(rows) > limit else None
    )


def of_notice(connection: Connection, alarm: Alarm, notice_id: str) -> tuple[Delivery, ...]:
    rows = connection.execute(_show_alarm(alarm).where(_D.c.notice_id == notice_id).order_by(_D.c.id))
    return tuple(_delivery(row, alarm) for row in rows)


def _show_alarm(alarm: Alarm) -> Any:
    joined = select(_D, _N.c.kind).join(_N, _N.c.id == _D.c.notice_id)
    return joined.where(_D.c.alarm_id == alarm.id)


def _delivery(row: Row[Any], alarm: Alarm) -> Delivery:
    waits = row.state == "waiting" and row.not_before
    return Delivery(
        id=row.id,
        alarm=alarm.name,
        kind=row.kind,
        address=row.address,
        state=row.state,
        tries=_TRIES.validate_json(row.attempts),
        created_at=row.created_at,
        ended_at=row.ended_at,
        next_at=datetime.fromtimestamp(row.not_before, UTC) if waits else None,
    )


def _build_gathered(row: Row[Any]) -> GatheredMessages:
    count = row._mapping["count"]  # a row is a tuple, which has a method of this name
    return GatheredMessages(row.id, row.alarm_id, row.kind, count, _HAPPENINGS.validate_json(row.document))


def _with(row: Row[Any], one: Try) -> str:
    return json.dumps([*json.loads(row.attempts), one.model_dump(mode="json")])
