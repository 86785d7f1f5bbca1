"""Carry out leases at a target: many at once, each written down before anything is sent, so that no crash loses one.

One thread speaks to the target, and one look asks about all jobs there.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from prony.agent.attempt import Why
from prony.agent.finalize_attempt import Ending, decline_work, seal
from prony.agent.logs import AgentLog
from prony.agent.reporter import Reporter
from prony.agent.spool import Meta, Work, lease_of
from prony.agent.stopping import cancel_tasks
from prony.agent.worker import AgentContext, note_result, prepare_job, run_facts, why_returned
from prony.app import results
from prony.app.job_log import JobLog
from prony.app.targets import open_executor
from prony.client.wire import delays
from prony.dispatch.placing import explain_ending, next_look_s, observe, placement_key, sum_expected_s
from prony.errors import AccessError, PronyError, StoreError, TransportError
from prony.model.agent import AgentState
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.result import Result, ResultState
from prony.model.target import Handle, Payload, Placement, PlacePhase, Target
from prony.ports.agent_link import ServerLink
from prony.ports.clock import SystemClock
from prony.runner.context import failure_of
from prony.runner.folder import ResultFolder
from prony.runner.job_folder import RESULT, write_job_folder
from prony.runner.script_folders import REFERENCE
from prony.store.home import Home
from prony.store.placements import Placements

T = TypeVar("T")

_OVER = (PlacePhase.ENDED, PlacePhase.LOST)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_FLUSH_S = 2.0


class PlacedAttempt:
    """A lease whose job is at a target, or on its way there."""

    def __init__(self, lease: Lease, work: Work, placement: Placement, link: ServerLink, log: AgentLog) -> None:
        self.lease = lease
        self.work = work
        self.placement = placement
        self.why: Why | None = None
        self.meta: Meta | None = None  # of a result that is packed, while its rest is still at the target
        self.failures = 0
        self.looks = 0
        self.due_s = 0.0
        self.woken: Callable[[], None] = lambda: None
        self._log = log
        self.reporter = Reporter(link, lease.id, JobLog(work.log), on_cancel=self._lose, log=log)

    @property
    def handle(self) -> Handle:
        return self.placement.handle or Handle(key=self.placement.key)

    @property
    def is_under_way(self) -> bool:
        return self.meta is None and self.placement.phase is not PlacePhase.MADE and self.placement.phase not in _OVER

    def ask_to_stop(self, why: Why) -> None:
        """Have the job stopped and what was measured kept; the first reason stands."""
        if self.why is None and self.meta is None:
            self.why = why
            self._log.info("stopping the job", reason=why.value)
            self.reporter.say(f"stopped: {why.value}")
            self.woken()

    def _lose(self, is_lost: bool) -> None:
        self.ask_to_stop(Why.LOST if is_lost else Why.CANCELLED)


class TargetWorker:
    """Has leases carried out at a target, as many at once as it has slots."""

    def __init__(self, context: AgentContext, target: Target) -> None:
        self.context = context
        self.log = context.log
        self.has_leftovers = False
        self._target = target
        self._executor = open_executor(target, context.home)
        self._home_id = Placements(context.home).home_id()
        self._clock = SystemClock()
        self._attempts: dict[str, PlacedAttempt] = {}  # by lease
        self._reporting: dict[str, asyncio.Task[None]] = {}
        self._remains: list[Handle] = []  # at the target, of results that an earlier life packed
        self._woken = asyncio.Event()
        self._freed = asyncio.Event()
        self._enrolled = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="target")

    # What the agent asks

    @property
    def holding(self) -> tuple[str, ...]:
        """Return every lease that this agent answers for: those at the target and those whose results wait here."""
        return tuple(dict.fromkeys((*self._attempts, *self.context.uploader.answered_for)))

    @property
    def open_lease_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._attempts, *self.context.uploader.waiting_lease_ids)))

    @property
    def outliving(self) -> tuple[str, ...]:
        """Return the leases whose jobs went on at the target while no agent was there."""
        return self.open_lease_ids

    @property
    def is_busy(self) -> bool:
        return bool(self._attempts)

    def cancel(self, lease_ids: Collection[str]) -> None:
        """Have those of these jobs stopped that are at the target."""
        for lease_id in lease_ids:
            if lease_id in self._attempts:
                self._attempts[lease_id].ask_to_stop(Why.CANCELLED)

    def note_enrolled(self) -> None:
        """Begin to report what an earlier life placed."""
        self._enrolled.set()

    def note_time(self) -> None:
        """Let the metrics say how many jobs are at the target."""
        self.context.metrics.set("jobs_placed", len(self._attempts))

    async def take_up(self) -> None:
        """Go on with what an earlier life placed, or was about to."""
        self.has_leftovers = False
        placed = await asyncio.to_thread(self.context.spool.find_placed)
        self._remains = [one.handle or Handle(key=one.key) for work, one in placed if work.is_packed]
        for work in await asyncio.to_thread(self.context.spool.find_unfinished):
            lease = lease_of(work)
            if lease is None:
                await asyncio.to_thread(self.context.spool.remove, work)
            elif lease.id not in self._attempts:
                placement = work.find_placement() or self._make_placement(lease)
                self.log.info("job resumed", job_id=lease.job.id, phase=placement.phase.value)
                self._begin(lease, work, placement)

    async def carry_out(self, lease: Lease) -> Lease | None:
        """Have a job placed; return as soon as there is a slot for another.

        Raises where this disk cannot keep it or its scripts cannot be fetched; the job is handed back then.
        """
        if lease.id not in self._attempts:
            try:
                await self._accept(lease)
            except PronyError as exc:
                why = why_returned(exc)
                self.log.alarm(f"job returned: {why}", job_id=lease.job.id, reason=exc.message)
                await self.context.hand_back(lease.id, f"{why}: {exc.message}")
                raise
        while len(self._attempts) >= self.context.settings.slots and not self.context.stopping.is_asked:
            self._freed.clear()
            await self.context.stopping.unless_asked(self._freed.wait())
        return None

    async def _accept(self, lease: Lease) -> None:
        work = await asyncio.to_thread(self.context.spool.begin, lease)
        if work.is_packed:
            self.context.uploader.offer(work.meta())
            return
        refusal = await prepare_job(lease.job, self.context)
        if refusal is not None:
            await asyncio.to_thread(decline_work, work, lease.job, self.context.home, refusal)
            self.context.uploader.offer(await asyncio.to_thread(self.context.spool.keep, work))
            return
        placement = self._make_placement(lease)
        await asyncio.to_thread(self.context.spool.keep_placement, work, placement)
        self.log.info("job started", job_id=lease.job.id, title=lease.job.title, lease_id=lease.id)
        self._begin(lease, work, placement)

    def _make_placement(self, lease: Lease) -> Placement:
        return Placement(
            key=placement_key(lease.job.id, lease.attempt, self._home_id),
            experiment_id=lease.job.experiment_id,
            job_ids=(lease.job.id,),
            target=self._target,
            attempt=lease.attempt,
            made_at=self._clock.now(),
        )

    def _begin(self, lease: Lease, work: Work, placement: Placement) -> None:
        log = self.log.bound(job_id=lease.job.id, experiment_id=lease.job.experiment_id, attempt=lease.attempt)
        attempt = PlacedAttempt(lease, work, placement, self.context.link, log)
        attempt.woken = self._woken.set
        attempt.reporter.place(placement.note())
        self._attempts[lease.id] = attempt
        self._reporting[lease.id] = asyncio.create_task(self._report(attempt.reporter))
        self.context.condition.to(AgentState.BUSY)
        self._woken.set()

    async def _report(self, reporter: Reporter) -> None:
        """Report once the server knows this life: until then it takes its leases for lost, and would say so."""
        await self._enrolled.wait()
        await reporter.run()

    # Beside the leases

    async def run(self) -> None:
        """Bring every job that is placed to its end, for as long as this is not cancelled."""
        pauses = delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        is_reached = True
        try:
            while True:
                self._woken.clear()
                try:
                    await self._go_round()
                except TransportError as exc:
                    if is_reached:
                        self.log.warning("the target cannot be reached; still trying", reason=exc.message)
                    is_reached = False
                    await asyncio.sleep(next(pauses))
                    continue
                if not is_reached:
                    self.log.info("the target can be reached again")
                    is_reached, pauses = True, delays(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
                await self._rest()
        finally:
            await cancel_tasks(*self._reporting.values())
            self._pool.shutdown(wait=False)

    async def _rest(self) -> None:
        """Wait until the next look is due, or something is to be done."""
        due = [attempt.due_s for attempt in self._attempts.values() if attempt.is_under_way]
        pause_s = max(0.0, min(due) - _now_s()) if due else None
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._woken.wait()

    async def _go_round(self) -> None:
        """Do the next step of each. What failed last comes last, so that it holds up nobody."""
        if self._remains:
            await self._ask(self._executor.end, self._remains)
            self._remains = []
        await self._each(self._withdraw, lambda one: one.why is not None and one.meta is None)
        await self._each(self._submit, lambda one: one.placement.phase is PlacePhase.MADE)
        await self._look([one for one in self._attempts.values() if one.is_under_way and one.due_s <= _now_s()])
        await self._each(self._collect, lambda one: one.meta is None and one.placement.phase in _OVER)
        await self._deliver([one for one in self._attempts.values() if one.meta is not None])

    async def _each(self, step: Callable[[PlacedAttempt], Any], is_meant: Callable[[PlacedAttempt], bool]) -> None:
        for attempt in sorted(filter(is_meant, self._attempts.values()), key=lambda one: one.failures):
            try:
                await step(attempt)
            except TransportError:
                attempt.failures += 1
                raise

    async def _submit(self, attempt: PlacedAttempt) -> None:
        if attempt.why is not None:
            return
        try:
            handle = await self._ask(partial(self._send, attempt))
        except (TransportError, AccessError):  # not this job's fault: tried again, or told to whoever started the agent
            raise
        except PronyError as exc:
            await self._refuse(attempt, exc)
            return
        await self._save(attempt, phase=PlacePhase.SUBMITTED, handle=handle, submitted_at=self._clock.now())

    def _send(self, attempt: PlacedAttempt) -> Handle:
        outgoing = attempt.work.path / "out"
        shutil.rmtree(outgoing, ignore_errors=True)
        job = attempt.lease.job
        try:
            anchored = _find_scripts(job, self.context.home)
            write_job_folder(outgoing, [job], [anchored], variables=self.context.settings.variables())
            expected_s = sum_expected_s([job])
            return self._executor.submit(
                Payload(key=attempt.placement.key, folder=str(outgoing), expected_s=expected_s)
            )
        finally:
            shutil.rmtree(outgoing, ignore_errors=True)

    async def _refuse(self, attempt: PlacedAttempt, error: PronyError) -> None:
        """Make a failure of a job that the target does not take."""
        failure = failure_of(error, phase="prepare")
        await asyncio.to_thread(decline_work, attempt.work, attempt.lease.job, self.context.home, failure)
        attempt.meta = await asyncio.to_thread(self.context.spool.keep, attempt.work)

    async def _look(self, due: list[PlacedAttempt]) -> None:
        """Ask about all of them at once."""
        if not due:
            return
        offsets = {one.placement.key: one.placement.offset for one in due}
        seen = await self._ask(self._executor.look, [one.handle for one in due], offsets)
        for attempt, observation in zip(due, seen, strict=True):
            for event in observation.events:
                attempt.reporter.event(event)
            before = attempt.placement
            attempt.looks = attempt.looks + 1 if observation.phase is before.phase else 0
            attempt.due_s = _now_s() + next_look_s(observation.phase, attempt.looks)
            after = observe(before, observation)
            if after != before:
                await self._keep(attempt, after)

    async def _withdraw(self, attempt: PlacedAttempt) -> None:
        """Stop a job that is not wanted any more, and keep what it measured."""
        await self._ask(self._executor.end, [attempt.handle])
        if attempt.placement.phase is not PlacePhase.MADE and attempt.placement.phase not in _OVER:
            await self._save(attempt, phase=PlacePhase.ENDED)
        await self._collect(attempt)

    async def _collect(self, attempt: PlacedAttempt) -> None:
        """Bring a result here and pack it; done again after a crash it comes to the same."""
        if attempt.placement.handle is not None and attempt.placement.phase is not PlacePhase.LOST:
            await self._ask(self._executor.fetch, attempt.handle, attempt.work.path / "in")
        ended = attempt.placement.model_copy(update={"ended_at": self._clock.now()})
        result = await asyncio.to_thread(_seal_fetched, attempt, ended, self.context.home)
        facts = run_facts(attempt.lease)
        began_ns = int(result.started_at.timestamp() * 1e9)
        with self.context.tracer.span("run", facts, parent=attempt.lease.traceparent, began_ns=began_ns) as span:
            note_result(span, result)
        is_lost = attempt.why is Why.LOST
        if is_lost and result.state is not ResultState.COMPLETE:
            self._remains.append(attempt.handle)
            await self._forget(attempt)
            await asyncio.to_thread(self.context.spool.remove, attempt.work)
            return
        attempt.reporter.place(ended.note())
        if self._enrolled.is_set():
            await attempt.reporter.flush(_FLUSH_S)
        attempt.meta = await asyncio.to_thread(self.context.spool.keep, attempt.work, late=is_lost)
        self.context.metrics.count("jobs_total", state=result.state.value)
        code = result.failure.code if result.failure else None
        self.log.info("job ended", job_id=attempt.lease.job.id, state=result.state.value, failure=code)

    async def _deliver(self, packed: list[PlacedAttempt]) -> None:
        """Leave nothing of what was fetched at the target, and have it sent."""
        if not packed:
            return
        await self._ask(self._executor.end, [one.handle for one in packed])
        for attempt in packed:
            await self._forget(attempt)
            if attempt.meta is not None:
                self.context.uploader.offer(attempt.meta)

    async def _forget(self, attempt: PlacedAttempt) -> None:
        self._attempts.pop(attempt.lease.id, None)
        reporting = self._reporting.pop(attempt.lease.id, None)
        if reporting is not None:
            await cancel_tasks(reporting)
        if not self._attempts:
            self.context.condition.rest()
        self._freed.set()

    async def _save(self, attempt: PlacedAttempt, **changes: object) -> None:
        await self._keep(attempt, attempt.placement.model_copy(update=changes))

    async def _keep(self, attempt: PlacedAttempt, placement: Placement) -> None:
        await asyncio.to_thread(self.context.spool.keep_placement, attempt.work, placement)
        attempt.placement = placement
        attempt.reporter.place(placement.note())

    async def _ask(self, verb: Callable[..., T], *given: Any) -> T:
        """Call the executor: one call at a time, in a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(verb, *given))


