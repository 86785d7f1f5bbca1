"""Carry out leases one at a time, track the agent's state, and hand back jobs that this device cannot run.

A script's folder is fetched from the server into this agent's cache, by its checksum.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from prony.agent.attempt import RunningAttempt, Why, address_towards
from prony.agent.capabilities import latest_calibration
from prony.agent.finalize_attempt import Ending, decline_work, salvage, seal
from prony.agent.logs import AgentLog
from prony.agent.metrics import AgentMetrics
from prony.agent.server_client import Refused, ask_again_for
from prony.agent.settings import AgentSettings
from prony.agent.spool import Meta, Spool, Work
from prony.agent.stopping import Stopping, cancel_tasks
from prony.agent.uploader import Uploader
from prony.app.tracing import open_tracer
from prony.errors import InputError, PronyError, TransportError
from prony.model.agent import AgentState
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.result import Failure, Result, ResultState
from prony.model.states import AGENT, check_transition
from prony.model.workload import Workload
from prony.ports.agent_link import ServerLink
from prony.ports.tracing import Span, SpanFacts
from prony.ports.workload import command_kinds
from prony.runner.script_folders import REFERENCE, unpack_scripts
from prony.store.home import Home


class LeaseWorker(Protocol):
    """What an agent does with leases: runs them here, or has them run elsewhere."""

    has_leftovers: bool

    @property
    def holding(self) -> tuple[str, ...]:
        """Return every lease that this agent answers for."""
        ...

    @property
    def open_lease_ids(self) -> tuple[str, ...]:
        """Return every lease that this agent has heard of and not brought to its end."""
        ...

    @property
    def outliving(self) -> tuple[str, ...]:
        """Return the leases of an earlier life whose jobs went on without it."""
        ...

    @property
    def is_busy(self) -> bool:
        """Is there a job under way?"""
        ...

    async def take_up(self) -> None:
        """Go on with what an earlier life left, or make late results of it."""
        ...

    async def run(self) -> None:
        """Do what is to be done beside single leases, for as long as this is not cancelled."""
        ...

    async def carry_out(self, lease: Lease) -> Lease | None:
        """Take a lease; return when the next may be asked for, or with the next where the server gave it."""
        ...

    def cancel(self, lease_ids: Collection[str]) -> None:
        """Have the jobs of these leases stopped, as far as they are under way."""
        ...

    def note_enrolled(self) -> None:
        """Hear that the server knows this life of the agent."""
        ...

    def note_time(self) -> None:
        """Let the metrics say how long the job has been running."""
        ...


class AgentCondition:
    """The agent's state as it sees itself. One that drains stays so until it may go on, whatever it runs."""

    def __init__(self, told: Callable[[AgentState, AgentState], None] = lambda *_: None) -> None:
        self.state = AgentState.ACTIVE
        self._told = told

    def to(self, state: AgentState) -> None:
        """Move, or refuse; what an agent that drains does does not change that it drains."""
        if state is self.state or (self.is_draining and state in (AgentState.BUSY, AgentState.CLEANUP)):
            return
        check_transition(AGENT, "this agent", self.state, state)
        before, self.state = self.state, state
        self._told(before, state)

    def rest(self) -> None:
        """Be ready for the next job, unless there is to be none."""
        if not self.is_draining:
            self.to(AgentState.ACTIVE)

    @property
    def is_draining(self) -> bool:
        return self.state is AgentState.DRAINING


_FETCH_S = 60.0


async def _fetch_scripts(job: Job, link: ServerLink, home: Home) -> None:
    """Have the folder of a script here, if it has one that travels; what cannot be had is raised."""
    found = REFERENCE.fullmatch(job.workload.folder or "")
    if found is None or (home.cache / "scripts" / found[1]).is_dir():
        return
    (home.cache / "scripts").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".coming-", dir=home.cache / "scripts") as scratch:
        tar = Path(scratch) / "scripts.tar"
        await ask_again_for(lambda: link.scripts(found[1], tar), _FETCH_S)
        await asyncio.to_thread(unpack_scripts, tar, found[1], home.cache)


def _refuse_kind(workload: Workload, allowed: Collection[str]) -> Failure | None:
    """Return why the owner's `--kinds` keep a job from being run here. A server may be too old to see it."""
    hint = "the agent's owner can allow it: `prony agent start --kinds`"
    if workload.kind not in allowed:
        message = f"this agent does not run jobs of the kind {workload.kind}"
    elif workload.has_own_command and not any(one in allowed for one in command_kinds()):
        message = "the job names a command of its own, and this agent runs no commands of submitters"
        hint = f"{hint} with {' or '.join(command_kinds())}"
    else:
        return None
    return Failure(code="kind_refused", message=message, hint=hint, whose="capacity")


async def prepare_job(job: Job, context: AgentContext) -> Failure | None:
    """Have here what a job needs of the server; return why it is not run at all, where the answer would stay so."""
    refusal = _refuse_kind(job.workload, context.settings.kinds)
    if refusal is not None:
        return refusal
    try:
        await _fetch_scripts(job, context.link, context.home)
    except (Refused, InputError) as exc:
        error = exc.error if isinstance(exc, Refused) else exc
        return Failure(code=error.code, message=error.message, hint=error.hint, phase="prepare", whose="input")
    return None


