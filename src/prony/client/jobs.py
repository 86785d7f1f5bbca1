"""Jobs of a server: list, look at one, stop it, try it again, read its log, fetch its samples."""

from __future__ import annotations

from pathlib import Path

from prony.client import wire
from prony.client.connection import ApiCall, ApiConnection, ApiRequests
from prony.client.experiments import RemoteExperiments
from prony.client.resolve_id import exists
from prony.errors import InputError, NotFoundError, TransportError
from prony.model.experiment_data import Entry
from prony.model.failures import FailureReport
from prony.model.log import LogPiece
from prony.model.picture import Counters, Distribution, LoadSeries, Starts, StepLines, Timeline
from prony.model.queue import JobBatch, JobBatchAnswer, JobDetail, JobState, Page, QueuedJob
from prony.model.section import JobSections


class RemoteJobs:
    """Jobs, with their results and what charts are drawn from."""

    def __init__(self, requests: ApiRequests, experiments: RemoteExperiments) -> None:
        self._requests = requests
        self._connection = requests.connection
        self._experiments = experiments

    def find(self, text: str) -> str:
        """Return the id of the job that a person means.

        Args:
            text: A job's id, of which the experiment's part may be abbreviated, or an experiment that has one job.

        Raises:
            NotFoundError: There is no such job.
            InputError: Several may be meant.
        """
        if exists(self.get, text):
            return text
        begin, dash, number = text.rpartition("-")
        if not (dash and begin):
            return self._only_job(self._experiments.find(text))
        wanted = f"{self._experiments.find(begin)}-{number}"
        if exists(self.get, wanted):
            return wanted
        raise NotFoundError(f"no job {wanted!r}", hint=f"`prony jobs --experiment {begin}` lists them")

    def _only_job(self, experiment_id: str) -> str:
        found = self.page(experiment=experiment_id, limit=2)
        if len(found.items) == 1:
            return found.items[0].id
        hint = f"name a job: `prony jobs --experiment {experiment_id}` lists them"
        raise InputError(f"experiment {experiment_id} does not have exactly one job", hint=hint)

    def page(
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
        return self._requests.get(
            Page[QueuedJob],
            "jobs",
            state=state,
            experiment=experiment,
            agent=agent,
            label=written,
            limit=limit,
            cursor=cursor,
        )

    def get(self, job_id: str) -> JobDetail:
        """Return one job, with every attempt."""
        return self._requests.get(JobDetail, "jobs", job_id)

    def cancel(self, job_id: str) -> QueuedJob:
        """Stop a job; what was measured is kept."""
        return self._requests.send(QueuedJob, "POST", "jobs", job_id, "cancel")

    def retry(self, job_id: str) -> QueuedJob:
        """Have a failed, partial or cancelled job wait again."""
        return self._requests.send(QueuedJob, "POST", "jobs", job_id, "retry")

    def batch(self, batch: JobBatch) -> JobBatchAnswer:
        """Cancel or retry many jobs at once."""
        return self._requests.send(JobBatchAnswer, "POST", "jobs", "batch", body=batch)

    def failures(self, *, days: float = 7.0) -> FailureReport:
        """Return what failed in the last days, by cause."""
        return self._requests.get(FailureReport, "failures", days=days)

    def logs(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        wait_s: float = 0.0,
        search: str = "",
        source: str = "",
    ) -> LogPiece:
        """Return the log from `offset` on; where there is nothing yet, the server waits up to `wait_s` for more.

        Args:
            job_id: Which job.
            attempt: Which attempt; None is the newest.
            offset: Where to begin, in bytes.
            wait_s: How long to wait where there is nothing yet.
            search: Only lines that hold this text.
            source: Only lines of this source.

        Raises:
            TransportError: The answer does not say where the log goes on.
        """
        query = {"attempt": attempt, "offset": offset, "wait_s": wait_s, "search": search or None}
        query |= {"source": source or None}
        call = ApiCall("GET", ("jobs", job_id, "logs"), query, wait_s=wait_s, is_safe=True)
        return fetch_piece(self._connection, call)

    def load_series(self, job_id: str, *, points: int = 600) -> LoadSeries:
        """Return a load second by second: as its agent reports it while it runs, then from its requests."""
        return self._requests.get(LoadSeries, "jobs", job_id, "load-series", points=points)

    def result(self, job_id: str) -> Entry:
        """Return a job's result, with its summary."""
        return self._requests.get(Entry, "jobs", job_id, "result")

    def distribution(self, job_id: str, *, metric: str | None = None, bins: int = 60) -> Distribution:
        """Return every sample that counts in bins, run by run."""
        return self._requests.get(Distribution, "jobs", job_id, "distribution", metric=metric, bins=bins)

    def timeline(self, job_id: str, *, buckets: int = 200) -> Timeline:
        """Return how the samples went over time, in so many buckets."""
        return self._requests.get(Timeline, "jobs", job_id, "timeline", buckets=buckets)

    def starts(self, job_id: str) -> Starts:
        """Return cold against warm."""
        return self._requests.get(Starts, "jobs", job_id, "starts")

    def lines(self, job_id: str) -> StepLines:
        """Return what was reported step by step."""
        return self._requests.get(StepLines, "jobs", job_id, "lines")

    def sections(self, job_id: str) -> JobSections:
        """Return what the kind of the workload shows of a result beside its numbers."""
        return self._requests.get(JobSections, "jobs", job_id, "sections")

    def counters(self, job_id: str, *, most: int = 12, points: int = 400) -> Counters:
        """Return what the machine did beside the run, thinned."""
        return self._requests.get(Counters, "jobs", job_id, "counters", most=most, points=points)

    def samples(self, job_id: str, to: Path) -> Path:
        """Write every raw sample to the Parquet file `to`."""
        return self._requests.fetch(to, "jobs", job_id, "samples")

    def telemetry(self, job_id: str, to: Path) -> Path:
        """Write what the machine did beside the run to the Parquet file `to`."""
        return self._requests.fetch(to, "jobs", job_id, "telemetry")


def fetch_piece(connection: ApiConnection, call: ApiCall) -> LogPiece:
    """Return the piece of a text that a call is answered with.

    Raises:
        TransportError: The answer does not say where the text goes on.
    """
    response = connection.send(call)
    next_offset = response.headers.get(wire.NEXT_OFFSET, "")
    if not next_offset.isdecimal():
        raise TransportError(
            f"{connection.base} did not send the offset of the next part of the text",
            hint="check that this is the address of a Prony server of this version",
        )
    return LogPiece(response.content, int(next_offset), response.headers.get(wire.ENDED, "").lower() == "true")
