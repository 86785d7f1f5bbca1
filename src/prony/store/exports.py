"""Rows of exports: which ended experiments a destination lacks, and what came of sending them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, or_, select, update

from prony.model.states import OVER
from prony.store import result_rows, tables

_E, _X = tables.experiment, tables.exported


def find_unsent(
    connection: Connection, destination: str, *, now_s: float, most: int
) -> list[tuple[str, datetime | None, int]]:
    """Return id, end and failed tries of experiments that are due, those that ended first before the others.

    One that was run again after it was sent has another end, and is due again.
    """
    joined = _E.outerjoin(_X, and_(_X.c.experiment_id == _E.c.id, _X.c.destination == destination))
    is_unsent = or_(_X.c.ended_at.is_(None), _X.c.ended_at != _E.c.ended_at)
    is_due = or_(_X.c.not_before.is_(None), _X.c.not_before <= now_s)
    query = (
        select(_E.c.id, _E.c.ended_at, _X.c.tries)
        .select_from(joined)
        .where(_E.c.state.in_([state.value for state in OVER]), _E.c.ended_at.is_not(None), is_unsent, is_due)
        .order_by(_E.c.ended_at, _E.c.id)
        .limit(most)
    )
    return [(row.id, row.ended_at, row.tries or 0) for row in connection.execute(query)]


def keep_sent(connection: Connection, experiment_id: str, destination: str, ended_at: datetime | None) -> None:
    """Note that an experiment with this end is there."""
    _keep(connection, experiment_id, destination, ended_at=ended_at, tries=0, not_before=0.0, error="")


def keep_failure(
    connection: Connection, experiment_id: str, destination: str, *, tries: int, not_before: float, error: str
) -> None:
    """Note that it was not taken, and when it is tried again, in seconds of the epoch."""
    _keep(connection, experiment_id, destination, ended_at=None, tries=tries, not_before=not_before, error=error)


def _keep(connection: Connection, experiment_id: str, destination: str, **values: Any) -> None:
    if connection.execute(select(_E.c.id).where(_E.c.id == experiment_id)).first() is None:
        return  # deleted meanwhile
    key = {"experiment_id": experiment_id, "destination": destination}
    if not result_rows.insert_new(connection, _X, key | values):
        of = and_(_X.c.experiment_id == experiment_id, _X.c.destination == destination)
        connection.execute(update(_X).where(of).values(**values))