def why_returned(error: PronyError) -> str:
    """Say what kept a job from being run here, of the two that need not stay so."""
    if isinstance(error, TransportError):
        return "its scripts could not be fetched from the server"
    return "it cannot be stored on the agent's disk"


_HAND_BACK_S = 5.0


class AgentContext:
    """What an agent shares with its worker: the way to the server, the spool, and how the agent is doing."""

    def __init__(self, home: Home, link: ServerLink, settings: AgentSettings, spool: Spool, *, log: AgentLog) -> None:
        self.home = home
        self.link = link
        self.settings = settings
        self.spool = spool
        self.log = log
        self.stopping = Stopping()
        self.metrics = AgentMetrics()
        self.tracer = open_tracer(settings.otlp_url, "prony-agent")
        self.uploader = Uploader(link, spool, metrics=self.metrics, log=log, tracer=self.tracer)
        self.condition = AgentCondition(self._note_condition)
        self._note_condition(AgentState.ACTIVE, AgentState.ACTIVE)

    async def hand_back(self, lease_id: str, reason: str) -> None:
        """Let another agent have a job at once."""
        self.metrics.count("leases_returned_total")
        try:
            await ask_again_for(lambda: self.link.hand_back(lease_id, reason), _HAND_BACK_S)
            self.log.info("job returned", lease_id=lease_id, reason=reason)
        except (TransportError, Refused) as exc:
            # Nobody renews it from now on, so it runs out; or this agent is given it again.
            self.log.warning("could not return the job", lease_id=lease_id, reason=str(exc))

    def _note_condition(self, before: AgentState, state: AgentState) -> None:
        """Let metrics and log tell what the agent is doing."""
        for one in (AgentState.ACTIVE, AgentState.BUSY, AgentState.CLEANUP, AgentState.DRAINING):
            self.metrics.set("state", float(one is state), state=one.value)
        if before is not state:
            self.log.debug("state", before=before.value, state=state.value)


def run_facts(lease: Lease) -> SpanFacts:
    """Return what a span tells of the job that it runs."""
    job = lease.job
    return {"experiment": job.experiment_id, "job": job.id, "attempt": lease.attempt, "kind": job.workload.kind}


def note_result(span: Span, result: Result) -> None:
    """Let a span tell how its job ended."""
    span.add_facts(state=result.state.value)
    if result.failure is not None:
        span.add_facts(failure=result.failure.code)
        span.fail(result.failure.message)


_HURRY_S = 2.0
LEAVING = "the agent is being stopped"


