"""Read the rows of campaigns in an open transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, exists, func, select

from prony.errors import NotFoundError
from prony.model.job import Job
from prony.store import tables

# No other experiment has an id like this: people do not choose them.
PREFIX = "campaign-"
_TOGETHER = 500
_E, _J, _Q, _L, _R, _A = tables.experiment, tables.job, tables.queue, tables.lot, tables.result, tables.attempt


def every(connection: Connection) -> Sequence[Row[Any]]:
    """Return the campaigns, the oldest first."""
    query = select(_E).where(_E.c.id.startswith(PREFIX, autoescape=True), _is_queued())
    return connection.execute(query.order_by(_E.c.created_at, _E.c.id)).all()


def one(connection: Connection, campaign_id: str) -> Row[Any] | None:
    if not campaign_id.startswith(PREFIX):
        return None
    return connection.execute(select(_E).where(_E.c.id == campaign_id, _is_queued())).first()


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
    select(_Q, _L.c.agent_id.label("pinned"), _L.c.demand, _J.c.document)
    .join(_L, _L.c.id == _Q.c.lot_id)
    .join(_J, _J.c.id == _Q.c.job_id)
)
_WITH_RESULTS = _JOBS.add_columns(_R.c.document.label("result_document"), _R.c.ended_at.label("result_at")).outerjoin(
    _R, and_(_R.c.job_id == _Q.c.job_id, _R.c.stands)
)
# Made once: every job asks them, and to put a statement together takes longer than the database does.
_ONE_JOB = _WITH_RESULTS.where(_Q.c.job_id == bindparam("job"), _Q.c.experiment_id.startswith(PREFIX, autoescape=True))
_ATTEMPTS = (
    select(_A, _R.c.document.label("result_document"))
    .outerjoin(_R, and_(_R.c.job_id == _A.c.job_id, _R.c.attempt == _A.c.number))
    .where(_A.c.job_id == bindparam("job"))
    .order_by(_A.c.number)
)
_OPEN: Select[Any] = (
    select(_Q, _L.c.agent_id.label("pinned"), _L.c.demand)
    .join(_L, _L.c.id == _Q.c.lot_id)
    .where(_Q.c.ended_at.is_(None), _Q.c.experiment_id.startswith(PREFIX, autoescape=True))
    .order_by(_Q.c.number)
)
_IN_ORDER = (_J.c.experiment_id, _J.c.position)


def jobs(connection: Connection, campaign_id: str | None = None) -> Sequence[Row[Any]]:
    """Return the jobs of a campaign, or of all, in their order, each with its place and its document."""
    return connection.execute(_JOBS.where(_of_campaign(campaign_id)).order_by(*_IN_ORDER)).all()


def results(connection: Connection, campaign_id: str | None = None) -> Sequence[Row[Any]]:
    """The same of those that have ended, with the result that stands."""
    query = _WITH_RESULTS.where(_of_campaign(campaign_id), _Q.c.ended_at.is_not(None))
    return connection.execute(query.order_by(*_IN_ORDER)).all()


def job(connection: Connection, job_id: str) -> Row[Any]:
    """Return one with the result that stands."""
    found = connection.execute(_ONE_JOB, {"job": job_id}).first()
    if found is None:
        raise NotFoundError("Job not found")
    return found


def open_jobs(
    connection: Connection, campaign_id: str | None = None, *, among: Sequence[str] | None = None
) -> Sequence[Row[Any]]:
    """Return the jobs that have not ended, of one campaign or of all, in the order of their arrival; no documents,
    which are long."""
    query = _OPEN if campaign_id is None else _OPEN.where(_of_campaign(campaign_id))
    query = query if among is None else query.where(_Q.c.job_id.in_(among))
    return connection.execute(query).all()


def limits_s(connection: Connection, job_ids: Sequence[str]) -> dict[str, float]:
    """Return how long each of these jobs may take."""
    found: dict[str, float] = {}
    for part in _parts(job_ids):
        rows = connection.execute(select(_J.c.id, _J.c.document).where(_J.c.id.in_(part)))
        found |= {row.id: Job.read_json(row.document).limits.timeout / 10**9 for row in rows}
    return found


def counts(connection: Connection) -> dict[str, int]:
    """Return how many jobs of all campaigns are in which state."""
    query = select(_Q.c.state, func.count()).where(_of_campaign()).group_by(_Q.c.state)
    return {row[0]: int(row[1]) for row in connection.execute(query)}


def states(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """Return in which state each of these jobs is that there is."""
    found: dict[str, str] = {}
    for part in _parts(job_ids):
        rows = connection.execute(select(_Q.c.job_id, _Q.c.state).where(_Q.c.job_id.in_(part)))
        found |= {row.job_id: row.state for row in rows}
    return found


def attempts(connection: Connection, job_id: str) -> Sequence[Row[Any]]:
    """Return the leases of a job, each with the result that it brought, if it did."""
    return connection.execute(_ATTEMPTS, {"job": job_id}).all()


def _is_queued() -> Any:
    """Was it handed out here, and not brought in by an import?"""
    return exists().where(_Q.c.experiment_id == _E.c.id)


def _of_campaign(campaign_id: str | None = None) -> Any:
    if campaign_id is not None:
        return _Q.c.experiment_id == campaign_id
    return _Q.c.experiment_id.startswith(PREFIX, autoescape=True)


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Databases limit how many values a statement may have."""
    for begin in range(0, len(ids), _TOGETHER):
        yield ids[begin : begin + _TOGETHER]
