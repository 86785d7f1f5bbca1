"""Rows of experiments in, what is shown of them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from prony.errors import NotFoundError
from prony.model.experiment import ExperimentState
from prony.model.queue import ExperimentView
from prony.store import lot_rows, tables, unqueued
from prony.store.codecs import experiment_of

OVER = frozenset(ExperimentState) - {ExperimentState.PENDING, ExperimentState.RUNNING}


def row_of(connection: Connection, experiment_id: str) -> Row[Any]:
    table = tables.experiment
    return require(connection.execute(select(table).where(table.c.id == experiment_id)).first(), experiment_id)


def require(found: Row[Any] | None, experiment_id: str) -> Row[Any]:
    if found is None:
        raise NotFoundError(f"no experiment {experiment_id!r} is stored", hint="`prony list` shows what there is")
    return found


def view_of(connection: Connection, experiment_id: str) -> ExperimentView:
    return views(connection, [row_of(connection, experiment_id)])[0]


def views(connection: Connection, rows: Sequence[Row[Any]]) -> list[ExperimentView]:
    ids = [row.id for row in rows]
    counts = unqueued.counts_of(connection, ids)
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