class Worker:
    """Carries out one lease at a time."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.log = context.log
        self.attempt: RunningAttempt | None = None
        # Something could not be kept for want of room: its folder lies in the spool until there is some.
        self.has_leftovers = False
        self._begun_s = 0.0

    @property
    def holding(self) -> tuple[str, ...]:
        """Return every lease that this agent answers for: the one that runs and those whose results wait here."""
        return self._with_running(self.context.uploader.answered_for)

    @property
    def open_lease_ids(self) -> tuple[str, ...]:
        """Return every lease that this agent has heard of and not brought to its end."""
        return self._with_running(self.context.uploader.waiting_lease_ids)

    def _with_running(self, lease_ids: tuple[str, ...]) -> tuple[str, ...]:
        running = (self.attempt.lease.id,) if self.attempt else ()
        return tuple(dict.fromkeys((*running, *lease_ids)))

    @property
    def outliving(self) -> tuple[str, ...]:
        """Return nothing: a runner ends with its agent."""
        return ()

    @property
    def is_busy(self) -> bool:
        return self.attempt is not None

    def cancel(self, lease_ids: Collection[str]) -> None:
        """Stop the job that runs, where it is one of these."""
        if self.attempt is not None and self.attempt.lease.id in lease_ids:
            self.attempt.ask_to_stop(Why.CANCELLED)

    async def take_up(self) -> None:
        """Make late results of what an earlier life left."""
        self.has_leftovers = False
        for work in await asyncio.to_thread(self.context.spool.find_unfinished):
            try:
                is_kept = await asyncio.to_thread(salvage, self.context.spool, work)
            except PronyError as exc:
                self.has_leftovers = True
                self.log.alarm("cannot recover an unfinished job", work=work.path.name, reason=exc.message)
                continue
            self.log.info(
                "recovered an unfinished job" if is_kept else "removed an unfinished job without results",
                work=work.path.name,
            )

    async def run(self) -> None:
        """Do nothing beside the one lease."""
        await asyncio.Event().wait()

    async def carry_out(self, lease: Lease) -> Lease | None:
        """Run one job and see to its result; return the next lease where the server gave it with the answer.

        Raises where this device cannot do it, as with a full disk or a server that is away; it is handed back then.
        """
        log = self.log.bound(job_id=lease.job.id, experiment_id=lease.job.experiment_id, attempt=lease.attempt)
        self.context.condition.to(AgentState.BUSY)
        try:
            work = await asyncio.to_thread(self.context.spool.begin, lease)
            meta = work.meta() if work.is_packed else await self._run_traced(lease, work, log)
            self.context.condition.to(AgentState.CLEANUP)
            return await self._deliver(work, meta) if meta else None
        except PronyError as exc:
            self.has_leftovers = True
            log.alarm(f"job returned: {why_returned(exc)}", reason=exc.message, hint=exc.hint)
            await self.context.hand_back(lease.id, f"{why_returned(exc)}: {exc.message}")
            raise
        finally:
            self.attempt = None
            self.context.condition.rest()

    # Inside

    async def _run_traced(self, lease: Lease, work: Work, log: AgentLog) -> Meta | None:
        with self.context.tracer.span("run", run_facts(lease), parent=lease.traceparent) as span:
            meta, result = await self._run_job(lease, work, log)
            note_result(span, result)
            return meta

    async def _run_job(self, lease: Lease, work: Work, log: AgentLog) -> tuple[Meta | None, Result]:
        """Have the result of a job on this disk; no packed one where there is to be none."""
        refusal = await prepare_job(lease.job, self.context)
        if refusal is not None:
            log.warning("job refused", reason=refusal.message)
            result = await asyncio.to_thread(decline_work, work, lease.job, self.context.home, refusal)
            return await self._pack_result(work, result, log), result
        self.attempt = RunningAttempt(lease, work, self.context.link, log)
        log.info("job started", title=lease.job.title, lease_id=lease.id)
        ending = await self._run_attempt(self.attempt)
        self.context.condition.to(AgentState.CLEANUP)
        if ending.exit_code not in (0, 1):
            await asyncio.to_thread(
                self.context.spool.check_room
            )  # what a full disk did to the runner is no fault of the job
        result = await asyncio.to_thread(seal, work, lease.job, self.context.home, ending)
        why = self.attempt.why
        if why in (Why.DRAINED, Why.LOST) and result.state is not ResultState.COMPLETE:
            await asyncio.to_thread(self.context.spool.remove, work)
            if why is Why.DRAINED:
                await self.context.hand_back(lease.id, LEAVING)
            return None, result
        return await self._pack_result(work, result, log, late=why is Why.LOST), result

    async def _run_attempt(self, attempt: RunningAttempt) -> Ending:
        calibration_id = await asyncio.to_thread(_keep_calibration, self.context.home, self.log)
        self._begun_s = asyncio.get_running_loop().time()
        draining = asyncio.create_task(self._watch_drain(attempt))
        try:
            variables = self.context.settings.variables()
            if attempt.lease.job.part is not None:
                found = await asyncio.to_thread(address_towards, self.context.link.base)
                variables["PRONY_ADDRESS"] = self.context.settings.address or found
            return await attempt.perform(self.context.home, calibration_id, variables)
        finally:
            await cancel_tasks(draining)
            self.context.metrics.count("job_seconds_total", asyncio.get_running_loop().time() - self._begun_s)
            self.context.metrics.set("job_running_seconds", 0)

    async def _watch_drain(self, attempt: RunningAttempt) -> None:
        """Let a job end in its time once this agent is to stop, and stop it when that time is over."""
        await self.context.stopping.asked.wait()
        try:
            async with asyncio.timeout(self.context.settings.drain_timeout_s):
                await self.context.stopping.hurried.wait()
        except TimeoutError:
            attempt.ask_to_stop(Why.DRAINED)
        else:
            attempt.ask_to_stop(Why.DRAINED, grace_s=_HURRY_S)

    async def _pack_result(self, work: Work, result: Result, log: AgentLog, *, late: bool = False) -> Meta:
        meta = await asyncio.to_thread(self.context.spool.keep, work, late=late)
        self.context.metrics.count("jobs_total", state=result.state.value)
        code = result.failure.code if result.failure else None
        log.info("job ended", state=result.state.value, failure=code, bytes=meta.size)
        return meta

    async def _deliver(self, work: Work, meta: Meta) -> Lease | None:
        sending = self.context.uploader.deliver(work, meta, ask_next=not self.context.stopping.is_asked)
        answer = await self.context.stopping.unless_hurried(sending)
        return answer.lease if answer else None

    def note_enrolled(self) -> None:
        """Do nothing: no job of an earlier life goes on here."""

    def note_time(self) -> None:
        """Let the metrics say how long the job has been running."""
        if self.attempt is not None:
            self.context.metrics.set("job_running_seconds", asyncio.get_running_loop().time() - self._begun_s)


def _keep_calibration(home: Home, log: AgentLog) -> str | None:
    """Keep this machine's newest calibration where a runner finds it; return its id, if it was ever calibrated."""
    from prony.runner.environment import keep_calibration

    try:
        found = latest_calibration(home)
        return keep_calibration(home.cache, found) if found else None
    except PronyError as exc:
        log.warning("cannot read the calibration", reason=exc.message)
        return None
