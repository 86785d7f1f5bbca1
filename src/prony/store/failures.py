"""Rows of attempts that failed: results without a whole one, and leases that were lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, select

from prony.model.failures import JobFailure
from prony.model.result import Result, ResultState
from prony.store import tables

_R, _A, _E, _J, _G = tables.result, tables.attempt, tables.experiment, tables.job, tables.agent
LEASE_LOST = "lease_lost"
_HINT = "see the agent's log, and whether it reaches the server"


def list_failures(connection: Connection, *, since: datetime, most: int) -> list[JobFailure]:
    """Return the newest failures since then, at most so many of each sort; what somebody cancelled is none."""
    # The server's own clock counts where there is a server: that of a device may be wrong.
    ended_at = func.coalesce(_A.c.ended_at, _R.c.ended_at)
    of_attempt = and_(_A.c.job_id == _R.c.job_id, _A.c.number == _R.c.attempt)
    results = (
        select(
            _R.c.job_id,
            _R.c.experiment_id,
            ended_at.label("ended_at"),
            _R.c.document,
            _E.c.name,
            _G.c.name.label("agent"),
        )
        .select_from(_R.join(_E, _E.c.id == _R.c.experiment_id).outerjoin(_A, of_attempt))
        .outerjoin(_G, _G.c.id == _A.c.agent_id)
        .where(_R.c.state != ResultState.COMPLETE.value, ended_at >= since)
        .order_by(ended_at.desc(), _R.c.job_id)
        .limit(most)
    )
    lost = (
        select(_A.c.job_id, _J.c.experiment_id, _A.c.ended_at, _A.c.reason, _E.c.name, _G.c.name.label("agent"))
        .select_from(_A.join(_J, _J.c.id == _A.c.job_id).join(_E, _E.c.id == _J.c.experiment_id))
        .outerjoin(_G, _G.c.id == _A.c.agent_id)
        .where(_A.c.state == "lost", _A.c.ended_at >= since)
        .order_by(_A.c.ended_at.desc(), _A.c.job_id)
        .limit(most)
    )
    found = [_of_result(row) for row in _rows(connection, results)]
    return [one for one in found if one is not None] + [_of_lost(row) for row in _rows(connection, lost)]


def _rows(connection: Connection, query: Select[Any]) -> list[Row[Any]]:
    return list(connection.execute(query))


def _of_result(row: Row[Any]) -> JobFailure | None:
    failure = Result.read_json(row.document).failure
    if failure is None or failure.code == "cancelled":
        return None
    return _failure(row, failure.code, failure.message, failure.hint, failure.whose)


def _of_lost(row: Row[Any]) -> JobFailure:
    return _failure(row, LEASE_LOST, row.reason, _HINT, "prony")


def _failure(row: Row[Any], code: str, message: str, hint: str, whose: str) -> JobFailure:
    return JobFailure(
        job_id=row.job_id,
        experiment_id=row.experiment_id,
        recipe=row.name,
        agent=row.agent or "",
        at=row.ended_at,
        code=code,
        message=message,
        hint=hint,
        whose=whose,
    )
