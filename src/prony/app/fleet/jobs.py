"""Jobs of a fleet: listed, looked at, cancelled, tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from prony.app.failures import read_failures
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState
from prony.app.fleet.transitions import Transitions
from prony.app.fleet.wait_reasons import show_jobs
from prony.app.printed_lines import JOB_LOG
from prony.app.read_log import read_piece
from prony.errors import ConflictError, InputError, NotFoundError, PronyError
from prony.model.access import Principal
from prony.model.failures import FailureReport
from prony.model.job import Job
from prony.model.log import EVERYTHING, LogFilter, LogPiece
from prony.model.queue import JobBatch, JobBatchAnswer, JobDetail, JobState, Page, QueuedJob
from prony.model.states import ENDED
from prony.store import job_view, queue, result_rows
from prony.store.cursors import read_number_cursor
from prony.store.database import Connection, Row, reading
from prony.store.writer import Transaction

# Of a batch, so many jobs are changed in one transaction.
_TOGETHER = 100


class Jobs:
    """List, show, cancel and retry jobs, and read their logs."""

    def __init__(self, context: FleetContext, state: FleetState, transitions: Transitions) -> None:
        self._context = context
        self._state = state
        self._transitions = transitions

    async def failures(self, *, days: float) -> FailureReport:
        """Return what failed in the last days, by cause."""
        since = self._context.clock.now() - timedelta(days=days)
        return await self._context.read(lambda connection: read_failures(connection, since))

    async def page(
        self,
        *,
        state: JobState | None = None,
        experiment: str | None = None,
        agent: str | None = None,
        label: tuple[str, str] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[QueuedJob]:
        before = None if cursor is None else read_number_cursor(cursor)
        wanted = queue.JobFilter(state, experiment, agent, label)

        def ask(connection: Connection) -> Page[QueuedJob]:
            if experiment is not None and not queue.counts(connection, [experiment])[experiment]:
                return _list_local_jobs(connection, wanted, limit=limit, before=before)
            rows = queue.page(connection, wanted, limit=limit + 1, before=before)
            shown = rows[:limit]
            following = str(shown[-1].number) if len(rows) > limit else None
            return Page(items=tuple(self._show(shown)), next=following)

        return await self._context.read(ask)

    async def get(self, job_id: str) -> JobDetail:
        def ask(connection: Connection) -> JobDetail:
            try:
                row = queue.by_job(connection, job_id)
            except NotFoundError:
                return job_view.detail_of(connection, job_id)
            job = Job.read_json(queue.job_document(connection, job_id))
            shown = self._show([row])[0].model_copy(update={"cell": job.cell})
            return JobDetail(queued=shown, job=job, attempts=queue.attempts(connection, job_id))

        return await self._context.read(ask)

    async def cancel(self, job_id: str, *, who: Principal) -> QueuedJob:
        await self._context.write(lambda transaction: self._cancel(transaction, job_id))
        self._context.hook("cancelled", job=job_id, who=who.name)
        return await self._read_job(job_id)

    async def retry(self, job_id: str, *, who: Principal) -> QueuedJob:
        await self._context.write(lambda transaction: self._retry(transaction, job_id))
        self._context.hook("retried", job=job_id, who=who.name)
        return await self._read_job(job_id)

    async def batch(self, batch: JobBatch, *, who: Principal) -> JobBatchAnswer:
        """Do the same with many jobs, a few in each transaction, so that nobody else waits for all of them.

        Those that cannot be changed are named with the reason.
        """
        if not batch.ids and batch.experiment is None and batch.state is None:
            raise InputError("no jobs were named", hint="give ids, an experiment or a state", code="no_jobs_named")
        changed: list[str] = []
        skipped: dict[str, str] = {}
        ids = batch.ids or await self._context.read(partial(_matching, batch=batch))
        for begin in range(0, len(ids), _TOGETHER):
            done = await self._context.write(partial(self._batch, batch.action, ids[begin : begin + _TOGETHER]))
            changed += done.changed
            skipped |= done.skipped
        self._context.hook("batch", action=batch.action, changed=len(changed), who=who.name)
        return JobBatchAnswer(changed=tuple(changed), skipped=skipped)

    async def read_log(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        wanted: LogFilter = EVERYTHING,
        wait_s: float = 0,
    ) -> LogPiece:
        """Return the log of a job's attempt, the latest by default, from an offset; wait for more where it runs."""
        until = self._context.now() + min(wait_s, 30.0)
        while True:
            path, is_over = await asyncio.to_thread(self._find_log, job_id, attempt)
            piece = await asyncio.to_thread(read_piece, path, offset, wanted, is_over=is_over)
            if piece.text or piece.ended or self._context.now() >= until:
                return piece
            offset = piece.next_offset
            await asyncio.sleep(0.2)

    def _find_log(self, job_id: str, attempt: int | None) -> tuple[Path, bool]:
        """Return where the log of an attempt is, and whether it grows no more."""
        with reading(self._context.engine) as connection:
            try:
                row = queue.by_job(connection, job_id)
            except NotFoundError:
                shown = job_view.detail_of(connection, job_id).queued
                return self._log_beside_result(shown.experiment_id, job_id), shown.state in ENDED
        number = attempt or row.attempt
        is_over = JobState(row.state) in ENDED or number < row.attempt
        path = self._context.log_path(row.experiment_id, job_id, number)
        if not is_over or number < row.attempt:
            return path, is_over
        # Its agent may not have reached this server while it ran: the result has all of the same log.
        return max(path, self._log_beside_result(row.experiment_id, job_id), key=_size_of), True

    def _log_beside_result(self, experiment_id: str, job_id: str) -> Path:
        record = self._context.store.record(job_id)
        folder = self._context.home.result_folder(experiment_id, job_id) if record is None else record.folder
        return folder / "logs" / JOB_LOG

    def _batch(self, action: str, ids: Sequence[str], transaction: Transaction) -> JobBatchAnswer:
        act: Callable[[Transaction, str], None] = self._cancel if action == "cancel" else self._retry
        changed, skipped = [], {}
        for job_id in ids:
            try:
                act(transaction, job_id)
            except PronyError as exc:
                skipped[job_id] = exc.message
            else:
                changed.append(job_id)
        return JobBatchAnswer(changed=tuple(changed), skipped=skipped)

    def _cancel(self, transaction: Transaction, job_id: str) -> None:
        row = queue.by_job(transaction.connection, job_id, locked=True)
        if JobState(row.state) in ENDED:
            raise ConflictError(f"job {job_id} is {row.state} already", hint="there is nothing to cancel")
        self._transitions.cancel_row(transaction, row)
        self._transitions.close_if_done(transaction, row.experiment_id)

    def _retry(self, transaction: Transaction, job_id: str) -> None:
        row = queue.by_job(transaction.connection, job_id, locked=True)
        if JobState(row.state) not in ENDED - {JobState.COMPLETE}:
            again = f"it is complete: `prony rerun {row.experiment_id}` runs its whole experiment again"
            hint = again if row.state == JobState.COMPLETE else "wait for it"
            raise ConflictError(f"job {job_id} is {row.state}", hint=hint)
        tries = result_rows.experiment(transaction.connection, row.experiment_id).recipe.place.attempts
        self._transitions.retry_row(transaction, row, tries=tries)
        self._transitions.reopen(transaction, row.experiment_id)

    def _show(self, rows: Sequence[Row[Any]]) -> list[QueuedJob]:
        return show_jobs(self._state, rows, self._context.clock.now())

    async def _read_job(self, job_id: str) -> QueuedJob:
        return await self._context.read(lambda connection: self._show([queue.by_job(connection, job_id)])[0])


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else -1


def _list_local_jobs(
    connection: Connection, wanted: queue.JobFilter, *, limit: int, before: int | None
) -> Page[QueuedJob]:
    """Return a page of the jobs of an experiment that was run without a server."""
    found = list(islice(job_view.jobs_of(connection, wanted, before=before), limit + 1))
    shown = found[:limit]
    following = str(job_view.position_of(connection, shown[-1].id)) if len(found) > limit else None
    return Page(items=tuple(shown), next=following)


def _matching(connection: Connection, batch: JobBatch) -> tuple[str, ...]:
    return tuple(row.job_id for row in queue.page(connection, queue.JobFilter(batch.state, batch.experiment)))
