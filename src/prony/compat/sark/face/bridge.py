"""Keep the fleet's queue and the lists in which Dumont workers look for jobs alike.

The store alone is true. Whatever the lists lost, with a Redis that was restarted or a worker that died, is put there
again; whatever they hold that is not wanted any more is taken out.

A Redis or this process keeps the lists; workers leave their results in one, too.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from prony.app.fleet.fleet import Fleet
from prony.compat.sark.face.intake import Claims, Intake
from prony.compat.sark.face.settings import WHO, FaceSettings
from prony.compat.sark.face.workers import every_queue, queue_of, queues_of, served_queues
from prony.dispatch.outcomes import is_due
from prony.errors import NotFoundError, PronyError, TransportError
from prony.model.agent import AgentState
from prony.model.queue import JobState
from prony.model.result import Failure
from prony.store import campaigns, queue
from prony.store.writer import Transaction

if TYPE_CHECKING:
    from prony.store.database import Row


class Queues(Protocol):
    """What fails because the lists cannot be reached is a TransportError; nothing of it was done, or all of it."""

    # Is a job lent in the moment in which it is taken? Then what is in no list, and not lent, was never taken.
    is_exact: bool

    async def push(self, queue: str, job_ids: Sequence[str]) -> None:
        """Add jobs behind those that wait."""
        ...

    async def remove(self, queue: str, job_ids: Sequence[str]) -> None:
        """Take jobs out wherever they stand; those that are not there do no harm."""
        ...

    async def contents(self, queues: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the jobs that wait in each."""
        ...

    async def sizes(self, queues: Sequence[str]) -> dict[str, int]: ...

    async def results(self, most: int) -> tuple[bytes, ...]:
        """Return reports, the oldest first, and leave them where they are."""
        ...

    async def forget_result(self, report: bytes) -> None:
        """Take out one report, which is kept elsewhere now."""
        ...

    async def clear(self, queues: Sequence[str]) -> None: ...

    async def describe(self) -> dict[str, object]:
        """Return where the lists are, and whether they answer."""
        ...

    async def close(self) -> None: ...


_MOST_RESULTS = 100
_MOST_QUESTIONS = 200


