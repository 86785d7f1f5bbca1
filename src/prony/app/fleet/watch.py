"""Experiments of a fleet, watched: how one stands, and then every change until it has ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row

from prony.app.fleet.context import ChangeNotice, FleetContext
from prony.app.fleet.views import OVER, view_of
from prony.dispatch.retry import is_due
from prony.errors import NotFoundError
from prony.model.queue import ExperimentView, JobState, QueuedJob
from prony.store import queue, unqueued
from prony.store.job_view import queued_of


class Watching(FleetContext):
    """Watched."""

    async def watch(self, experiment_id: str) -> AsyncIterator[ChangeNotice]:
        """Yield how the experiment stands, and then every change, until it has ended.

        Who does not keep up is cut off, and may come back for how it stands then.
        """
        line: asyncio.Queue[ChangeNotice | None] = asyncio.Queue()
        self.watchers[experiment_id].add(line)
        try:
            view, jobs = await self.read(lambda connection: self._snapshot(connection, experiment_id))
            listed = [job.model_dump(mode="json") for job in jobs]
            yield ChangeNotice("snapshot", json.dumps({"experiment": view.model_dump(mode="json"), "jobs": listed}))
            if view.experiment.state in OVER:
                return
            while (notice := await line.get()) is not None:
                yield notice
        finally:
            self.leave(experiment_id, line)

    async def events(self, last_id: str = "") -> AsyncIterator[ChangeNotice]:
        """Yield what changes anywhere, without end; first what somebody missed who had heard `last_id`."""
        async for place, changed in self.feed.follow(last_id):
            yield (
                ChangeNotice("anew", "{}", place)
                if changed is None
                else ChangeNotice("changed", changed.model_dump_json(), place)
            )

    def _snapshot(self, connection: Connection, experiment_id: str) -> tuple[ExperimentView, list[QueuedJob]]:
        view = view_of(connection, experiment_id)
        rows = queue.page(connection, queue.JobFilter(experiment=experiment_id))
        shown = self.shown_jobs(rows) or list(unqueued.jobs_of(connection, queue.JobFilter(experiment=experiment_id)))
        return view, shown[::-1]

    async def show_jobs(self, experiment_id: str, job_ids: set[str]) -> None:
        """Tell those who watch how these jobs, and the experiment, stand now."""

        def ask(connection: Connection) -> tuple[ExperimentView, list[QueuedJob]]:
            found = [_find_job(connection, one) for one in sorted(job_ids) if one]
            return view_of(connection, experiment_id), self.shown_jobs([row for row in found if row is not None])

        try:
            view, jobs = await self.read(ask)
        except NotFoundError:  # deleted meanwhile
            self.publish(experiment_id, None)
            return
        for job in jobs:
            self.publish(experiment_id, ChangeNotice("job", job.model_dump_json()))
        over = view.experiment.state in OVER
        if over or "" in job_ids:
            self.publish(experiment_id, ChangeNotice("experiment", view.model_dump_json()))
        if over:
            self.publish(experiment_id, None)

    def shown_jobs(self, rows: Sequence[Row[Any]]) -> list[QueuedJob]:
        """Return jobs with why each waits; may be asked from any thread."""
        why: Callable[[str], str] = cache(self.why)  # the same for all jobs of a lot, and it looks at every agent
        now = self.clock.now().timestamp()
        return [queued_of(row, reason=_reason(row, now, why)) for row in rows]

    def why(self, lot_id: str) -> str:
        """Say why a lot's jobs wait; see the overview."""
        raise NotImplementedError


def _reason(row: Row[Any], now: float, why: Callable[[str], str]) -> str:
    """Say what became of a job's last attempt, and why it waits now; in a pause, it waits for nothing else."""
    if row.state != JobState.WAITING or not is_due(row.not_before, now):
        return str(row.reason)
    return "; ".join(part for part in (row.reason, why(row.lot_id)) if part)


def _find_job(connection: Connection, job_id: str) -> Row[Any] | None:
    """Return a job, if the experiment has not got others meanwhile."""
    try:
        return queue.by_job(connection, job_id)
    except NotFoundError:
        return None
