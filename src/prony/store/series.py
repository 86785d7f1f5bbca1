"""Rows of series, points, changes and baselines. What they mean is decided elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, select, update

from prony.errors import NotFoundError
from prony.model.calibration import Calibration
from prony.model.git import order_by_commit
from prony.model.history import OPEN, Baseline, Change, ChangeState, Point, Series
from prony.model.queue import JobState, Page
from prony.store import history_tables, tables
from prony.store.codecs import Values
from prony.store.cursors import bad_cursor

_S, _P, _C, _B = history_tables.series, history_tables.point, history_tables.change, history_tables.baseline
_ORDER = (_P.c.measured_at, _P.c.job_id)
_AT_ONCE = 500
_MOST_LOOKED_AT = 5000
_MOST_READ = 20_000


# Points


def points(connection: Connection, series_id: str) -> tuple[Point, ...]:
    """Return a series' points in the order of their commits where that is known, else as they were measured."""
    query = select(_P.c.document).where(_P.c.series_id == series_id).order_by(*_ORDER)
    measured = [Point.read_json(text) for text in connection.execute(query).scalars()]
    return tuple(order_by_commit(measured, lambda point: point.git, lambda point: point.measured_at))


def point_of_job(connection: Connection, job_id: str) -> Point | None:
    """Return the point of a job's result; None where it is in no history."""
    text = connection.execute(select(_P.c.document).where(_P.c.job_id == job_id)).scalar()
    return None if text is None else Point.read_json(text)


def series_of_job(connection: Connection, job_id: str) -> str | None:
    found = connection.execute(select(_P.c.series_id).where(_P.c.job_id == job_id)).scalar()
    return None if found is None else str(found)


# Made once, as it is asked every second.
_WAITING = (
    select(_P.c.series_id).where(~_P.c.judged, _P.c.series_id > bindparam("after"))
    .distinct().order_by(_P.c.series_id).limit(bindparam("most"))
)  # fmt: skip


def waiting(connection: Connection, limit: int, after: str = "") -> list[str]:
    """Return series behind another one, by their ids, that have points which nobody has judged."""
    return [str(one) for one in connection.execute(_WAITING, {"most": limit, "after": after}).scalars()]


def wake(connection: Connection, series_id: str) -> None:
    """Have a series judged again from its first point."""
    connection.execute(update(_S).where(_S.c.id == series_id).values(course=None))
    connection.execute(update(_P).where(_P.c.series_id == series_id).values(judged=False))


def forget(connection: Connection) -> None:
    """Remove every point and what was not decided by a person; series are made again with their points."""
    connection.execute(delete(_P))
    connection.execute(update(_S).values(course=None))
    undecided = (ChangeState.SUSPECT.value, ChangeState.FOUND.value, ChangeState.RESOLVED.value)
    connection.execute(delete(_C).where(_C.c.state.in_(undecided)))


def drop_empty(connection: Connection) -> None:
    """Remove series whose last point went with its experiment."""
    connection.execute(delete(_S).where(~select(_P.c.job_id).where(_P.c.series_id == _S.c.id).exists()))


# Series


def one(connection: Connection, series_id: str, *, locked: bool = False) -> tuple[Series, str | None]:
    """Return a series and how far it was judged."""
    query = select(_S.c.document, _S.c.course).where(_S.c.id == series_id)
    row = connection.execute(query.with_for_update() if locked else query).first()
    if row is None:
        raise NotFoundError(f"no series {series_id!r}", hint="`prony history` lists them", code="no_series")
    return Series.read_json(row.document), row.course


