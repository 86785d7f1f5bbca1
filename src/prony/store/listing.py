"""List experiments in an open transaction: search, sort, headlines, gates and trends."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    column,
    func,
    or_,
    select,
    table,
    update,
)

from prony.model.experiment import ExperimentState
from prony.model.gate import GateState
from prony.model.listing import ExperimentRow, Filters, Headline, Sort
from prony.model.metric import METRICS, Better, key_of
from prony.model.queue import JobState
from prony.store import history_tables, job_view, queue, schedules, tables
from prony.store import tables as listing_tables
from prony.store.codecs import read_labels
from prony.store.cursors import bad_cursor
from prony.store.tables import Instant

_E, _L, _R, _P = tables.experiment, listing_tables.listed, tables.result, history_tables.point
_BOTH = _E.join(_L, _L.c.experiment_id == _E.c.id)
_SEEN = table(
    "experiment_overview",
    *(column(name) for name in (
        "id", "worst_grade", "best_job_id",
        "headline_title", "headline_metric", "headline_value", "headline_low", "headline_high", "headline_unit",
    )),
)  # fmt: skip
_SHOWN = (
    _E.c.id, _E.c.name, _L.c.kind, _E.c.state, _E.c.created_at, _E.c.ended_at, _E.c.job_count, _L.c.labels,
    _L.c.submitted_by, _L.c.gates,
)  # fmt: skip
# Beyond every headline, so that what has none comes last.
_BEYOND = 1e300
_MOST_LABELS = 100
_TREND = 20


def page(
    connection: Connection, filters: Filters, sort: Sort, *, limit: int, cursor: str | None
) -> tuple[Sequence[Row[Any]], str | None]:
    """Return the rows of one page, and the cursor of the next."""
    key, descending = _key(sort)
    shown = key.label("sorted_by")
    query: Select[Any] = select(*_SHOWN, shown).select_from(_BOTH).where(*_conditions(filters))
    if cursor is not None:
        value, last = _read_cursor(cursor, is_instant=key.type.__class__ is Instant)
        query = query.where(_after(key, value, last, descending=descending))
    order = (shown.desc(), _E.c.id.desc()) if descending else (shown, _E.c.id)
    rows = connection.execute(query.order_by(*order).limit(limit + 1)).all()
    following = _cursor(rows[limit - 1]) if len(rows) > limit else None
    return rows[:limit], following


def running(connection: Connection, limit: int) -> Sequence[Row[Any]]:
    """Return what has not ended, the newest first."""
    open_ = [ExperimentState.RUNNING.value, ExperimentState.PENDING.value]
    query: Select[Any] = select(*_SHOWN).select_from(_BOTH).where(_E.c.state.in_(open_))
    return connection.execute(query.order_by(_E.c.created_at.desc(), _E.c.id.desc()).limit(limit)).all()


def states(connection: Connection, filters: Filters) -> dict[ExperimentState, int]:
    """Return how many there are in each state that the other filters leave."""
    others = _conditions(filters.model_copy(update={"state": None}))
    query = select(_E.c.state, func.count()).select_from(_BOTH).where(*others).group_by(_E.c.state)
    return {ExperimentState(state): count for state, count in connection.execute(query)}


def labels(connection: Connection) -> tuple[str, ...]:
    """Return the labels there are, the most used first."""
    query = select(_L.c.labels, func.count()).where(_L.c.labels != "").group_by(_L.c.labels)
    counted: Counter[str] = Counter()
    for lines, count in connection.execute(query):
        counted.update(dict.fromkeys(lines.strip("\n").split("\n"), count))
    return tuple(one for one, _ in counted.most_common(_MOST_LABELS))


def kinds(connection: Connection) -> tuple[str, ...]:
    """Return the kinds of workload that experiments have."""
    return tuple(connection.execute(select(_L.c.kind).distinct().order_by(_L.c.kind)).scalars())


def failed_gates(connection: Connection, since: datetime, limit: int) -> Sequence[Row[Any]]:
    """Return experiments whose gates failed and of whose name none has passed since, the newest first."""
    later, judged = _E.alias(), _L.alias()
    passed = select(later.c.id).where(
        judged.c.experiment_id == later.c.id, judged.c.gates == "passed",
        later.c.name == _E.c.name, later.c.created_at > _E.c.created_at,
    )  # fmt: skip
    query: Select[Any] = select(_E.c.id, _E.c.name, _E.c.ended_at, _L.c.gates_text).select_from(_BOTH)
    query = query.where(_L.c.gates == "failed", _E.c.created_at > since, ~passed.exists())
    return connection.execute(query.order_by(_E.c.created_at.desc()).limit(limit)).all()


def list_failed(connection: Connection, since: datetime, limit: int) -> Sequence[Row[Any]]:
    """Return experiments that failed or are partial and of whose name none was complete since, the newest first."""
    later = _E.alias()
    mended = select(later.c.id).where(
        later.c.state == ExperimentState.COMPLETE.value,
        later.c.name == _E.c.name, later.c.created_at > _E.c.created_at,
    )  # fmt: skip
    bad = [ExperimentState.FAILED.value, ExperimentState.PARTIAL.value]
    query: Select[Any] = select(_E.c.id, _E.c.name, _E.c.state, _E.c.ended_at)
    query = query.where(_E.c.state.in_(bad), _E.c.created_at > since, ~mended.exists())
    return connection.execute(query.order_by(_E.c.created_at.desc()).limit(limit)).all()


def first_failure_text(connection: Connection, experiment_id: str) -> str:
    """Return why the last job that failed did; empty where none says so."""
    queued = queue.page(connection, queue.JobFilter(experiment=experiment_id, state=JobState.FAILED), limit=1)
    if queued:
        (row,) = queued
        return str(json.loads(row.failure)["message"] if row.failure else row.reason)
    jobs = job_view.jobs_of(connection, queue.JobFilter(experiment=experiment_id))
    return next((job.failure.message for job in jobs if job.failure is not None), "")


def keep_gates(connection: Connection, experiment_id: str, state: GateState, text: str) -> None:
    """Note what became of an experiment's gates."""
    connection.execute(update(_L).where(_L.c.experiment_id == experiment_id).values(gates=state.value, gates_text=text))


