"""Rows of experiments: add, change, list and show them, and find the folders of scripts that are still in use.

A folder of scripts is in use while an experiment or a schedule of the database names it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, or_, select, update

from prony.errors import ConflictError, NotFoundError
from prony.model.experiment import Experiment, ExperimentState
from prony.model.queue import ExperimentView, Page
from prony.store import job_view, lot_rows, queue, result_rows, schedules, tables
from prony.store.codecs import experiment_of, experiment_row, listed_row
from prony.store.cursors import read_time_cursor, write_time_cursor
from prony.store.tables import listed


def row_of(connection: Connection, experiment_id: str) -> Row[Any]:
    table = tables.experiment
    return require(connection.execute(select(table).where(table.c.id == experiment_id)).first(), experiment_id)


def require(found: Row[Any] | None, experiment_id: str) -> Row[Any]:
    if found is None:
        raise NotFoundError(f"no experiment {experiment_id!r} is stored", hint="`prony list` shows what there is")
    return found


def view_of(connection: Connection, experiment_id: str) -> ExperimentView:
    return _views(connection, [row_of(connection, experiment_id)])[0]


def _views(connection: Connection, rows: Sequence[Row[Any]]) -> list[ExperimentView]:
    ids = [row.id for row in rows]
    counts = job_view.counts_of(connection, ids)
    priorities = lot_rows.priorities(connection, ids)
    shown = []
    for row in rows:
        found = experiment_of(row)
        shown.append(
            ExperimentView(
                experiment=found,
                counts=counts[row.id],
                priority=priorities.get(row.id, 0),
                submitted_by=found.submitted_by,
            )
        )
    return shown


def page(
    connection: Connection,
    *,
    state: ExperimentState | None,
    name: str | None,
    schedule: str | None,
    limit: int,
    cursor: str | None,
) -> Page[ExperimentView]:
    """Return the newest experiments first, those after a cursor where one is given."""
    table = tables.experiment
    query = select(table).order_by(table.c.created_at.desc(), table.c.id.desc()).limit(limit + 1)
    query = query if state is None else query.where(table.c.state == state.value)
    query = query if name is None else query.where(table.c.name == name)
    query = query if schedule is None else query.where(schedules.is_of(schedule))
    if cursor is not None:
        at, last = read_time_cursor(cursor)
        query = query.where(or_(table.c.created_at < at, and_(table.c.created_at == at, table.c.id < last)))
    rows = connection.execute(query).all()
    shown = rows[:limit]
    following = write_time_cursor(shown[-1].created_at, shown[-1].id) if len(rows) > limit else None
    return Page(items=tuple(_views(connection, shown)), next=following)


def name_of(connection: Connection, experiment_id: str) -> str:
    """Return the name of an experiment that is there."""
    table = tables.experiment
    return str(connection.execute(select(table.c.name).where(table.c.id == experiment_id)).scalar_one())


def names(connection: Connection, experiment_ids: Collection[str]) -> dict[str, str]:
    """Return the names of those that are there, by id."""
    table = tables.experiment
    rows = connection.execute(select(table.c.id, table.c.name).where(table.c.id.in_(experiment_ids)))
    return {row.id: row.name for row in rows}


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(tables.experiment)).scalar_one()


# Changing


def add_submitted(connection: Connection, experiment: Experiment) -> None:
    """Add an experiment that a server runs, and what it is listed by."""
    connection.execute(insert(tables.experiment).values(experiment_row(experiment) | {"owner": None}))
    connection.execute(insert(listed).values(listed_row(experiment)))
    if experiment.schedule_id is not None:
        of = {"experiment_id": experiment.id, "schedule_id": experiment.schedule_id}
        connection.execute(insert(tables.scheduled).values(of))


def replace(connection: Connection, experiment: Experiment) -> None:
    """Keep an experiment as it is now, in the place of what it was."""
    table = tables.experiment
    connection.execute(update(table).where(table.c.id == experiment.id).values(experiment_row(experiment)))
    connection.execute(update(listed).where(listed.c.experiment_id == experiment.id).values(listed_row(experiment)))


def claim_key(connection: Connection, row: dict[str, Any]) -> str | None:
    """Note what is made under a key, or return what was made under it before."""
    table = tables.creation
    if result_rows.insert_new(connection, table, row):
        return None
    found = connection.execute(select(table).where(table.c.who == row["who"], table.c.key == row["key"])).one()
    if found.digest != row["digest"]:
        raise ConflictError(
            f"the key {row['key']!r} was used for another submission",
            hint="use a fresh key for each",
            code="key_reused",
        )
    return str(found.experiment_id)


def relabel(connection: Connection, experiment_id: str, labels: Mapping[str, str]) -> None:
    """Give every job these labels, and no others; in bulk, because a matrix may have thousands."""
    job, mark, waiting = tables.job, tables.label, tables.queue
    found = result_rows.jobs(connection, experiment_id)
    changed = [
        {"which": one.id, "text": one.model_copy(update={"labels": dict(labels)}).model_dump_json()} for one in found
    ]
    if changed:
        changing = update(job).where(job.c.id == bindparam("which")).values(document=bindparam("text"))
        connection.execute(changing, changed)
    of_these = select(job.c.id).where(job.c.experiment_id == experiment_id)
    connection.execute(delete(mark).where(mark.c.job_id.in_(of_these)))
    queue.mark(connection, {one.id: labels for one in found})
    connection.execute(
        update(waiting).where(waiting.c.experiment_id == experiment_id).values(labels=json.dumps(dict(labels)))
    )


def named_scripts(connection: Connection, sha256s: Iterable[str]) -> set[str]:
    """Return those that a kept experiment or a schedule names: it may be run again."""
    return {sha256 for sha256 in sha256s if _is_named(connection, sha256)}


def _is_named(connection: Connection, sha256: str) -> bool:
    pattern = f"%sha256:{sha256}%"
    return any(
        connection.execute(select(table.c.id).where(column.like(pattern)).limit(1)).first() is not None
        for table, column in (
            (tables.experiment, tables.experiment.c.document),
            (tables.schedule, tables.schedule.c.submission),
        )
    )