def page(
    connection: Connection, *, name: str | None = None, state: str | None = None, branch: str | None = None,
    limit: int = 100, cursor: str | None = None,
) -> Page[Series]:  # fmt: skip
    """Return series by their names; the cursor is the last one's id. An empty branch is the default one."""
    query = select(_S.c.id, _S.c.document).order_by(_S.c.name, _S.c.id).limit(limit + 1)
    query = query if name is None else query.where(_S.c.name == name)
    query = query if state is None else query.where(_S.c.state == state)
    query = query if branch is None else query.where(_is_of(branch))
    if cursor is not None:
        last = connection.execute(select(_S.c.name, _S.c.id).where(_S.c.id == cursor)).first()
        if last is None:
            raise bad_cursor(cursor)
        query = query.where((_S.c.name > last.name) | ((_S.c.name == last.name) & (_S.c.id > last.id)))
    rows = connection.execute(query).all()
    items = tuple(Series.read_json(row.document) for row in rows[:limit])
    return Page[Series](items=items, next=rows[limit - 1].id if len(rows) > limit else None)


def newest(connection: Connection, limit: int) -> tuple[list[Series], int]:
    """Return so many series that have a result, the newest first, and how many more there are."""
    found = [Series.read_json(text) for text in connection.execute(select(_S.c.document).limit(_MOST_READ)).scalars()]
    dated = sorted((one for one in found if one.last_at is not None), key=_measured_at, reverse=True)
    count = int(connection.execute(select(func.count()).select_from(_S)).scalar_one())
    return dated[:limit], max(0, len(dated) - limit) + max(0, count - len(found))


def _measured_at(series: Series) -> float:
    return 0.0 if series.last_at is None else series.last_at.timestamp()


def _is_of(branch: str) -> ColumnElement[bool]:
    return _S.c.branch == branch if branch else _S.c.branch.is_(None)


def find_series(connection: Connection, text: str) -> list[str]:
    """Return the series that a person may mean: by their recipe's name, or the beginning of their id."""
    by_name = connection.execute(select(_S.c.id).where(_S.c.name == text).order_by(_S.c.id)).scalars().all()
    if by_name or not text:
        return [str(found) for found in by_name]
    query = select(_S.c.id).where(_S.c.id.startswith(text, autoescape=True)).order_by(_S.c.id)
    return [str(found) for found in connection.execute(query).scalars()]


def keep_judgement(connection: Connection, series: Series, course: str, seen: Sequence[str]) -> None:
    """Keep how a series stands, and that these points were looked at."""
    values = {"state": series.state.value, "document": series.model_dump_json(), "course": course}
    connection.execute(update(_S).where(_S.c.id == series.id).values(values))
    for begin in range(0, len(seen), 500):
        part = seen[begin : begin + 500]
        connection.execute(update(_P).where(_P.c.job_id.in_(part), ~_P.c.judged).values(judged=True))


# Changes


def changes(connection: Connection, series_id: str) -> tuple[Change, ...]:
    """Return all of a series, the oldest first."""
    query = select(_C.c.document).where(_C.c.series_id == series_id)
    found = [Change.read_json(text) for text in connection.execute(query).scalars()]
    return tuple(sorted(found, key=lambda change: (change.measured_at, change.id)))


def change(connection: Connection, change_id: str) -> Change:
    text = connection.execute(select(_C.c.document).where(_C.c.id == change_id)).scalar()
    if text is None:
        raise NotFoundError(f"no change {change_id!r}", hint="`prony watch-regressions` lists them", code="no_change")
    return Change.read_json(text)


def changes_named(connection: Connection, text: str) -> list[str]:
    query = select(_C.c.id).where(_C.c.id.startswith(text, autoescape=True)).order_by(_C.c.id)
    return [str(found) for found in connection.execute(query).scalars()]


def keep_changes(connection: Connection, series_id: str, found: Sequence[Change]) -> None:
    """Let these be all changes of a series."""
    connection.execute(delete(_C).where(_C.c.series_id == series_id))
    if found:
        connection.execute(insert(_C), [_change_row(change) for change in found])


def keep_change(connection: Connection, found: Change) -> None:
    connection.execute(update(_C).where(_C.c.id == found.id).values(_change_row(found)))


