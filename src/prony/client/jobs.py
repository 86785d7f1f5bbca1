"""Operations on jobs: list, look at one, stop it, try it again, read its log, take home its samples."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from prony.client import wire
from prony.client.asking import Asking
from prony.client.connection import Call
from prony.errors import TransportError
from prony.model.dossier import Entry
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

    def samples(self, job_id: str, to: Path) -> Path:
        """Write every raw sample to the Parquet file `to`."""
        return self._fetch(to, "jobs", job_id, "samples")

    def telemetry(self, job_id: str, to: Path) -> Path:
        """Write what the machine did beside the run to the Parquet file `to`."""
        return self._fetch(to, "jobs", job_id, "telemetry")