def show_rows(connection: Connection, rows: Sequence[Row[Any]]) -> tuple[ExperimentRow, ...]:
    """Return what a list shows of these experiments."""
    ids = [row.id for row in rows]
    if not ids:
        return ()
    seen = {row.id: row for row in connection.execute(select(_SEEN).where(_SEEN.c.id.in_(ids)))}
    counts = job_view.counts_of(connection, ids)
    trends = _trends(connection, [row.best_job_id for row in seen.values() if row.best_job_id])
    better = _directions(connection, seen.values())
    return tuple(_show_row(row, _headline(seen[row.id], better), seen[row.id], counts[row.id], trends) for row in rows)


def _show_row(
    row: Row[Any],
    headline: Headline | None,
    seen: Row[Any],
    counts: dict[JobState, int],
    trends: Mapping[str, tuple[float, ...]],
) -> ExperimentRow:
    return ExperimentRow(
        id=row.id, name=row.name, kind=row.kind, state=row.state, created_at=row.created_at, ended_at=row.ended_at,
        submitted_by=row.submitted_by, labels=read_labels(row.labels), job_count=row.job_count, counts=counts,
        grade=seen.worst_grade, gates=row.gates, headline=headline, trend=trends.get(seen.best_job_id, ()),
    )  # fmt: skip


def _directions(connection: Connection, seen: Iterable[Row[Any]]) -> dict[str, Better]:
    """Return by job which way its headline is better: what is not in the glossary its own summary says."""
    named = {row.best_job_id: key_of(row.headline_metric).metric for row in seen if row.headline_metric is not None}
    own = [job_id for job_id, name in named.items() if name not in METRICS]
    found: dict[str, Better] = {job_id: METRICS[name].better for job_id, name in named.items() if name in METRICS}
    if own:
        for row in connection.execute(select(_R.c.job_id, _R.c.summary).where(_R.c.job_id.in_(own), _R.c.stands)):
            metric = json.loads(row.summary).get("metrics", {}).get(named[row.job_id], {})
            found[row.job_id] = metric.get("better", "neither")
    return found


