"""Rows of schedules and their fires: add, read and change them in an open transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, or_, select, update

from prony.errors import ConflictError, NotFoundError
from prony.model.cron import Timing
from prony.model.queue import Page, Submission
from prony.model.schedule import Fire, Schedule, ScheduleState
from prony.store import result_rows, tables
from prony.store.cursors import read_time_cursor, write_time_cursor

_T = tables.schedule
_F = tables.fire


def add(connection: Connection, schedule: Schedule) -> None:
    """Keep a new schedule; its name must be free."""
    if not result_rows.insert_new(connection, _T, _row(schedule)):
        raise ConflictError(
            f"a schedule called {schedule.name!r} exists already",
            hint=f"give another --name, or `prony schedule remove {schedule.name}` first",
        )


def replace(connection: Connection, schedule: Schedule) -> str:
    """Keep a schedule in the place of the one of its name, whose history stays; return its id."""
    if result_rows.insert_new(connection, _T, _row(schedule)):
        return schedule.id
    kept = connection.execute(select(_T.c.id).where(_T.c.name == schedule.name).with_for_update()).scalar_one()
    values = {name: value for name, value in _row(schedule).items() if name not in ("id", "created_at")}
    connection.execute(update(_T).where(_T.c.id == kept).values(values))
    return str(kept)


def find(connection: Connection, text: str, *, locked: bool = False) -> Schedule:
    """Return the schedule of this id or name."""
    query = select(_T).where(or_(_T.c.id == text, _T.c.name == text))
    row = connection.execute(query.with_for_update() if locked else query).first()
    if row is None:
        raise NotFoundError(
            f"no schedule {text[:200]!r}", hint="`prony schedule list` shows what there is", code="no_schedule"
        )
    return _read([row], {} if locked else _sums(connection, [row.id]))[0]


def is_of(text: str) -> ColumnElement[bool]:
    """Return what holds for the experiments of the schedule of this id or name; of one that was removed, by its id."""
    of = tables.scheduled
    named = select(_T.c.id).where(_T.c.name == text)
    made = select(of.c.experiment_id).where(or_(of.c.schedule_id == text, of.c.schedule_id.in_(named)))
    return tables.experiment.c.id.in_(made)


def page(connection: Connection, limit: int, cursor: str | None) -> Page[Schedule]:
    """Return schedules by name; the cursor is the last one's name."""
    query = select(_T).order_by(_T.c.name).limit(limit + 1)
    rows = connection.execute(query if cursor is None else query.where(_T.c.name > cursor)).all()
    found = _read(rows[:limit], _sums(connection, [row.id for row in rows]))
    return Page[Schedule](items=tuple(found), next=found[-1].name if len(rows) > limit else None)


# Made once, as it is asked every second.
_DUE = select(_T).where(_T.c.next_at <= bindparam("now")).order_by(_T.c.next_at).limit(bindparam("most"))


def due(connection: Connection, now: datetime, limit: int) -> list[Schedule]:
    """Return the schedules that have something to fire; what their fires add up to is left out."""
    return _read(connection.execute(_DUE, {"now": now, "most": limit}).all(), {})


def move(connection: Connection, schedule_id: str, state: ScheduleState, next_at: datetime | None) -> None:
    connection.execute(update(_T).where(_T.c.id == schedule_id).values(state=state.value, next_at=next_at))


def remove(connection: Connection, schedule_id: str) -> None:
    connection.execute(delete(_T).where(_T.c.id == schedule_id))


def add_fire(connection: Connection, fire: Fire) -> bool:
    """Keep one fire; False when the same instant of the schedule has fired before."""
    return result_rows.insert_new(connection, _F, fire.model_dump())


def prune(connection: Connection, before: datetime) -> None:
    """Forget fires of long ago; the last of each schedule stays, which tells when that was."""
    newer = _F.alias()
    last = select(func.max(newer.c.due_at)).where(newer.c.schedule_id == _F.c.schedule_id).scalar_subquery()
    connection.execute(delete(_F).where(_F.c.fired_at < before, _F.c.due_at < last))


def fires(connection: Connection, schedule_id: str, limit: int, cursor: str | None) -> Page[Fire]:
    """Return the newest first; the cursor is the last one's due instant."""
    query = select(_F).where(_F.c.schedule_id == schedule_id).order_by(_F.c.due_at.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(_F.c.due_at < read_time_cursor(cursor)[0])
    found = [Fire.read(row._mapping) for row in connection.execute(query)]
    shown = found[:limit]
    return Page[Fire](items=tuple(shown), next=write_time_cursor(shown[-1].due_at) if len(found) > limit else None)


def _row(schedule: Schedule) -> dict[str, Any]:
    plain = schedule.model_dump(include={"id", "name", "recipe", "next_at", "created_at", "created_by"})
    return plain | {
        "state": schedule.state.value,
        "timing": schedule.timing.model_dump_json(),
        "submission": schedule.submission.model_dump_json(),
    }


def _sums(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, int, datetime | None]]:
    """Return of each schedule how often it fired, for how many times nothing ran, and when it fired last."""
    if not ids:
        return {}
    ran = func.count(_F.c.experiment_id)
    # A fire that made nothing stands for its own instant as well as for the earlier ones.
    lost = func.sum(_F.c.missed) + func.count() - ran
    query = select(_F.c.schedule_id, ran, lost, func.max(_F.c.fired_at)).group_by(_F.c.schedule_id)
    rows = connection.execute(query.where(_F.c.schedule_id.in_(ids)))
    return {one: (fired, int(missed), last_at) for one, fired, missed, last_at in rows}


def _read(rows: Sequence[Row[Any]], sums: Mapping[str, tuple[int, int, datetime | None]]) -> list[Schedule]:
    found = []
    for row in rows:
        fires, missed, last_at = sums.get(row.id, (0, 0, None))
        values = dict(row._mapping) | {"fires": fires, "missed": missed, "last_at": last_at}
        values |= {"timing": Timing.read_json(row.timing), "submission": Submission.read_json(row.submission)}
        found.append(Schedule.read(values))
    return found