def _change_row(found: Change) -> Values:
    return {
        "id": found.id, "series_id": found.series_id, "kind": found.kind, "state": found.state.value,
        "noticed_at": found.noticed_at, "document": found.model_dump_json(),
    }  # fmt: skip


def change_page(
    connection: Connection, *, states: Sequence[ChangeState] = OPEN, kind: str | None = None,
    branch: str | None = None, limit: int = 100, cursor: str | None = None,
) -> Page[Change]:  # fmt: skip
    """Return changes in these states, the newest first; the cursor is the last one's id. An empty branch is the
    default one."""
    query = select(_C.c.id, _C.c.document).order_by(_C.c.noticed_at.desc(), _C.c.id.desc()).limit(limit + 1)
    query = query.where(_C.c.state.in_([state.value for state in states]))
    query = query if kind is None else query.where(_C.c.kind == kind)
    if branch is not None:
        query = query.where(_C.c.series_id.in_(select(_S.c.id).where(_is_of(branch))))
    if cursor is not None:
        last = connection.execute(select(_C.c.noticed_at, _C.c.id).where(_C.c.id == cursor)).first()
        if last is None:
            raise bad_cursor(cursor)
        older = (_C.c.noticed_at < last.noticed_at) | ((_C.c.noticed_at == last.noticed_at) & (_C.c.id < last.id))
        query = query.where(older)
    rows = connection.execute(query).all()
    items = tuple(Change.read_json(row.document) for row in rows[:limit])
    return Page[Change](items=items, next=rows[limit - 1].id if len(rows) > limit else None)


def open_counts(connection: Connection) -> dict[tuple[str, str], int]:
    """Return how many changes are open, by kind and state."""
    query = select(_C.c.kind, _C.c.state, func.count()).where(_C.c.state.in_([state.value for state in OPEN]))
    return {(kind, state): count for kind, state, count in connection.execute(query.group_by(_C.c.kind, _C.c.state))}


# Baselines


def find_baseline(connection: Connection, series_id: str) -> Baseline | None:
    text = connection.execute(select(_B.c.document).where(_B.c.series_id == series_id)).scalar()
    return None if text is None else Baseline.read_json(text)


def save_baseline(connection: Connection, found: Baseline) -> None:
    delete_baseline(connection, found.series_id)
    row = {"series_id": found.series_id, "job_id": found.job_id, "document": found.model_dump_json()}
    connection.execute(insert(_B).values(row))


def delete_baseline(connection: Connection, series_id: str) -> bool:
    """Return whether there was one."""
    return bool(connection.execute(delete(_B).where(_B.c.series_id == series_id)).rowcount)


def durations(connection: Connection, series: Sequence[str]) -> dict[str, list[float]]:
    """Return by series how long its jobs took from lease to result, the newest of them."""
    point, queue = history_tables.point, tables.queue
    found: dict[str, list[float]] = defaultdict(list)
    for begin in range(0, len(series), _AT_ONCE):
        query = (
            select(point.c.series_id, queue.c.leased_at, queue.c.ended_at)
            .join(queue, queue.c.job_id == point.c.job_id)
            .where(point.c.series_id.in_(series[begin : begin + _AT_ONCE]), queue.c.state == JobState.COMPLETE.value)
            .order_by(point.c.measured_at.desc())
            .limit(_MOST_LOOKED_AT)
        )
        for series_id, leased_at, ended_at in connection.execute(query):
            if leased_at is not None and ended_at is not None:
                found[series_id].append((ended_at - leased_at).total_seconds())
    return found


# The canary


def canary(connection: Connection, hardware_id: str) -> tuple[Calibration, ...]:
    """Return every calibration of a kind of machine, the oldest first."""
    table = tables.calibration
    query = select(table.c.document).where(table.c.hardware_id == hardware_id).order_by(table.c.taken_at, table.c.id)
    return tuple(Calibration.read_json(text) for text in connection.execute(query).scalars())
