"""An open transaction in; the rows of experiments that were made as campaigns out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, select

from prony.errors import NotFoundError
from prony.model.queue import JobState
from prony.store import tables

# No other experiment has an id like this: people do not choose them.
PREFIX = "campaign-"
_E, _J, _Q, _L, _R, _A = tables.experiment, tables.job, tables.queue, tables.lot, tables.result, tables.attempt


def every(connection: Connection) -> Sequence[Row[Any]]:
    """Return the campaigns, the oldest first."""
    query = select(_E).where(_E.c.id.startswith(PREFIX, autoescape=True), _E.c.job_count > 0)
    return connection.execute(query.order_by(_E.c.created_at, _E.c.id)).all()


def one(connection: Connection, campaign_id: str) -> Row[Any] | None:
    if not campaign_id.startswith(PREFIX):
        return None
    return connection.execute(select(_E).where(_E.c.id == campaign_id)).first()


def require(connection: Connection, campaign_id: str) -> Row[Any]:
    found = one(connection, campaign_id)
    if found is None:
        raise NotFoundError("Campaign not found")
    return found


def is_taken(connection: Connection, campaign_id: str) -> bool:
    """Is there one of this id, or was there one whose folder may still be there?"""
    known = select(_E.c.id).where(_E.c.id == campaign_id)
    leaving = select(tables.deletion.c.experiment_id).where(tables.deletion.c.experiment_id == campaign_id)
    return connection.execute(known.union(leaving)).first() is not None


_JOBS: Select[Any] = (
    select(
        _Q,
        _L.c.agent_id.label("pinned"),
        _L.c.demand,
        _J.c.document,
        _R.c.document.label("result_document"),
        _R.c.ended_at.label("result_at"),
    )
    .join(_L, _L.c.id == _Q.c.lot_id)
    .join(_J, _J.c.id == _Q.c.job_id)
    .outerjoin(_R, and_(_R.c.job_id == _Q.c.job_id, _R.c.stands))
)


def jobs(connection: Connection, campaign_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Return the jobs of campaigns in their order, each with its place, its document and the result that stands."""
    query = _JOBS.where(_Q.c.experiment_id.in_(campaign_ids), _Q.c.part_of.is_(None))
    return connection.execute(query.order_by(_J.c.experiment_id, _J.c.position)).all()


def job(connection: Connection, job_id: str) -> Row[Any]:
    found = connection.execute(_JOBS.where(_Q.c.job_id == job_id, _of_campaign())).first()
    if found is None:
        raise NotFoundError("Job not found")
    return found


def open_jobs(connection: Connection) -> Sequence[Row[Any]]:
    """Return the jobs of all campaigns that have not ended, in the order of their arrival."""
    waiting = _Q.c.state.in_((JobState.WAITING.value, JobState.LEASED.value))
    columns: Select[Any] = select(_Q, _L.c.agent_id.label("pinned"), _L.c.demand, _J.c.document)
    query = columns.join(_L, _L.c.id == _Q.c.lot_id).join(_J, _J.c.id == _Q.c.job_id)
    query = query.where(waiting, _Q.c.ended_at.is_(None), _of_campaign())
    return connection.execute(query.order_by(_Q.c.number)).all()


def states(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """Return in which state each of these jobs is that there is."""
    query = select(_Q.c.job_id, _Q.c.state).where(_Q.c.job_id.in_(job_ids))
    return {row.job_id: row.state for row in connection.execute(query)}


def attempts(connection: Connection, job_id: str) -> Sequence[Row[Any]]:
    """Return the leases of a job, each with the result that it brought, if it did."""
    query = (
        select(_A, _R.c.document.label("result_document"))
        .outerjoin(_R, and_(_R.c.job_id == _A.c.job_id, _R.c.attempt == _A.c.number))
        .where(_A.c.job_id == job_id)
    )
    return connection.execute(query.order_by(_A.c.number)).all()


def _of_campaign() -> Any:
    return _Q.c.experiment_id.startswith(PREFIX, autoescape=True)
