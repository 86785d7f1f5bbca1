"""Build the view of a job, from its row in the queue or, if it was run without a server, from its results.

Jobs that were run without a server have results and no place in the queue.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, func, select

from prony.errors import NotFoundError
from prony.model.experiment import ExperimentState
from prony.model.job import Job
from prony.model.queue import JobDetail, JobState, QueuedJob
from prony.model.result import Failure, Result
from prony.store import queue, tables


def queued_of(row: Row[Any], *, reason: str) -> QueuedJob:
    pause = row.not_before if row.state == JobState.WAITING and row.not_before else 0
    return QueuedJob(
        id=row.job_id,
        experiment_id=row.experiment_id,
        title=row.title,
        state=JobState(row.state),
        priority=row.priority,
        attempt=row.attempt,
        agent_id=row.agent_id,
        created_at=row.created_at,
        leased_at=row.leased_at,
        ended_at=row.ended_at,
        not_before=datetime.fromtimestamp(pause, UTC) if pause else None,
        cancel_asked=row.cancel_asked,
        reason=reason,
        failure=Failure.read_json(row.failure) if row.failure else None,
        labels=json.loads(row.labels),
    )


_E, _J, _R = tables.experiment, tables.job, tables.result
_STANDING = and_(_R.c.job_id == _J.c.id, _R.c.stands)
_OPEN: dict[str, JobState] = {
    ExperimentState.PENDING.value: JobState.WAITING,
    ExperimentState.RUNNING.value: JobState.LEASED,
}
_NEVER_RUN = "the experiment ended before this job started"
_ELSEWHERE = "it runs without a server"


def counts_of(connection: Connection, experiment_ids: Sequence[str]) -> dict[str, dict[JobState, int]]:
    """Return for each experiment how many of its jobs are in which state, queued or not."""
    found = queue.counts(connection, experiment_ids)
    unqueued = [one for one, counts in found.items() if not counts]
    return found | _by_results(connection, unqueued) if unqueued else found


def _by_results(connection: Connection, experiment_ids: Sequence[str]) -> dict[str, dict[JobState, int]]:
    chosen = select(_E.c.id, _E.c.state, _E.c.job_count).where(_E.c.id.in_(experiment_ids))
    experiments = {row.id: row for row in connection.execute(chosen)}
    found: dict[str, dict[JobState, int]] = {one: {} for one in experiment_ids}
    counting = select(_R.c.experiment_id, _R.c.state, func.count()).where(_R.c.experiment_id.in_(experiment_ids))
    for experiment_id, state, count in connection.execute(
        counting.where(_R.c.stands).group_by(_R.c.experiment_id, _R.c.state)
    ):
        found[experiment_id][JobState(state)] = count
    for experiment_id, row in experiments.items():
        rest = row.job_count - sum(found[experiment_id].values())
        if rest > 0:
            found[experiment_id][_without_result(row.state)] = rest
    return found


def jobs_of(connection: Connection, wanted: queue.JobFilter, *, before: int | None = None) -> Iterator[QueuedJob]:
    """Yield the jobs of an experiment that has none in the queue, the last first; `before` is a position."""
    if wanted.experiment is None or wanted.agent is not None:
        return
    query = _query().where(_J.c.experiment_id == wanted.experiment).order_by(_J.c.position.desc())
    for row in connection.execute(query if before is None else query.where(_J.c.position < before)):
        shown = _build_job(row, Job.read_json(row.document))
        is_labelled = wanted.label is None or wanted.label in shown.labels.items()
        if is_labelled and wanted.state in (None, shown.state):
            yield shown


def position_of(connection: Connection, job_id: str) -> int:
    """Return the place of a job among its siblings, by which lists of them are cut into pages."""
    return int(connection.execute(select(_J.c.position).where(_J.c.id == job_id)).scalar_one())


def detail_of(connection: Connection, job_id: str) -> JobDetail:
    """Return one job in full."""
    row = connection.execute(_query().where(_J.c.id == job_id)).first()
    if row is None:
        raise NotFoundError(f"no job {job_id!r} is stored", hint="`prony jobs` lists those of this server")
    job = Job.read_json(row.document)
    return JobDetail(queued=_build_job(row, job).model_copy(update={"cell": job.cell}), job=job)


def _query() -> Select[Any]:
    return (
        select(
            _J.c.id, _J.c.experiment_id, _J.c.document, _J.c.position, _E.c.created_at, _E.c.state.label("experiment"),
            _R.c.state, _R.c.attempt, _R.c.document.label("result"),
        )
        .join(_E, _E.c.id == _J.c.experiment_id)
        .outerjoin(_R, _STANDING)
    )  # fmt: skip


def _build_job(row: Row[Any], job: Job) -> QueuedJob:
    common: dict[str, Any] = {"id": row.id, "experiment_id": row.experiment_id, "title": job.title, "priority": 0}
    common |= {"created_at": row.created_at, "labels": job.labels}
    if row.result is None:
        state = _without_result(row.experiment)
        reason = _NEVER_RUN if state is JobState.CANCELLED else _ELSEWHERE
        return QueuedJob(**common, state=state, attempt=0, reason=reason)
    result = Result.read_json(row.result)
    return QueuedJob(
        **common,
        state=JobState(row.state),
        attempt=row.attempt,
        leased_at=result.started_at,
        ended_at=result.ended_at,
        reason=result.failure.message if result.failure else "",
        failure=result.failure,
    )


def _without_result(experiment_state: str) -> JobState:
    """Jobs that are run without a server take turns: while their experiment runs, so do all that have no result."""
    return _OPEN.get(experiment_state, JobState.CANCELLED)
