"""Rows of confirming batches: add, end and read them in an open transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, func, select, update

from prony.model.estimate import Summary
from prony.model.history import Change, ChangeState
from prony.model.job import Job
from prony.model.result import Failure, ResultState
from prony.store import history_tables, result_rows, tables

_T, _C = history_tables.confirmation, history_tables.change
# A batch that ended so is followed by another; after any other end nothing more is run.
GOES_ON = ("open", "failed")


@dataclass(frozen=True)
class Batch:
    """`way`: duet, both versions in turn; again, the same job some times; once, the same; none, it cannot be run."""

    change_id: str
    number: int
    way: str
    experiment_id: str | None
    runs: int
    begun_at: datetime
    outcome: str | None = None
    reason: str = ""


def add(connection: Connection, batch: Batch) -> bool:
    """Keep a new batch; False where somebody else made the same one."""
    return result_rows.insert_new(connection, _T, dict(vars(batch)))


def end(connection: Connection, batch: Batch, outcome: str, reason: str) -> bool:
    """Note how a batch ended; False where somebody else did."""
    of = and_(_T.c.change_id == batch.change_id, _T.c.number == batch.number, _T.c.outcome.is_(None))
    return bool(connection.execute(update(_T).where(of).values(outcome=outcome, reason=reason)).rowcount)


def of_change(connection: Connection, change_id: str) -> tuple[Batch, ...]:
    query = select(_T).where(_T.c.change_id == change_id).order_by(_T.c.number)
    return tuple(_batch(row) for row in connection.execute(query))


# Made once, as they are asked every second.
_RUNNING = (
    select(_T, tables.experiment.c.state.label("stands"))
    .outerjoin(tables.experiment, tables.experiment.c.id == _T.c.experiment_id)
    .where(_T.c.outcome.is_(None))
    .order_by(_T.c.begun_at)
)
_WANTING = (
    select(_C.c.document)
    .where(
        _C.c.kind == "regression",
        _C.c.id.not_in(select(_T.c.change_id).where(_T.c.outcome.is_(None) | _T.c.outcome.not_in(GOES_ON))),
        _C.c.state.in_([ChangeState.SUSPECT.value, ChangeState.FOUND.value]),
    )
    .order_by(_C.c.noticed_at, _C.c.id)
    .limit(bindparam("most"))
)


def running(connection: Connection) -> tuple[tuple[Batch, str | None], ...]:
    """Return every batch that has no outcome, with the state of its experiment; None where that was deleted."""
    return tuple((_batch(row), row.stands) for row in connection.execute(_RUNNING).all())


def wanting(connection: Connection, limit: int, without: Sequence[str] = ()) -> tuple[Change, ...]:
    """Return regressions that nothing has decided and for which a batch is to be run, the oldest first."""
    query = _WANTING.where(_C.c.id.not_in(without)) if without else _WANTING
    texts = connection.execute(query, {"most": limit}).scalars()
    return tuple(Change.read_json(text) for text in texts)


def lock_since(connection: Connection, at: datetime) -> None:
    """Wait for those who add some at this moment, so that what is counted next is all; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(_T.c.number).where(_T.c.begun_at > at).with_for_update())


def runs_since(connection: Connection, at: datetime) -> int:
    """Return how many runs were made for this."""
    return int(connection.execute(select(func.coalesce(func.sum(_T.c.runs), 0)).where(_T.c.begun_at > at)).scalar_one())


def is_confirming(connection: Connection, experiment_id: str) -> bool:
    query = select(_T.c.number).where(_T.c.experiment_id == experiment_id)
    return connection.execute(query).first() is not None


def cannot_be_run(connection: Connection, change_id: str) -> bool:
    """Was it found that runs will not decide this change?"""
    return _has_ended(connection, change_id, ("impossible", "given up", "unsettled"))


def has_machine_changed(connection: Connection, change_id: str) -> bool:
    """Did the canary beside the runs say that the machine changed too?"""
    return _has_ended(connection, change_id, ("machine",))


def _has_ended(connection: Connection, change_id: str, outcomes: Sequence[str]) -> bool:
    query = select(_T.c.number).where(_T.c.change_id == change_id, _T.c.outcome.in_(outcomes))
    return connection.execute(query).first() is not None


def agents_of(connection: Connection, job_ids: Sequence[str]) -> dict[str, str]:
    """Return who brought the result that stands of each job; what was imported nobody brought."""
    attempt, result = tables.attempt, tables.result
    both = and_(attempt.c.job_id == result.c.job_id, attempt.c.number == result.c.attempt)
    query = select(attempt.c.job_id, attempt.c.agent_id).join(result, both).where(result.c.stands)
    rows = connection.execute(query.where(attempt.c.job_id.in_(job_ids)))
    return {row.job_id: row.agent_id for row in rows}


def find_measured(connection: Connection, experiment_id: str) -> list[tuple[Job, Summary]]:
    """Return the jobs of an experiment that have a whole result, with what it says."""
    job, result = tables.job, tables.result
    query = select(job.c.document, result.c.summary).join(result, result.c.job_id == job.c.id)
    query = query.where(job.c.experiment_id == experiment_id, result.c.stands)
    rows = connection.execute(query.where(result.c.state == ResultState.COMPLETE.value).order_by(job.c.position))
    return [(Job.read_json(text), Summary.read_json(summary)) for text, summary in rows]


def first_failure(connection: Connection, experiment_id: str) -> str:
    """Return the message of the first job of an experiment that failed; empty where none did."""
    waiting = tables.queue
    query = select(waiting.c.failure).where(waiting.c.experiment_id == experiment_id, waiting.c.failure.is_not(None))
    text = connection.execute(query.order_by(waiting.c.number).limit(1)).scalar()
    return "" if text is None else Failure.read_json(text).message


def _batch(row: Row[Any]) -> Batch:
    return Batch(**{name: row._mapping[name] for name in Batch.__dataclass_fields__})
