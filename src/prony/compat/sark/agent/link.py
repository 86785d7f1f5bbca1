"""Connect an agent to a SARK orchestrator and its Redis, as it would be connected to its server.

The agent is the one that serves a Prony server, with its spool, its runner and its behaviour; only its link is another.
A lease is a job that this worker holds in Redis; its id is the name of the folder that the job has in the spool.

What a SARK worker reports of its job is read from the packed result.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import ValidationError

from prony.agent.identity import Slot, device_key
from prony.agent.logs import AgentLog
from prony.agent.server_client import Refused
from prony.agent.spool import Work
from prony.app.results import summary_of
from prony.compat.sark.agent.orchestrator_client import (
    OrchestratorClient,
    address_towards,
    capabilities_of,
    registration_of,
    worker_device,
)
from prony.compat.sark.agent.queues import WorkerQueues
from prony.compat.sark.nouns import PLAIN_CPU, CampaignJob, WorkerResult, WorkerStatus, measure_of, word_of
from prony.errors import CapacityError, PronyError, TransportError
from prony.instruments.samples import TELEMETRY, read_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.agent import Agent, AgentState, Capabilities, Enrolled, Enrolment, Heartbeat, HeartbeatAnswer
from prony.model.estimate import Grade, Summary
from prony.model.gang import ClockReading, Meeting, Met
from prony.model.job import Job
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, Progress, ProgressAnswer
from prony.model.result import Result, ResultState
from prony.model.validation_words import describe_invalid
from prony.store.folder import read_nouns
from prony.store.home import Home
from prony.store.result_tar import unpack

if TYPE_CHECKING:
    import polars as pl

    from prony.compat.sark.agent.server import SarkServer


# SARK's figure -> Prony's estimate. Its RAM is the resident memory of the whole process, imports with it.
_FIGURES = {
    "load_ms_median": "load_ms.p50",
    "load_ms_min": "load_ms.min",
    "load_ms_max": "load_ms.max",
    "load_ms_average": "load_ms.mean",
    "load_ms_std_dev": "load_ms.sd",
    "peak_load_ram_usage": "rss_load_peak_mib.p50",
    "inference_ms_median": "inference_ms.p50",
    "inference_ms_min": "inference_ms.min",
    "inference_ms_max": "inference_ms.max",
    "inference_ms_average": "inference_ms.mean",
    "inference_ms_std_dev": "inference_ms.sd",
    "inference_ms_first": "first_inference_ms.p50",
    "peak_inference_ram_usage": "rss_peak_mib.p50",
    "peak_inference_vram_usage": "vram_peak_mib.p50",
}


def result_of(tar: Path, worker_id: str, device_name: str) -> WorkerResult:
    """Read a packed result folder; `device_name` is what the worker registered as, empty where it has not yet.

    Blocking: it is unpacked and summarised."""
    with tempfile.TemporaryDirectory(prefix="prony-sark-") as scratch:
        folder = Path(scratch, "folder")
        unpack(tar, folder)
        contents = read_nouns(folder)
        summary = summary_of(folder)
        gpu_percent = busiest_gpu_percent(read_frame(folder, TELEMETRY))
    job, result = contents.job, contents.result
    is_complete = result.state is ResultState.COMPLETE and result.failure is None
    device = worker_device(contents.environment.device).model_dump(exclude={"udid"}, by_alias=False)
    device["device_name"] = device_name or device["device_name"]
    head = {
        "job_id": job.id,
        "campaign_id": job.experiment_id,
        "worker_id": worker_id,
        "compute_units": word_of(job.work(ModelWorkload).engine, job.work(ModelWorkload).unit),
    }
    if not is_complete:
        return WorkerResult(**head, **device, status="Failed", remark=_why(result), file_name="", file_size=0)
    return WorkerResult(
        **head,
        **device,
        status="Complete",
        remark=_doubts(summary),
        file_name=_file_name(job),
        file_size=result.model.size_bytes if result.model else None,
        load_ms_first=next(iter(summary.runs.get("load_ms.p50", ())), None),
        average_load_cpu_percent=_cpu_percent(result, "load"),
        average_inference_cpu_percent=_cpu_percent(result, "measure"),
        average_inference_gpu_percent=gpu_percent,
        **_figures(summary),
    )


def _report_unstarted(job_id: str, campaign_id: str | None, worker_id: str, remark: str) -> WorkerResult:
    """Report a job that cannot even be begun here."""
    return WorkerResult(
        job_id=job_id, campaign_id=campaign_id, worker_id=worker_id, status="Failed", remark=remark,
        file_name="", file_size=0,
    )  # fmt: skip


def _figures(summary: Summary) -> dict[str, float]:
    known = {ours: summary.estimates[name].value for ours, name in _FIGURES.items() if name in summary.estimates}
    return {ours: value for ours, value in known.items() if value >= 0}


def _file_name(job: Job) -> str:
    return job.work(ModelWorkload).model.partition("?")[0].rstrip("/").rpartition("/")[2]


def _cpu_percent(result: Result, phase: Literal["load", "measure"]) -> float | None:
    """Return the CPU time by the wall time of a phase, the mean over the runs; 200 is two whole cores."""
    spans = [one.phases[phase] for one in result.repetitions if one.state == "ok" and phase in one.phases]
    shares = [100 * span.cpu_ns / (span.end_ns - span.begin_ns) for span in spans if span.end_ns > span.begin_ns]
    return fmean(shares) if shares else None


def busiest_gpu_percent(telemetry: pl.DataFrame) -> float | None:
    """Return how busy the busiest GPU was, in the mean over what was read beside the runs; None without a GPU."""
    import polars as pl

    gpus = telemetry.filter(pl.col("counter").str.contains(r"^gpu[0-9]+_busy$"))
    means = gpus.group_by("counter").agg(pl.col("value").mean())["value"]
    return 100 * float(max(means)) if len(means) else None


def _why(result: Result) -> str:
    failure = result.failure
    if failure is None:
        return f"the result is {result.state.value}"
    return _join((failure.message, failure.hint))


def _doubts(summary: Summary) -> str | None:
    """Say why a number may not be quoted; SARK has no verdict, and a remark does no harm."""
    verdict = summary.verdict
    if verdict.grade is Grade.VALID:
        return None
    reasons = (reason.text for reason in verdict.reasons if reason.grade is not Grade.VALID)
    return _join((f"{verdict.grade.value}:", *reasons), " ")


def _join(parts: Iterable[str], between: str = "; ") -> str:
    return between.join(filter(None, parts))


_POLL_S = 0.5
# A SARK takes a worker for faulty that it has not heard of for a minute.
_BEAT_S = 10.0
_SILENCE_S = 60.0
_OVER = frozenset({"complete", "completed", "failed", "cancelled"})


class SarkLink:
    """Open it as a block."""

    def __init__(self, sark: SarkServer, slot: Slot, log: AgentLog) -> None:
        self.base = sark.base
        self.token: str | None = None  # a SARK knows none
        self.orchestrator = OrchestratorClient(sark.url)
        self.queues = WorkerQueues(sark.redis_host, sark.redis_port)
        self._slot = slot
        self._log = log
        known = slot.identity()
        self._worker_id = known.id or "" if known else ""
        self.queues.belong(self._worker_id, ())  # what an earlier life left may be sent before this one registers
        self._enrolment: Enrolment | None = None
        self._words: dict[str, tuple[str, str]] = {}
        self._device_name = ""
        self._beaten_s = float("-inf")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.orchestrator.close()
        await self.queues.close()

    async def __aenter__(self) -> Self:
        return self

    # This worker

    def find_owner_token(self, home: Home) -> str | None:
        return None

    async def enroll(self, enrolment: Enrolment) -> Enrolled:
        """Register, with an identity that no other worker has: two on one machine are two."""
        self._enrolment = enrolment
        offered, device = enrolment.capabilities, enrolment.capabilities.device
        self._words = capabilities_of(offered.engines)
        if device is None or not self._words:
            raise CapacityError(
                "this device has no engine that SARK knows", hint="prony doctor shows which engines are missing"
            )
        self._device_name = device.name
        udid = device_key(self._slot, is_shared=True)
        address = address_towards(self.orchestrator.base)
        self._worker_id = await self.orchestrator.register(
            registration_of(offered, device, udid=udid, ip_address=address)
        )
        self.queues.belong(self._worker_id, tuple(self._words))
        await self.queues.check()
        return Enrolled(agent=self._agent(AgentState.ACTIVE), ttl_s=_SILENCE_S)

    async def capabilities(self, agent_id: str, capabilities: Capabilities) -> Agent:
        """Register again: that is how a SARK is told."""
        enrolled = await self.enroll(self._build_enrolment().model_copy(update={"capabilities": capabilities}))
        return enrolled.agent

    async def heartbeat(self, agent_id: str, beat: Heartbeat) -> HeartbeatAnswer:
        """Give a sign of life, as often as a SARK wants one; see whether a job is wanted no more."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._beaten_s < _BEAT_S:
            return HeartbeatAnswer()
        await self.orchestrator.heartbeat(agent_id)
        self._beaten_s = now_s
        return HeartbeatAnswer(cancel=tuple([one for one in beat.leases if await self._is_over(_job_id(one))]))

    async def drain(self, agent_id: str) -> Agent:
        """Say that nothing more is taken, in the word that comes nearest."""
        await self.orchestrator.say(agent_id, WorkerStatus.CLEANUP)
        return self._agent(AgentState.DRAINING)

    # Jobs

    async def lease(self, request: LeaseRequest) -> Lease | None:
        """Wait for a job, for no longer than until the next heartbeat; what cannot be one is settled on the way."""
        end_s = asyncio.get_running_loop().time() + min(request.wait_s, _BEAT_S)
        while True:
            # Who does not wait asks only for what it may have been given already.
            job_id = await self.queues.take(is_new=request.wait_s > 0)
            lease = None if job_id is None else await self._find_lease(job_id)
            if lease is not None and lease.id not in request.holding:
                await self._say(WorkerStatus.BUSY)
                return lease
            if job_id is not None and lease is None:
                continue
            if asyncio.get_running_loop().time() >= end_s:
                return None
            await asyncio.sleep(_POLL_S)

    async def progress(self, lease_id: str, progress: Progress) -> ProgressAnswer:
        """Tell nobody: a SARK does not ask how a job gets on."""
        return ProgressAnswer()

    async def hand_back(self, lease_id: str, reason: str) -> None:
        """Let others have the job; one that is meant for this worker alone waits for it."""
        await self.queues.hand_back(_job_id(lease_id))
        await self._say(WorkerStatus.ACTIVE)

    async def upload_offset(self, lease_id: str) -> int:
        """Nothing is uploaded: a SARK takes figures, and they are read from the parcel on this disk."""
        return (await asyncio.to_thread(self._work(lease_id).tar.stat)).st_size

    async def finish(self, lease_id: str, content: bytes, *, sha256: str, ask_next: bool) -> FinishAnswer:
        """Report the figures of a result, once: where the orchestrator has them already, only its job is let go."""
        job_id = _job_id(lease_id)
        await self._say(WorkerStatus.CLEANUP)
        told = await self.orchestrator.job(job_id)
        is_wanted = not _has_ended(told)
        if is_wanted:
            await self._report(await asyncio.to_thread(self._result, lease_id, told.get("campaign_id")))
        else:
            await self.queues.forget(job_id)
        await self._say(WorkerStatus.ACTIVE)
        return FinishAnswer(accepted=is_wanted)

    # What a SARK has no word for. No job of its needs it: they are models, each for one worker.

    async def meet(self, lease_id: str, meeting: Meeting) -> Met | None:
        raise _unknown("jobs that several agents run together")

    async def clock(self) -> ClockReading:
        raise _unknown("a shared clock")

    async def upload(self, lease_id: str, offset: int, piece: bytes) -> int:
        raise _unknown("uploads in parts")

    async def scripts(self, sha256: str, to: Path) -> None:
        raise _unknown("scripts")

    # Inside

    async def _find_lease(self, job_id: str) -> Lease | None:
        """Return a job that is held as a lease, None where it is none: unknown, over, another's, or impossible here."""
        try:
            told = await self.orchestrator.job(job_id)
        except Refused as exc:
            if not exc.is_final:
                raise TransportError(exc.error.message, hint=exc.error.hint) from exc
            self._log.warning("the orchestrator no longer has the job", job_id=job_id, reason=exc.error.message)
            await self.queues.forget(job_id)
            return None
        if _has_ended(told) or told.get("worker_id") not in (None, "", self._worker_id):
            await self.queues.forget(job_id)
            return None
        try:
            job = CampaignJob.read({**_drop_empty(told), "job_id": job_id})
            attempt = int(told.get("retry_count") or 0) + 1
            return Lease(id=f"{job_id}.{attempt}", job=self._job(job), attempt=attempt, ttl_s=_SILENCE_S)
        except (ValidationError, ValueError, PronyError) as exc:
            reason = describe_invalid(exc) if isinstance(exc, ValidationError) else exc
            remark = exc.message if isinstance(exc, PronyError) else f"the job cannot be read: {reason}"
            self._log.warning("the job cannot run here", job_id=job_id, reason=remark)
            await self._report(_report_unstarted(job_id, told.get("campaign_id"), self._worker_id, remark))
            return None

    def _job(self, job: CampaignJob) -> Job:
        """Return the job for the runner. What this device has not is never replaced by something else."""
        word = "CPU (ONNX)" if job.compute_unit == PLAIN_CPU else job.compute_unit
        if word not in self._words:
            offered = ", ".join(self._words)
            raise CapacityError(f"this device does not offer {word!r}; it offers {offered}")
        engine, unit = self._words[word]
        return Job(
            id=job.job_id,
            experiment_id=job.campaign_id or job.job_id,
            name=job.campaign_id or job.job_id,
            workload=ModelWorkload(kind="model", model=job.model_url, engine=engine, unit=unit),
            measure=measure_of(job.num_inference_runs),
        )

    async def _report(self, result: WorkerResult) -> None:
        await self.queues.report(result.job_id, result.model_dump_json(exclude_none=True))

    def _result(self, lease_id: str, campaign_id: str | None) -> WorkerResult:
        try:
            return result_of(self._work(lease_id).tar, self._worker_id, self._device_name)
        except PronyError as exc:  # damaged on this disk: sent again and again it would get no better
            return _report_unstarted(
                _job_id(lease_id), campaign_id, self._worker_id, f"the result is lost: {exc.message}"
            )

    async def _is_over(self, job_id: str) -> bool:
        """Has the job an end at the orchestrator? One that it does not know is wanted no more."""
        try:
            return _has_ended(await self.orchestrator.job(job_id))
        except Refused as exc:
            return exc.status == 404

    async def _say(self, status: WorkerStatus) -> None:
        """Tell the worker's status; it is for people, so nothing waits for it to be heard."""
        with suppress(TransportError, Refused):
            await self.orchestrator.say(self._worker_id, status)

    def _build_enrolment(self) -> Enrolment:
        if self._enrolment is None:
            raise TransportError("this agent is not registered at SARK yet", hint="check that SARK answers")
        return self._enrolment

    def _agent(self, state: AgentState) -> Agent:
        """Return what a Prony server would say of this agent."""
        known, now = self._build_enrolment(), datetime.now(UTC)
        return Agent(
            id=self._worker_id, name=known.name, state=state, device_key=known.device_key,
            incarnation=known.incarnation, capabilities=known.capabilities, created_at=now, seen_at=now,
        )  # fmt: skip

    def _work(self, lease_id: str) -> Work:
        return Work(self._slot.spool / lease_id)


def _unknown(what: str) -> CapacityError:
    return CapacityError(f"SARK does not support {what}", hint="use a Prony server for such jobs")


def _job_id(lease_id: str) -> str:
    return lease_id.rpartition(".")[0]


def _has_ended(told: dict[str, Any]) -> bool:
    return str(told.get("status", "")).lower() in _OVER


def _drop_empty(told: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of a job; a key without a value says nothing."""
    return {key: value for key, value in told.items() if value is not None}