class Bridge:
    """Begun with the server and ended with it; one for each set of lists."""

    def __init__(self, fleet: Fleet, queues: Queues, settings: FaceSettings) -> None:
        self.fleet = fleet
        self.queues = queues
        self.settings = settings
        self.claims = Claims()
        self.intake = Intake(fleet, self.claims)
        self.is_connected = True
        self.timed_out = 0
        self._pushed: set[tuple[str, int]] = set()  # job and attempt: put into its list by this process
        self._missing: dict[str, float] = {}  # job that waits and is in no list -> since when
        self._unserved: dict[str, float] = {}  # job that no living worker could take -> until when it waits
        self._running: dict[str, float] = {}  # lease -> until when it may last
        self._left: dict[str, float] = {}  # lease whose worker said to be free -> since when
        self._drained_at = 0.0  # when the results list was last seen to be empty
        self._is_first = True

    async def run(self) -> None:
        """Go rounds until cancelled; without the lists, or the database, the next round makes up for it."""
        looked_at = -self.settings.look_s
        while True:
            try:
                await self.take_results()
                if self.fleet.context.now() - looked_at >= self.settings.look_s:
                    looked_at = self.fleet.context.now()
                    await self.look()
                self._connect(is_there=True)
            except TransportError as exc:
                self._connect(is_there=False, message=exc.message)
            except PronyError as exc:
                self.fleet.context.hook("maintenance_failed", message=exc.message)
            await asyncio.sleep(self.settings.poll_s)

    def _connect(self, *, is_there: bool, message: str = "") -> None:
        if is_there != self.is_connected:
            self.fleet.context.hook("sark_queues", connected=is_there, message=message)
        self.is_connected = is_there

    # In

    async def take_result(self, raw: bytes) -> None:
        """Record one report that is in no list yet."""
        await self.intake.take(raw)

    async def take_results(self) -> None:
        """Record what workers reported. A report leaves its list when it is recorded, and not before."""
        while reports := await self.queues.results(_MOST_RESULTS):
            for raw in reports:
                await self.intake.take(raw)
                await self.queues.forget_result(raw)
        self._drained_at = self.fleet.context.now()

    # Out

    async def push_new(self, campaign_id: str) -> None:
        """Put a new campaign's jobs into their lists at once; the next look does it where this fails."""
        rows = await self.fleet.context.read(lambda connection: campaigns.open_jobs(connection, campaign_id))
        fresh = [row for row in rows if row.state == JobState.WAITING]
        try:
            await self._push([row for row in fresh if (row.job_id, row.attempt) not in self._pushed])
        except TransportError as exc:
            self._connect(is_there=False, message=exc.message)

    async def look(self) -> None:
        """Compare what waits with what is in the lists, and what runs with how long it may."""
        names = every_queue(self.fleet.state.agents.values())
        contents = await self.queues.contents(names)
        rows = await self.fleet.context.read(
            campaigns.open_jobs
        )  # after the lists: what is pushed meanwhile is known here
        waiting = [row for row in rows if row.state == JobState.WAITING]
        pinned = {queue_of(row) for row in waiting} - set(names)
        contents |= await self.queues.contents(sorted(pinned)) if pinned else {}
        await self._clean(contents, {row.job_id for row in waiting})
        await self._push(self._lost(waiting, {job_id for ids in contents.values() for job_id in ids}))
        await self._end_unserved(waiting)
        await self._end_overdue([row for row in rows if row.state == JobState.LEASED])
        self.claims.expire(self.fleet.context.now() - self.settings.claim_s)
        self._pushed &= {(row.job_id, row.attempt) for row in waiting}
        self._is_first = False

    async def _clean(self, contents: dict[str, tuple[str, ...]], waiting: set[str]) -> None:
        """Take out jobs that are lent, ended or cancelled; what is not ours stays."""
        strange = {one for ids in contents.values() for one in ids if one not in waiting}
        if not strange:
            return
        states = await self.fleet.context.read(lambda connection: campaigns.states(connection, sorted(strange)))
        for name, ids in contents.items():
            gone = [one for one in ids if states.get(one, JobState.WAITING) != JobState.WAITING]
            if gone:
                await self.queues.remove(name, gone)

    def _lost(self, waiting: Sequence[Row[Any]], present: set[str]) -> list[Row[Any]]:
        """Return the jobs to put into their lists: those that never were in one, and those that left it for too long.

        After a start nobody knows which of them a worker has just taken, so they are given the time to say so.
        """
        now, at = self.fleet.context.now(), self.fleet.context.clock.now().timestamp()
        absent = [row for row in waiting if row.job_id not in present and is_due(row.not_before, at)]
        self._missing = {row.job_id: self._missing.get(row.job_id, now) for row in absent}
        found = []
        for row in absent:
            was_in = (self._is_first and not self.queues.is_exact) or (row.job_id, row.attempt) in self._pushed
            if not was_in or now - self._missing[row.job_id] >= self.settings.claim_s:
                found.append(row)
        return found

    async def _push(self, rows: Iterable[Row[Any]]) -> None:
        by_queue: dict[str, list[Row[Any]]] = defaultdict(list)
        for row in rows:
            by_queue[queue_of(row)].append(row)
        for name, together in by_queue.items():
            # Noted before: whoever takes it may ask for it before we hear that it is there.
            self._pushed |= {(row.job_id, row.attempt) for row in together}
            try:
                await self.queues.push(name, [row.job_id for row in together])
            except TransportError:
                self._pushed -= {(row.job_id, row.attempt) for row in together}
                raise
            for row in together:
                self._missing.pop(row.job_id, None)

    # Who has what

    async def worker_is_busy(self, worker_id: str, address: str) -> None:
        """Lend a worker the job that it has taken, as far as can be told."""
        self.claims.begin(worker_id)
        known_agent = self.fleet.state.agents.get(worker_id)
        asked = self.claims.latest(_MOST_QUESTIONS)
        if known_agent is None or not asked:
            return
        rows = await self.fleet.context.read(lambda connection: campaigns.open_jobs(connection, among=asked))
        own = set(queues_of(known_agent))
        fitting = {row.job_id: row for row in rows if row.state == JobState.WAITING and queue_of(row) in own}
        for job_id in self.claims.candidates(fitting, address):
            if await self._is_listed(fitting[job_id]):
                continue
            self.claims.forget(job_id)
            if await self.fleet.leases.take(job_id, worker_id) is not None:
                return

    async def _is_listed(self, row: Row[Any]) -> bool:
        name = queue_of(row)
        try:
            return row.job_id in (await self.queues.contents([name]))[name]
        except TransportError:
            return False  # it was asked for, and whoever asks has taken it

    async def worker_is_idle(self, worker_id: str) -> None:
        """Remember of each lease that its worker is free again: a report comes just after that, or never."""
        if self.claims.end(worker_id):
            for lease_id in self.leases_of(worker_id):
                self._left.setdefault(lease_id, self.fleet.context.now())

    def allows(self, worker_id: str) -> bool:
        """May a worker have jobs? Not one that is being drained."""
        known_agent = self.fleet.state.agents.get(worker_id)
        return known_agent is None or known_agent.state is not AgentState.DRAINING

    async def lend(self, job_id: str, worker_id: str) -> bool:
        """Lend a job to a worker that is just taking it; False where it may not have it any more."""
        return await self.fleet.leases.take(job_id, worker_id) is not None

    def leases_of(self, worker_id: str) -> tuple[str, ...]:
        return tuple(held.lease_id for held in self.fleet.state.held.values() if held.agent_id == worker_id)

    # What does not end by itself

    async def _end_overdue(self, leased: Sequence[Row[Any]]) -> None:
        """Take jobs from workers that run them for too long, or that are free again and brought no result."""
        now = self.fleet.context.now()
        self._running = await self._deadlines({row.lease_id: row.job_id for row in leased}, self._running)
        self._left = {row.lease_id: self._left[row.lease_id] for row in leased if row.lease_id in self._left}
        for row in leased:
            if now > self._running[row.lease_id]:
                self.timed_out += 1
                await self._lose(row.lease_id, f"worker {row.agent_id} took longer than the time limit of the job")
            elif self._is_left(row.lease_id) and row.job_id not in self.intake.in_hand:
                await self._lose(row.lease_id, f"worker {row.agent_id} is free again but sent no result")

    async def _deadlines(self, jobs: dict[str, str], known: dict[str, float]) -> dict[str, float]:
        """Return until when each may take, from when this process first saw it; `jobs` maps it to its job."""
        fresh = sorted({job_id for key, job_id in jobs.items() if key not in known})
        limits = (
            await self.fleet.context.read(lambda connection: campaigns.limits_s(connection, fresh)) if fresh else {}
        )
        now = self.fleet.context.now()
        return {key: known.get(key, now + limits.get(job_id, self.settings.job_s)) for key, job_id in jobs.items()}

    def _is_left(self, lease_id: str) -> bool:
        """Is its worker free for so long that its report would have been seen?"""
        since = self._left.get(lease_id)
        return since is not None and self._drained_at - since > self.settings.report_s

    async def _lose(self, lease_id: str, reason: str) -> None:
        def act(transaction: Transaction) -> None:
            self.fleet.transitions.put_back(transaction, lease_id, "lost", reason, counts=True)

        try:
            await self.fleet.context.write(act)
        except NotFoundError:  # deleted meanwhile
            return
        self.fleet.context.hook("sark_lease_lost", lease=lease_id, reason=reason)

    async def _end_unserved(self, waiting: Sequence[Row[Any]]) -> None:
        """Let a job fail that no living worker could have taken for as long as a job may take: a campaign ends."""
        served, now = served_queues(self.fleet.state.agents.values()), self.fleet.context.now()
        unserved = [row for row in waiting if queue_of(row) not in served]
        self._unserved = await self._deadlines({row.job_id: row.job_id for row in unserved}, self._unserved)
        for row in unserved:
            if now > self._unserved[row.job_id]:
                whom = f"worker {row.pinned}" if row.pinned else f"one for the queue {queue_of(row)}"
                await self.fleet.context.write(
                    partial(self._fail, job_id=row.job_id, reason=f"no live worker could take it: {whom} is needed")
                )

    def _fail(self, transaction: Transaction, job_id: str, reason: str) -> None:
        row = queue.by_job(transaction.connection, job_id, locked=True)
        if row.state != JobState.WAITING:
            return
        hint = "start such a worker, then `prony retry ID`"
        failure = Failure(code="no_worker", message=reason, hint=hint, whose="capacity")
        now = self.fleet.context.clock.now()
        queue.end(transaction.connection, row.number, JobState.FAILED, at=now, reason=reason, failure=failure)
        self.fleet.transitions.close_if_done(transaction, row.experiment_id)
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")

    async def release_cancelled(self, lease_ids: Iterable[str]) -> None:
        """End jobs that were cancelled: no worker can be told, so nobody waits for it to stop."""
        for lease_id in lease_ids:
            await self.fleet.leases.hand_back(lease_id, "cancelled", who=WHO)

    def start_over(self) -> None:
        """Forget what was in mind: everything is deleted."""
        self.claims = Claims()
        self.intake = Intake(self.fleet, self.claims)
        self._pushed, self._missing, self._unserved, self._running, self._left = set(), {}, {}, {}, {}
