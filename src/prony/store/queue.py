"""Rows of the queue: add, lend, put back and end jobs in an open transaction.

Which of these is right is decided elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    false,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from prony.errors import NotFoundError
from prony.model.job import Job
from prony.model.queue import Attempt, JobState, Lot
from prony.model.result import Failure
from prony.store import lot_rows, tables
from prony.store.codecs import job_row

_Q, _L, _A = tables.queue, tables.lot, tables.attempt
_WAITING, _LEASED = JobState.WAITING.value, JobState.LEASED.value

# In


@dataclass(frozen=True)
class NewRows:
    """The rows of new jobs and of the lots that they belong to. To make thousands of them takes longer than to insert
    them, so they are made before a transaction, in which nobody else can write."""

    lots: Sequence[dict[str, Any]]
    jobs: Sequence[dict[str, Any]]
    queue: Sequence[dict[str, Any]]
    labels: Mapping[str, Mapping[str, str]]  # by job


def make_rows(jobs: Sequence[Job], places: Mapping[str, Lot], *, tries: int, now: datetime) -> NewRows:
    """Make the rows of new jobs with the lots that they belong to, by job id."""
    distinct = {lot.id: lot for lot in places.values()}
    return NewRows(
        lots=[lot_rows.row_of(lot) for lot in distinct.values()],
        jobs=[job_row(job) | {"position": i} for i, job in enumerate(jobs)],
        queue=[_queue_row(job, places[job.id], tries, now) for job in jobs],
        labels={job.id: job.labels for job in jobs},
    )


# What is the same for all stands in the statement: each value of each row costs time in the transaction.
_QUEUE = insert(_Q).values(
    state=literal_column(f"'{_WAITING}'"),
    attempt=literal_column("0"),
    beat=literal_column("0"),
    cancel_asked=false(),
    not_before=literal_column("0.0"),
    reason=literal_column("''"),
)


def add(connection: Connection, rows: NewRows) -> None:
    """Queue new jobs; in bulk, because a matrix may have thousands."""
    if not rows.jobs:
        return
    connection.execute(insert(_L), rows.lots)
    connection.execute(insert(tables.job), rows.jobs)
    connection.execute(_QUEUE, rows.queue)
    mark(connection, rows.labels)


_MARK = insert(tables.label).values(
    job_id=bindparam("job"),
    key=bindparam("name"),
    value=bindparam("text"),
    number=select(_Q.c.number).where(_Q.c.job_id == bindparam("job")).scalar_subquery(),
)


def mark(connection: Connection, labels: Mapping[str, Mapping[str, str]]) -> None:
    """Note the labels of jobs that are queued, so that they are found by them."""
    rows = [{"job": job_id, "name": key, "text": value} for job_id, own in labels.items() for key, value in own.items()]
    if rows:
        connection.execute(_MARK, rows)


def clear(connection: Connection, experiment_id: str) -> None:
    """Forget the jobs of an experiment that is about to get others."""
    connection.execute(delete(tables.job).where(tables.job.c.experiment_id == experiment_id))
    connection.execute(delete(_L).where(_L.c.experiment_id == experiment_id))


def _queue_row(job: Job, lot: Lot, tries: int, now: datetime) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "experiment_id": job.experiment_id,
        "lot_id": lot.id,
        "title": job.title,
        "tries_left": tries,
        "created_at": now,
        "labels": json.dumps(job.labels),
    }


# Lending

_NEXT = (
    select(_Q.c.number)
    .where(
        _Q.c.lot_id == bindparam("lot"),
        _Q.c.state == _WAITING,
        or_(_Q.c.not_before <= bindparam("due"), _Q.c.not_before > bindparam("absurd")),
        or_(_Q.c.avoid.is_(None), _Q.c.avoid != bindparam("agent"), bindparam("alone")),
    )
    .order_by(_Q.c.number)
    .limit(1)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
# One job, due or not: whoever it is lent to has it already.
_THIS = (
    select(_Q.c.number)
    .where(_Q.c.job_id == bindparam("job"), _Q.c.state == _WAITING)
    .with_for_update(skip_locked=True)
    .scalar_subquery()
)
_CLAIM, _CLAIM_THIS = (
    update(_Q)
    .where(_Q.c.number == which)
    .values(
        state=_LEASED,
        attempt=_Q.c.attempt + 1,
        agent_id=bindparam("agent"),
        device_key=bindparam("device"),
        lease_id=bindparam("lease"),
        leased_at=bindparam("now"),
        beat=_Q.c.beat + 1,
        reason="",
    )
    .returning(
        _Q.c.job_id,
        _Q.c.experiment_id,
        _Q.c.attempt,
        # The cast is for SQLite, which forgets what type a column has that is returned, and would then scan the table.
        select(tables.job.c.document)
        .where(tables.job.c.id == cast(_Q.c.job_id, Text))
        .scalar_subquery()
        .label("document"),
    )
    for which in (_NEXT, _THIS)
)
_LEND = insert(_A)
_DOCUMENT = select(tables.job.c.document).where(tables.job.c.id == bindparam("job"))


@dataclass(frozen=True)
class Borrower:
    """Who wants a job, for which device; `is_alone`: nobody else could run it, so earlier failures do not matter."""

    agent_id: str
    device_key: str | None  # None: several have it, each a part
    is_alone: bool = False


def claim(
    connection: Connection, lot_id: str, borrower: Borrower, *, lease_id: str, now: datetime, absurd: float
) -> Row[Any] | None:
    """Lend the lot's first job that is due, or return None where it has none.

    A pause that ends after `absurd` was made by a clock that was wrong.
    """
    asked = {"lot": lot_id, "due": now.timestamp(), "absurd": absurd, "alone": borrower.is_alone}
    return _claim(connection, _CLAIM, borrower, lease_id=lease_id, now=now, **asked)


def claim_this(
    connection: Connection, job_id: str, borrower: Borrower, *, lease_id: str, now: datetime
) -> Row[Any] | None:
    """Lend one job to whoever has it already; None where it does not wait."""
    return _claim(connection, _CLAIM_THIS, borrower, lease_id=lease_id, now=now, job=job_id)


def _claim(
    connection: Connection, claiming: Any, borrower: Borrower, *, lease_id: str, now: datetime, **asked: Any
) -> Row[Any] | None:
    lender = {"agent": borrower.agent_id, "device": borrower.device_key, "lease": lease_id, "now": now}
    found: Row[Any] | None = connection.execute(claiming, asked | lender).first()
    if found is not None:
        lent = {
            "job_id": found.job_id,
            "number": found.attempt,
            "lease_id": lease_id,
            "agent_id": borrower.agent_id,
            "state": _LEASED,
            "leased_at": now,
            "reason": "",
        }
        connection.execute(_LEND, lent)
    return found


_HAS_WAITING = select(exists().where(_Q.c.lot_id == bindparam("lot"), _Q.c.state == _WAITING))


def has_waiting(connection: Connection, lot_id: str) -> bool:
    """Say whether a job of the lot waits, due or not, for whomever."""
    return bool(connection.execute(_HAS_WAITING, {"lot": lot_id}).scalar_one())


def job_document(connection: Connection, job_id: str) -> str:
    """Return the job as it was stored."""
    return str(connection.execute(_DOCUMENT, {"job": job_id}).scalar_one())


# Back and out

_OF_LEASE = (
    select(
        _Q,
        _A.c.number.label("attempt_number"),
        _A.c.agent_id.label("attempt_agent"),
        _A.c.state.label("attempt_state"),
        _A.c.leased_at.label("attempt_leased_at"),
    )
    .join(_A, _A.c.job_id == _Q.c.job_id)
    .where(_A.c.lease_id == bindparam("lease"))
)
_OF_LEASE_LOCKED = _OF_LEASE.with_for_update(of=_Q)


def of_lease(connection: Connection, lease_id: str, *, locked: bool = False) -> Row[Any]:
    """Return the job of a lease, old or current, with that attempt; who means to change it has it `locked`."""
    found = connection.execute(_OF_LEASE_LOCKED if locked else _OF_LEASE, {"lease": lease_id}).first()
    if found is None:
        hint = "its experiment was deleted, or it belongs to another server"
        raise NotFoundError(f"no lease {lease_id!r} is known", hint=hint, code="no_lease")
    return found


_END_ATTEMPT = (
    update(_A)
    .where(_A.c.lease_id == bindparam("lease"))
    .values(state=bindparam("to"), ended_at=bindparam("at"), reason=bindparam("why"))
)


def end_attempt(connection: Connection, lease_id: str, state: str, *, at: datetime, reason: str) -> None:
    connection.execute(_END_ATTEMPT, {"lease": lease_id, "to": state, "at": at, "why": reason[:2000]})


_PUT_BACK = (
    update(_Q)
    .where(_Q.c.number == bindparam("which"))
    .values(
        state=_WAITING,
        lease_id=None,
        cancel_asked=False,
        ended_at=None,
        tries_left=bindparam("tries"),
        not_before=bindparam("due"),
        avoid=bindparam("shun"),
        reason=bindparam("why"),
        failure=None,
    )
)


def put_back(
    connection: Connection, number: int, *, tries_left: int, not_before: float, avoid: str | None, reason: str
) -> None:
    """Let a job wait again."""
    values = {"which": number, "tries": tries_left, "due": not_before, "shun": avoid, "why": reason[:2000]}
    connection.execute(_PUT_BACK, values)


_END = (
    update(_Q)
    .where(_Q.c.number == bindparam("which"))
    .values(
        state=bindparam("to"),
        lease_id=None,
        ended_at=bindparam("at"),
        reason=bindparam("why"),
        failure=bindparam("fault"),
    )
)


def end(
    connection: Connection,
    number: int,
    state: JobState,
    *,
    at: datetime,
    reason: str = "",
    failure: Failure | None = None,
) -> None:
    fault = failure.model_dump_json() if failure else None
    connection.execute(_END, {"which": number, "to": state.value, "at": at, "why": reason[:2000], "fault": fault})


def resume(connection: Connection, number: int, lease_id: str, borrower: Borrower, *, tries_left: int) -> None:
    """Lend a job that waits under a lease that was lost, to the one who had it and has it still."""
    lent = {"state": _LEASED, "agent_id": borrower.agent_id, "device_key": borrower.device_key, "lease_id": lease_id,
            "tries_left": tries_left, "not_before": 0.0, "avoid": None, "reason": ""}  # fmt: skip
    connection.execute(update(_Q).where(_Q.c.number == number).values(lent | {"beat": _Q.c.beat + 1}))
    again = {"state": _LEASED, "ended_at": None, "reason": ""}
    connection.execute(update(_A).where(_A.c.lease_id == lease_id).values(again))


def ask_to_cancel(connection: Connection, number: int) -> None:
    connection.execute(update(_Q).where(_Q.c.number == number).values(cancel_asked=True))


_IS_OPEN = select(exists().where(_Q.c.experiment_id == bindparam("experiment"), _Q.c.ended_at.is_(None)))


def is_job_open(connection: Connection, experiment_id: str) -> bool:
    """Say whether a job of the experiment has not ended yet."""
    return bool(connection.execute(_IS_OPEN, {"experiment": experiment_id}).scalar_one())


def lock_experiment(connection: Connection, experiment_id: str) -> Row[Any] | None:
    """Return the experiment when nobody else can change its state any more.

    Jobs are locked before their experiment, never after it: so no two wait for each other, and what is then read of the
    jobs is what others have committed.
    """
    table = tables.experiment
    query = select(table).where(table.c.id == experiment_id).with_for_update(key_share=True)
    return connection.execute(query).first()


_E = tables.experiment
_SET_STATE = (
    update(_E)
    .where(_E.c.id == bindparam("which"), _E.c.state.in_(bindparam("was", expanding=True)))
    .values(state=bindparam("to"), ended_at=bindparam("at"))
)


def set_state(
    connection: Connection, experiment_id: str, state: str, *, was: Sequence[str], ended_at: datetime | None = None
) -> bool:
    """Move an experiment on if it is in one of the states that it was thought to be in."""
    values = {"which": experiment_id, "was": was, "to": state, "at": ended_at}
    return connection.execute(_SET_STATE, values).rowcount == 1


# Looking


def by_job(connection: Connection, job_id: str, *, locked: bool = False) -> Row[Any]:
    query = select(_Q, _L.c.priority).join(_L, _L.c.id == _Q.c.lot_id).where(_Q.c.job_id == job_id)
    found = connection.execute(query.with_for_update(of=_Q) if locked else query).first()
    if found is None:
        submits = "`prony rerun EXPERIMENT --server URL` submits it"
        hint = f"`prony jobs` lists them; what was run without a server is not queued: {submits}"
        raise NotFoundError(f"no job {job_id!r} is queued", hint=hint)
    return found


def find_job(connection: Connection, job_id: str) -> Row[Any] | None:
    """Return a job of the queue, or None where it is not there."""
    try:
        return by_job(connection, job_id)
    except NotFoundError:
        return None


@dataclass(frozen=True)
class JobFilter:
    """Which jobs to list: those for which all that is given holds."""

    state: JobState | None = None
    experiment: str | None = None
    agent: str | None = None
    label: tuple[str, str] | None = None
    among: Collection[JobState] | None = None
    is_wanted: bool = False  # nobody has asked to cancel it


def page(
    connection: Connection,
    wanted: JobFilter,
    *,
    limit: int | None = None,
    before: int | None = None,
    locked: bool = False,
) -> list[Row[Any]]:
    """Return the newest jobs first, those before a number where one is given."""
    query = select(_Q, _L.c.priority).join(_L, _L.c.id == _Q.c.lot_id).where(_Q.c.part_of.is_(None))
    query = query if wanted.state is None else query.where(_Q.c.state == wanted.state.value)
    query = query if wanted.among is None else query.where(_Q.c.state.in_([one.value for one in wanted.among]))
    query = query if not wanted.is_wanted else query.where(_Q.c.cancel_asked.is_(False))
    query = query if wanted.experiment is None else query.where(_Q.c.experiment_id == wanted.experiment)
    query = query if wanted.agent is None else query.where(_Q.c.agent_id == wanted.agent)
    number: ColumnElement[int] = _Q.c.number
    if wanted.label is not None:
        labels, (key, value) = tables.label, wanted.label
        number = labels.c.number  # said of this table, so that its index gives the order
        query = query.join(labels, number == _Q.c.number).where(labels.c.key == key, labels.c.value == value)
    query = query if before is None else query.where(number < before)
    query = query.with_for_update(of=_Q) if locked else query
    return list(connection.execute(query.order_by(number.desc()).limit(limit)))


def attempts(connection: Connection, job_id: str) -> tuple[Attempt, ...]:
    rows = connection.execute(select(_A).where(_A.c.job_id == job_id).order_by(_A.c.number))
    return tuple(
        Attempt(
            number=row.number,
            agent_id=row.agent_id,
            state=row.state,
            leased_at=row.leased_at,
            ended_at=row.ended_at,
            reason=row.reason,
        )
        for row in rows
    )


def counts_by_state(connection: Connection) -> dict[JobState, int]:
    """Return how many jobs there are in which state, of all experiments."""
    query = select(_Q.c.state, func.count()).where(_Q.c.part_of.is_(None)).group_by(_Q.c.state)
    return {JobState(state): count for state, count in connection.execute(query)}


def count_ended(connection: Connection, since: datetime) -> int:
    """Return how many jobs have ended since then."""
    return connection.execute(select(func.count()).where(_Q.c.ended_at > since)).scalar_one()


def first_at(connection: Connection, state: JobState) -> datetime | None:
    """Return since when the first of the jobs in a state waits, or is lent."""
    column = _Q.c.leased_at if state is JobState.LEASED else _Q.c.created_at
    found: datetime | None = connection.execute(
        select(column).where(_Q.c.state == state.value).order_by(_Q.c.number).limit(1)
    ).scalar()
    return found


def is_done_elsewhere(connection: Connection, experiment_id: str, lot_id: str, agent_id: str) -> bool:
    """Did other agents do jobs of the same lot, and this one none?"""
    query = select(_A.c.job_id).join(_Q, _Q.c.job_id == _A.c.job_id).limit(1)
    # The experiment is named too because there is an index for it, and none for the lots of jobs that have ended.
    query = query.where(_Q.c.experiment_id == experiment_id, _Q.c.lot_id == lot_id, _A.c.state == "complete")
    here, elsewhere = query.where(_A.c.agent_id == agent_id), query.where(_A.c.agent_id != agent_id)
    return connection.execute(here).first() is None and connection.execute(elsewhere).first() is not None


def counts(connection: Connection, experiment_ids: Sequence[str]) -> dict[str, dict[JobState, int]]:
    """Return for each experiment how many of its jobs are in which state."""
    found: dict[str, dict[JobState, int]] = {one: {} for one in experiment_ids}
    query = select(_Q.c.experiment_id, _Q.c.state, func.count()).where(
        _Q.c.experiment_id.in_(experiment_ids), _Q.c.part_of.is_(None)
    )
    for experiment_id, state, count in connection.execute(query.group_by(_Q.c.experiment_id, _Q.c.state)):
        found[experiment_id][JobState(state)] = count
    return found
