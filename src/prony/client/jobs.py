"""Operations on jobs: list, look at one, stop it, try it again, read its log, take home its samples."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from prony.client import wire
from prony.client.connection import Call
from prony.client.request_shapes import Asking
from prony.errors import TransportError
from prony.model.experiment_data import Entry
from prony.model.picture import Counters, Distribution, Starts, Timeline
from prony.model.queue import JobBatch, JobBatchAnswer, JobDetail, JobState, Page, QueuedJob


class LogPiece(NamedTuple):
    """`next_offset` is where the log goes on; `ended`: nothing will follow."""

    text: bytes
    next_offset: int
    ended: bool


class Jobs(Asking):
    def jobs(
        self,
        *,
        state: JobState | None = None,
        experiment: str | None = None,
        agent: str | None = None,
        label: tuple[str, str] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[QueuedJob]:
        """Return the jobs that all filters leave, a page at a time."""
        written = None if label is None else "=".join(label)
        return self._get(
            Page[QueuedJob],
            "jobs",
            state=state,
            experiment=experiment,
            agent=agent,
            label=written,
            limit=limit,
            cursor=cursor,
        )

    def job(self, job_id: str) -> JobDetail:
        return self._get(JobDetail, "jobs", job_id)

    def cancel(self, job_id: str) -> QueuedJob:
        return self._send(QueuedJob, "POST", "jobs", job_id, "cancel")

    def retry(self, job_id: str) -> QueuedJob:
        return self._send(QueuedJob, "POST", "jobs", job_id, "retry")

    def batch(self, batch: JobBatch) -> JobBatchAnswer:
        return self._send(JobBatchAnswer, "POST", "jobs", "batch", body=batch)

    def logs(self, job_id: str, *, attempt: int | None = None, offset: int = 0, wait_s: float = 0.0) -> LogPiece:
        """Return the log from `offset` on; where there is nothing yet, the server waits up to `wait_s` for more."""
        query = {"attempt": attempt, "offset": offset, "wait_s": wait_s}
        call = Call("GET", ("jobs", job_id, "logs"), query, wait_s=wait_s, is_safe=True)
        response = self._connection.send(call)
        told = response.headers.get(wire.NEXT_OFFSET, "")
        if not told.isdecimal():
            raise TransportError(f"{self._connection.base} does not say where the log goes on")
        ended = response.headers.get(wire.ENDED, "").lower() == "true"
        return LogPiece(response.content, int(told), ended)

    def result(self, job_id: str) -> Entry:
        return self._get(Entry, "jobs", job_id, "result")

    def distribution(self, job_id: str, *, metric: str | None = None, bins: int = 60) -> Distribution:
        """Return every sample that counts in bins, run by run."""
        return self._get(Distribution, "jobs", job_id, "distribution", metric=metric, bins=bins)

    def timeline(self, job_id: str, *, buckets: int = 200) -> Timeline:
        return self._get(Timeline, "jobs", job_id, "timeline", buckets=buckets)

    def starts(self, job_id: str) -> Starts:
        """Return cold against warm."""
        return self._get(Starts, "jobs", job_id, "starts")

    def counters(self, job_id: str, *, most: int = 12, points: int = 400) -> Counters:
        """Return what the machine did beside the run, thinned."""
        return self._get(Counters, "jobs", job_id, "counters", most=most, points=points)

    def samples(self, job_id: str, to: Path) -> Path:
        """Write every raw sample to the Parquet file `to`."""
        return self._fetch(to, "jobs", job_id, "samples")

    def telemetry(self, job_id: str, to: Path) -> Path:
        """Write what the machine did beside the run to the Parquet file `to`."""
        return self._fetch(to, "jobs", job_id, "telemetry")