def _headline(seen: Row[Any], better: Mapping[str, Better]) -> Headline | None:
    if seen.headline_value is None or seen.headline_metric is None:
        return None
    return Headline(
        job_id=seen.best_job_id, title=seen.headline_title, metric=seen.headline_metric, value=seen.headline_value,
        low=seen.headline_low, high=seen.headline_high, unit=seen.headline_unit,
        better=better.get(seen.best_job_id, "neither"),
    )  # fmt: skip


# One question for each series, by its index: a window over all of them would go through every point there is.
_NEWEST = (
    select(_R.c.headline_value)
    .select_from(_P.join(_R, and_(_R.c.job_id == _P.c.job_id, _R.c.stands)))
    .where(_P.c.series_id == bindparam("series"), _R.c.headline_value.is_not(None), _R.c.grade != "void")
    .order_by(_P.c.measured_at.desc(), _P.c.job_id.desc())
    .limit(_TREND)
)


def _trends(connection: Connection, job_ids: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Return by job the headlines of the newest results of its series, the oldest first."""
    placed = connection.execute(select(_P.c.job_id, _P.c.series_id).where(_P.c.job_id.in_(job_ids)))
    of_jobs: dict[str, str] = {row.job_id: row.series_id for row in placed}
    newest = {
        one: tuple(connection.execute(_NEWEST, {"series": one}).scalars().all()[::-1]) for one in set(of_jobs.values())
    }
    return {job_id: newest[series_id] for job_id, series_id in of_jobs.items()}


def _conditions(filters: Filters) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for word in filters.search.lower().split():
        places = (_E.c.id, _E.c.name, _L.c.labels, _L.c.submitted_by)
        found.append(or_(*(func.lower(place).contains(word, autoescape=True) for place in places)))
    if filters.label is not None:
        found.append(_L.c.labels.contains(f"\n{filters.label}\n", autoescape=True))
    plain = ((_E.c.state, filters.state), (_L.c.gates, filters.gates))
    found += [place == str(wanted) for place, wanted in plain if wanted is not None]
    if filters.kind is not None:
        found.append(_L.c.kind.in_(filters.kind.split(",")))
    if filters.grade is not None:
        found.append(_E.c.id.in_(select(_SEEN.c.id).where(_SEEN.c.worst_grade == filters.grade)))
    if filters.schedule is not None:
        found.append(schedules.is_of(filters.schedule))
    return found


def _key(sort: Sort) -> tuple[ColumnElement[Any], bool]:
    """Return what is sorted by, and whether the greatest comes first."""
    if sort in ("newest", "oldest"):
        return _E.c.created_at, sort == "newest"
    if sort == "name":
        return _E.c.name, False
    best = select(func.min(_R.c.headline_value)).where(_R.c.experiment_id == _E.c.id, _R.c.stands, _R.c.grade != "void")
    is_highest = sort == "highest"
    return func.coalesce(best.scalar_subquery(), -_BEYOND if is_highest else _BEYOND), is_highest


def _after(key: ColumnElement[Any], value: Any, last: str, *, descending: bool) -> ColumnElement[bool]:
    if descending:
        return or_(key < value, and_(key == value, _E.c.id < last))
    return or_(key > value, and_(key == value, _E.c.id > last))


def _cursor(row: Row[Any]) -> str:
    value = row.sorted_by.isoformat() if isinstance(row.sorted_by, datetime) else row.sorted_by
    return base64.urlsafe_b64encode(json.dumps([value, row.id]).encode()).decode()


def _read_cursor(cursor: str, *, is_instant: bool) -> tuple[Any, str]:
    try:
        value, last = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        value = datetime.fromisoformat(value) if is_instant else value
    except (ValueError, TypeError, binascii.Error) as exc:
        raise bad_cursor(cursor) from exc
    is_naive = isinstance(value, datetime) and value.tzinfo is None
    if is_naive or not isinstance(last, str) or not isinstance(value, str | float | int | datetime):
        raise bad_cursor(cursor)
    return value, last
