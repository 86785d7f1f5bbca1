"""Rows of the parts of a gang job: lend, find and remove them in an open transaction.

A part is a row of the queue for as long as its job is lent, so that leases, heartbeats and "one job a device" are the
same for it as for any job. The job itself has a row without a device.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, exists, insert, select

from prony.model.gang import Part
from prony.model.job import Job
from prony.model.queue import JobState
from prony.store import tables
from prony.store.codecs import job_row

_Q, _A, _J = tables.queue, tables.attempt, tables.job
_LEASED = JobState.LEASED.value


@dataclass(frozen=True)
class Lent:
    """One member: who it is, on which device, and the lease that it gets."""

    agent_id: str
    device_key: str
    lease_id: str


def part_of(job: Job, attempt: int, index: int, of: int) -> Job:
    """Return what one member runs."""
    return job.model_copy(update={"id": f"{job.id}.{attempt}.{index}", "part": Part(index=index, of=of)})


def lend(
    connection: Connection, job: Job, lot_id: str, attempt: int, members: Sequence[Lent], *, now: datetime
) -> list[Job]:
    """Lend a job that was claimed: a part to each member."""
    shares = [part_of(job, attempt, index, len(members)) for index in range(len(members))]
    connection.execute(insert(_J), [job_row(one) | {"position": 10**6 + place} for place, one in enumerate(shares)])
    rows = [_row(one, lot_id, member, now) for one, member in zip(shares, members, strict=True)]
    connection.execute(insert(_Q), [row | {"part_of": job.id} for row in rows])
    lent = [
        {"job_id": row["job_id"], "number": 1, "lease_id": row["lease_id"], "agent_id": row["agent_id"],
         "state": _LEASED, "leased_at": now, "reason": ""}
        for row in rows
    ]  # fmt: skip
    connection.execute(insert(_A), lent)
    return shares


def _row(job: Job, lot_id: str, member: Lent, now: datetime) -> dict[str, Any]:
    part = job.part
    index, of = (part.index, part.of) if part is not None else (0, 1)
    return {
        "job_id": job.id, "experiment_id": job.experiment_id, "lot_id": lot_id,
        "title": f"{job.title}, part {index + 1} of {of}", "state": _LEASED, "attempt": 1, "tries_left": 1,
        "agent_id": member.agent_id, "device_key": member.device_key, "lease_id": member.lease_id, "beat": 1,
        "cancel_asked": False, "created_at": now, "leased_at": now, "not_before": 0.0, "reason": "",
        "labels": json.dumps(job.labels), "part": index,
    }  # fmt: skip


_OF: Select[Any] = (
    select(_Q, _A.c.state.label("attempt_state"), _A.c.reason.label("attempt_reason"))
    .join(_A, _A.c.job_id == _Q.c.job_id)
    .where(_Q.c.part_of == bindparam("whole"))
    .order_by(_Q.c.part)
)
_OF_LOCKED = _OF.with_for_update(of=_Q)


def of_job(connection: Connection, job_id: str, *, locked: bool = False) -> Sequence[Row[Any]]:
    """Return the parts of a job that is lent, in order, each with how its lease ended."""
    return connection.execute(_OF_LOCKED if locked else _OF, {"whole": job_id}).all()


def remove(connection: Connection, job_id: str) -> None:
    """Forget the parts of a job that is lent no longer."""
    connection.execute(delete(_J).where(_J.c.id.in_(select(_Q.c.job_id).where(_Q.c.part_of == job_id))))


def find_gathered(connection: Connection) -> list[str]:
    """Return the jobs of which every part has ended, and which still wait to be put together."""
    other = _Q.alias()
    running = exists().where(other.c.part_of == _Q.c.part_of, other.c.state == _LEASED)
    return list(
        connection.execute(select(_Q.c.part_of).where(_Q.c.part_of.is_not(None), ~running).distinct()).scalars()
    )
