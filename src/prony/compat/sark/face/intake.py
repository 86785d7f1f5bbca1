"""Record the workers' reports as results of the fleet: each once, and none is lost that a job waits for.

A Dumont takes a job's id from a list without a word, asks for the job without its name, and then says under its name
that it is busy. `Claims` joins the two, to guess which worker has taken which job. A wrong guess does no harm: results
name their job, and a lease that brings none ends.

A report becomes a result folder that says who measured, and what is not known.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from prony import __version__
from prony.app.fleet.fleet import Fleet
from prony.compat.sark.face.settings import WHO
from prony.compat.sark.nouns import WorkerResult
from prony.errors import InputError, NotFoundError
from prony.model.device import Cpu, Device, Environment, Gpu, Hardware, Software, State
from prony.model.job import Job
from prony.model.queue import JobState
from prony.model.result import Failure, Reported, Result, ResultState
from prony.model.validation_words import describe_invalid
from prony.runner.folder import ResultFolder
from prony.store import campaigns
from prony.store.folder import FolderContents

if TYPE_CHECKING:
    from prony.store.database import Connection, Row


@dataclass(frozen=True)
class Question:
    job_id: str
    address: str
    at: float


class Claims:
    """What this process heard; nothing of it is needed after a restart. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}
        self._busy: Counter[str] = Counter()

    def note_request(self, job_id: str, address: str, now: float) -> None:
        self._questions[job_id] = Question(job_id, address, now)

    def forget(self, job_id: str) -> None:
        self._questions.pop(job_id, None)

    def expire(self, before: float) -> None:
        self._questions = {one.job_id: one for one in self._questions.values() if one.at >= before}

    def candidates(self, fitting: Collection[str], address: str) -> list[str]:
        """Return the jobs that a worker may have taken, the likeliest first: asked for from its address, and last."""
        found = [one for one in self._questions.values() if one.job_id in fitting]
        return [one.job_id for one in sorted(found, key=lambda one: (one.address != address, -one.at))]

    def latest(self, most: int) -> list[str]:
        """Return the jobs that were asked for last."""
        found = sorted(self._questions.values(), key=lambda one: -one.at)
        return [one.job_id for one in found[:most]]

    def begin(self, worker_id: str) -> None:
        """It says to be busy. Two processes may share one id, so it is counted."""
        self._busy[worker_id] += 1

    def end(self, worker_id: str) -> bool:
        """It says to be free; are all that were busy under its name?"""
        self._busy[worker_id] = max(0, self._busy[worker_id] - 1)
        return not self._busy[worker_id]

    def reborn(self, worker_id: str) -> None:
        self._busy.pop(worker_id, None)


BY = "a SARK worker"
# The keys of estimates, and the field that each is told in. Its load is one single sample: a median and nothing more.
_FIGURES = {
    "inference_ms.p50": "inference_ms_median",
    "inference_ms.mean": "inference_ms_average",
    "inference_ms.min": "inference_ms_min",
    "inference_ms.max": "inference_ms_max",
    "inference_ms.sd": "inference_ms_std_dev",
    "first_inference_ms.p50": "inference_ms_first",
    "load_ms.p50": "load_ms_median",
    "rss_load_peak_mib.p50": "peak_load_ram_usage",
    "rss_peak_mib.p50": "peak_inference_ram_usage",
    "vram_peak_mib.p50": "peak_inference_vram_usage",
}
# A download that failed may go well next time; a model that failed does not.
_SURROUNDINGS = re.compile(
    r"download|connection|timed? ?out|temporar|unreachable|name resolution|http error|max retries|no space left", re.I
)


@dataclass(frozen=True)
class Report:
    """`original` is the text as it came; `worker_id` is who says so."""

    result: WorkerResult
    original: str
    worker_id: str
    leased_at: datetime
    received_at: datetime


def write_report(folder: Path, job: Job, report: Report) -> FolderContents:
    """Write a folder as the runner would: whole, with no samples, because none were told. Return what it holds."""
    told = report.result
    made = ResultFolder.begin(folder, job, prony_version=__version__, started_at=report.leased_at)
    environment = _environment(report)
    made.write_environment(environment)
    figures = {key: getattr(told, name) for key, name in _FIGURES.items()}
    known = {key: float(value) for key, value in figures.items() if value is not None}
    failure = _failure(told, known)
    made.update(
        reported=Reported(by=BY, figures={} if failure else known, count=job.measure.runs, original=report.original),
        failure=failure,
    )
    made.finish_without_samples(ResultState.FAILED if failure else ResultState.COMPLETE, report.received_at)
    return FolderContents(folder, job, made.result, environment)


def _failure(told: WorkerResult, figures: dict[str, float]) -> Failure | None:
    if told.status == "Failed":
        remark = (told.remark or "the worker gave no reason")[:2000]
        is_around = _SURROUNDINGS.search(remark) is not None
        return Failure(code="worker_failed", message=remark, phase="worker", whose="prony" if is_around else "sut")
    if "inference_ms.p50" not in figures:
        return Failure(
            code="empty_report",
            message="the worker reported Complete without InferenceMsMedian",
            hint="read the log of the worker on its machine",
            phase="worker",
            whose="prony",
        )
    return None