def _find_scripts(job: Job, home: Home) -> Job:
    """Return the job with the path of its script's folder in this agent's cache, if it has one that travels."""
    found = REFERENCE.fullmatch(job.workload.folder or "")
    if found is None:
        return job
    path = str(home.cache / "scripts" / found[1])
    return Job.read_json(job.model_dump_json().replace(json.dumps(found[0]), json.dumps(path)))


def _seal_fetched(attempt: PlacedAttempt, placement: Placement, home: Home) -> Result:
    """Make a folder that can be sent of what came, if anything did."""
    work, job = attempt.work, attempt.lease.job
    came = work.path / "in" / RESULT / job.id
    # Its owner's options, with hosts and accounts, are nobody else's business.
    shown = placement.model_copy(update={"target": placement.target.model_copy(update={"options": {}})})
    if results.is_begun(came):
        shutil.rmtree(work.folder, ignore_errors=True)
        with suppress(StoreError):  # damaged: the job is told as failed, without a result
            results.mark_placed(came, shown)
            came.rename(work.folder)
    shutil.rmtree(work.path / "in", ignore_errors=True)
    failure, is_stopped = explain_ending(placement), attempt.why is not None
    result = seal(work, job, home, Ending(1, cancelled=is_stopped, failure=failure))
    if result.state is ResultState.PARTIAL and not is_stopped:
        kept = ResultFolder(work.folder, job, result)
        kept.update(failure=failure)
        kept.save()
        return kept.result
    return result


def _now_s() -> float:
    return asyncio.get_running_loop().time()