def _environment(report: Report) -> Environment:
    """Describe the device in the worker's own words; what they do not say stays unknown."""
    told = report.result
    gpus = (Gpu(index=0, name=told.discrete_gpu, vendor=""),) if told.discrete_gpu else ()
    hardware = Hardware(
        cpu=Cpu(model=told.soc or None, architecture=""), memory_mib=_memory_mib(told.ram), gpus=gpus,
        machine=told.device_name or None,
    )  # fmt: skip
    software = Software(
        os=told.device_os or "", os_version=told.device_os_version or None, kernel="", python="", prony=""
    )
    device = Device(
        name=told.device_name or report.worker_id,
        hardware_id=f"sark-{report.worker_id}"[:128],
        software_id=f"sark-{hashlib.sha256(software.model_dump_json().encode()).hexdigest()[:12]}",
        hardware=hardware,
        software=software,
    )
    return Environment(device=device, state=State(taken_at=report.received_at), clock={})


def _memory_mib(ram: str | None) -> int | None:
    """Workers tell whole gigabytes, as text."""
    try:
        gib = float(ram or "")
    except ValueError:
        return None
    return round(gib * 1024) if 0 < gib < 10**6 else None


_LONGEST = 2**20


class Intake:
    """`dropped` counts what counted for nothing, by why."""

    def __init__(self, fleet: Fleet, claims: Claims) -> None:
        self._fleet = fleet
        self._claims = claims
        self.dropped: dict[str, int] = {}
        self.in_hand: set[str] = set()  # jobs whose report is being recorded

    async def take(self, raw: bytes) -> None:
        """Record one report, or drop it and say why. When this returns, its text is needed no more."""
        try:
            told, original = _parse_report(raw)
        except ValueError as exc:
            self._drop("malformed", str(exc)[:200])
            return
        self.in_hand.add(told.job_id)
        try:
            await self._keep(told, original)
        finally:
            self.in_hand.discard(told.job_id)
        self._claims.forget(told.job_id)

    async def _keep(self, told: WorkerResult, original: str) -> None:
        try:
            row, tried = await self._fleet.context.read(lambda connection: _find_job(connection, told.job_id))
        except NotFoundError:
            self._drop("unknown_job", told.job_id)
            return
        # Of a job that is lent again, the same words are a new failure: what came before belongs to an earlier try.
        is_second_copy = row.state != JobState.LEASED and _is_here(tried, original)
        lease_id = None if is_second_copy else await self._lease_of(row, tried, told)
        if lease_id is None:
            self._drop("duplicate", told.job_id)
            return
        try:
            if not await self._record(lease_id, row, told, original):
                self._drop("duplicate", told.job_id)
        except NotFoundError:  # deleted meanwhile
            self._drop("unknown_job", told.job_id)
        except InputError as exc:  # it would be refused again and again
            self._drop("refused", f"{told.job_id}: {exc.message}")

    def _drop(self, reason: str, detail: str) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        self._fleet.context.hook("sark_result_dropped", reason=reason, detail=detail)

    async def _lease_of(self, row: Row[Any], tried: Sequence[Row[Any]], told: WorkerResult) -> str | None:
        """Return the lease that a report belongs to; None where the job needs it no more.

        Its own worker's, current or lost, or else whoever has the job now: who took it from the list is a guess.
        """
        own = [one for one in tried if one.agent_id == told.worker_id and one.result_document is None]
        current = [one for one in own if one.state == "leased"]
        if current or own:
            return str((current or own)[-1].lease_id)
        if row.state == JobState.LEASED:
            return str(row.lease_id)
        if row.state == JobState.WAITING:
            lease = await self._fleet.leases.take(row.job_id, told.worker_id or "unknown")
            return lease.id if lease is not None else None
        return None

    async def _record(self, lease_id: str, row: Row[Any], told: WorkerResult, original: str) -> bool:
        """Keep it; False where this attempt's was kept in the same moment."""
        fleet = self._fleet
        now = fleet.context.clock.now()
        worker_id = told.worker_id or row.agent_id or "unknown"
        report = Report(told, original, worker_id, row.leased_at or now, now)
        place = fleet.context.home.uploads / f"sark.{secrets.token_hex(8)}"
        try:
            written = await asyncio.to_thread(write_report, place, Job.read_json(row.document), report)
            return await fleet.intake.finish_written(lease_id, written, who=WHO)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def _parse_report(raw: bytes) -> tuple[WorkerResult, str]:
    """Return a report and its text. One that names its job and cannot be read otherwise is one of a failure."""
    if len(raw) > _LONGEST:
        raise ValueError(f"a report of {len(raw)} bytes")
    # Half a surrogate pair could not be stored: it becomes a question mark.
    found = json.loads(json.dumps(json.loads(raw), ensure_ascii=False).encode(errors="replace"))
    if not isinstance(found, dict) or not isinstance(found.get("job_id"), str):
        raise ValueError("no object with a job_id")  # noqa: TRY004 - of JSON, all that is wrong is its value
    try:
        return WorkerResult.read(found), json.dumps(found, sort_keys=True, allow_nan=False)
    except ValueError as exc:
        reason = describe_invalid(exc) if isinstance(exc, ValidationError) else exc
        said = f"the worker's report cannot be read: {reason}; the connection may have broken"
        worker_id = found.get("worker_id")
        told = WorkerResult(
            job_id=found["job_id"][:200], status="Failed", remark=said[:1000],
            worker_id=worker_id if isinstance(worker_id, str) else None,
        )  # fmt: skip
        return told, told.model_dump_json(exclude_none=True)


def _find_job(connection: Connection, job_id: str) -> tuple[Row[Any], Sequence[Row[Any]]]:
    return campaigns.job(connection, job_id), campaigns.attempts(connection, job_id)


def _is_here(tried: Sequence[Row[Any]], original: str) -> bool:
    """Was this very report recorded before?"""
    documents = [Result.read_json(one.result_document) for one in tried if one.result_document is not None]
    return any(one.reported is not None and one.reported.original == original for one in documents)
