"""Leases: a job lent to an agent that asked for one, renewed by its progress, given back or finished."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prony import __version__
from prony.app.fleet.agents import Agents, check_self
from prony.app.fleet.context import FleetContext
from prony.app.fleet.events import ChangeNotice, FleetEvents
from prony.app.fleet.gangs import Gangs
from prony.app.fleet.live_series import LiveSeries
from prony.app.fleet.state import FleetState, HeldLease, KnownAgent, PendingLot
from prony.app.fleet.transitions import Transitions
from prony.dispatch.outcomes import LONGEST_PAUSE_S, MOST_LENDS, is_unreadable
from prony.errors import NotFoundError
from prony.model.access import Principal
from prony.model.job import Job
from prony.model.lease import Lease, LeaseRequest, LeaseView, Progress, ProgressAnswer
from prony.model.queue import JobState
from prony.model.states import IDLE_ONLY
from prony.model.target import PlacementNote
from prony.ports.tracing import SpanFacts
from prony.store import leases as lease_rows
from prony.store import placement_rows, queue
from prony.store.database import Connection, Row
from prony.store.result_tar import disk_told
from prony.store.writer import Operation, Transaction

_LONGEST_LOG = 64 * 2**20


# A lot, its generation, whether nobody else could run it, and who would be lent it together, where several are wanted.
Asked = tuple[PendingLot, int, bool, tuple[KnownAgent, ...]]


@dataclass(frozen=True)
class Claimed:
    """`others` are what the rest of a gang was lent with it; `is_repeat`: the agent was lent the same before."""

    lease: Lease | None
    held: HeldLease | None
    empty: Sequence[tuple[PendingLot, int]]
    others: Sequence[HeldLease] = ()
    is_repeat: bool = False


class Leases:
    """Lend jobs to agents, renew leases, take them back."""

    def __init__(
        self,
        context: FleetContext,
        state: FleetState,
        events: FleetEvents,
        agents: Agents,
        transitions: Transitions,
        gangs: Gangs,
    ) -> None:
        self._context = context
        self._state = state
        self._events = events
        self._agents = agents
        self._transitions = transitions
        self._gangs = gangs
        self._live_series = LiveSeries()

    async def acquire(self, request: LeaseRequest, *, who: Principal) -> Lease | None:
        """Lend the agent a job as soon as there is one that it can run, or None when its patience ends."""
        known_agent = await self._agents.identify(request.agent_id, request.incarnation, who)
        self._state.live.note_readings(known_agent.id, request.readings, self._context.now())
        until = self._context.now() + request.wait_s
        while not self._state.is_stopping:
            known_agent = await self._agents.sign_of_life(known_agent)
            lease = await self._try(known_agent, request.holding)
            left = until - self._context.now()
            if lease is not None or left <= 0:
                return lease
            if not self._state.has_work(known_agent):  # else it came while we asked
                await self._wait(known_agent.id, left)
            known = self._state.agents.get(known_agent.id)
            if known is None or known.incarnation != request.incarnation:
                return None
            known_agent = known
        return None

    async def _wait(self, agent_id: str, seconds: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._state.rouse(agent_id)  # an earlier call of the same agent, whose connection is gone
        self._state.waiters[agent_id] = waiter
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            return
        finally:
            if self._state.waiters.get(agent_id) is waiter:
                del self._state.waiters[agent_id]

    async def _try(self, known_agent: KnownAgent, holding: Sequence[str]) -> Lease | None:
        if known_agent.slots is None:
            occupied = self._state.devices.get(known_agent.device_key)
            occupying = [] if occupied is None else [occupied]
        else:
            occupying = self._state.leases_of(known_agent.id)
        asked = () if self._state.is_full(known_agent) else self.asked_for(known_agent)
        if not asked and all(lease_id in holding for lease_id in occupying):
            return None
        return await self._context.through(self._take(known_agent, holding, asked))

    async def _take(self, known_agent: KnownAgent, holding: Sequence[str], asked: Sequence[Asked]) -> Lease | None:
        lease = await self._settle_claim(lambda transaction: self._claim(transaction, known_agent, holding, asked))
        if lease is not None:
            self._context.spawn(self._context.openers.warm())
        return lease

    def asked_for(self, known_agent: KnownAgent) -> tuple[Asked, ...]:
        """Return the lots to ask on behalf of an agent whose device is free, in their order."""
        offers = [] if known_agent.state in IDLE_ONLY else self._state.offers(known_agent)
        return tuple(
            (pending, pending.generation, self._state.is_alone(known_agent, pending), members)
            for pending, members in offers
        )

    def settle(self, claimed: Claimed) -> Lease | None:
        """Have in mind what was lent, and what was found to be empty."""
        self._state.forget_empty(claimed.empty)
        if claimed.held is not None:
            self._state.hold(claimed.held)
        if claimed.lease is not None:
            self._state.renewed[claimed.lease.id] = self._context.now()
            if claimed.is_repeat:
                self._state.repeats[claimed.lease.id] += 1
        for held in claimed.others:
            self._state.hold(held)
            self._state.rouse(held.agent_id)  # its own question is answered with what it was lent here
        return None if claimed.lease is None else self._trace(claimed.lease, claimed.held)

    def _trace(self, lease: Lease, held: HeldLease | None) -> Lease:
        """Return the lease with the context that the agent's spans follow from."""
        facts: SpanFacts = {"agent": held.agent_id if held else "", "job": lease.job.id, "attempt": lease.attempt}
        with self._context.tracer.span("lease", facts, parent=lease.job.traceparent) as span:
            return lease.model_copy(update={"traceparent": span.context}) if span.context else lease

    def _claim(
        self, transaction: Transaction, known_agent: KnownAgent, holding: Sequence[str], asked: Sequence[Asked]
    ) -> Claimed:
        """Runs in the writer's thread."""
        connection = transaction.connection
        if known_agent.slots is None:
            occupying = lease_rows.on_device(connection, known_agent.device_key)
            is_full = occupying is not None
        else:
            held = lease_rows.of_agent(connection, known_agent.id)
            is_full = len(held) >= known_agent.slots
            occupying = next((row for row in held if row.lease_id not in holding), held[0] if is_full else None)
        if occupying is None:
            return self.lend(transaction, known_agent, asked)
        if occupying.agent_id != known_agent.id or occupying.lease_id in holding:
            return Claimed(None, held_of(occupying), ())
        # It was lent and the answer never arrived: lent again.
        if is_unreadable(self._state.repeats[occupying.lease_id] + 1):
            reason = _describe_unread(known_agent)
            self._transitions.put_back(transaction, occupying.lease_id, "lost", reason, counts=True)
            return Claimed(None, None, ())
        job = Job.read_json(queue.job_document(connection, occupying.job_id))
        lease = Lease(id=occupying.lease_id, job=job, attempt=occupying.attempt, ttl_s=self._context.settings.ttl_s)
        return Claimed(lease, held_of(occupying), (), is_repeat=True)

    def lend(
        self, transaction: Transaction, known_agent: KnownAgent, asked: Sequence[Asked], *, begun: str = ""
    ) -> Claimed:
        """Lend the first job that any of the lots has; `begun` is an experiment that is known to be running.

        Runs in the writer's thread.
        """
        connection = transaction.connection
        empty: list[tuple[PendingLot, int]] = []
        now = self._context.clock.now()
        absurd = now.timestamp() + LONGEST_PAUSE_S
        for pending, generation, is_alone, members in asked:
            if members:
                together = self._gangs.lend(transaction, pending.lot.id, members, now=now, absurd=absurd)
                if together is None:
                    empty.append((pending, generation))
                    continue
                leases, held = together
                return Claimed(leases[0], held[0], empty, held[1:])
            found, lease_id = None, secrets.token_hex(12)
            if pending.lot.id not in transaction.dry:
                borrower = queue.Borrower(known_agent.id, known_agent.device_key_for(lease_id), is_alone)
                found = queue.claim(connection, pending.lot.id, borrower, lease_id=lease_id, now=now, absurd=absurd)
                if found is None and not queue.has_waiting(connection, pending.lot.id):
                    transaction.dry.add(pending.lot.id)
            if found is None:
                empty.append((pending, generation))
                continue
            is_new = found.experiment_id != begun
            if is_new and queue.set_state(connection, found.experiment_id, "running", was=("pending",)):
                transaction.publish("job", f"{found.experiment_id}/")
            transaction.publish("job", f"{found.experiment_id}/{found.job_id}")
            job = Job.read_json(found.document)
            return _lent(job, found.attempt, lease_id, known_agent, self._context.settings.ttl_s, empty)
        return Claimed(None, None, empty)

    async def take(self, job_id: str, agent_id: str) -> Lease | None:
        """Lend a job, due or not, to an agent that got hold of it by other means; None where it does not wait.

        What such an agent does at once is its own affair, so that the lease occupies no device but a name of its own.
        """

        def claim(transaction: Transaction) -> Claimed:
            lease_id, key = secrets.token_hex(12), f"{agent_id}/{job_id}"[:128]
            found = queue.claim_this(
                transaction.connection,
                job_id,
                queue.Borrower(agent_id, key),
                lease_id=lease_id,
                now=self._context.clock.now(),
            )
            if found is None:
                return Claimed(None, None, ())
            if queue.set_state(transaction.connection, found.experiment_id, "running", was=("pending",)):
                transaction.publish("job", f"{found.experiment_id}/")
            transaction.publish("job", f"{found.experiment_id}/{found.job_id}")
            held = HeldLease(lease_id, job_id, found.experiment_id, agent_id, key, found.attempt)
            lease = Lease(id=lease_id, job=Job.read_json(found.document), attempt=found.attempt,
                          ttl_s=self._context.settings.ttl_s)  # fmt: skip
            return Claimed(lease, held, ())

        return await self._context.through(self._settle_claim(claim))

    async def _settle_claim(self, claim: Operation[Claimed]) -> Lease | None:
        return self.settle(await self._context.write(claim))

    async def list_leases(self) -> tuple[LeaseView, ...]:
        def ask(connection: Connection) -> tuple[LeaseView, ...]:
            return tuple(
                LeaseView(
                    id=row.lease_id,
                    job_id=row.job_id,
                    experiment_id=row.experiment_id,
                    agent_id=row.agent_id,
                    attempt=row.attempt,
                    leased_at=row.leased_at,
                )
                for row in lease_rows.list_leases(connection)
            )

        return await self._context.read(ask)

    async def renew(self, lease_id: str, progress: Progress, *, who: Principal) -> ProgressAnswer:
        """Renew a lease, pass its events on to whoever watches, keep a piece of its log."""
        held = self._state.held.get(lease_id)
        if held is None:
            held = await self._context.read(lambda connection: _find_held(connection, lease_id))
        if held is None:
            return ProgressAnswer(cancel=True)
        check_self(held.agent_id, who)
        self._state.renewed[lease_id] = self._context.now()
        lives = []
        for event in progress.events:
            self._state.live.note_event(lease_id, event)
            shown = (
                self._gangs.of_whole(held, event) if held.part_of else event.model_copy(update={"job_id": held.job_id})
            )
            if shown is not None:
                self._pass_on(held, shown.model_dump_json(exclude_defaults=True))
                lives += [] if shown.live is None else [shown.live]
        if progress.placement is not None:
            await self._context.write(partial(_keep_placement, held=held, note=progress.placement))
        if progress.log:
            await asyncio.to_thread(self._keep_log, held, progress)
        if lives:
            path = self._context.live_path(held.experiment_id, *self._gangs.logged_as(held))
            await asyncio.to_thread(self._live_series.keep, path, lives)
        return ProgressAnswer(cancel=lease_id in self._state.unwanted)

    def _pass_on(self, held: HeldLease, data: str) -> None:
        if self._context.is_shared:
            self._context.writer.submit(
                lambda transaction: transaction.publish("progress", f"{held.experiment_id}/{data}")
            )
        else:
            self._events.publish(held.experiment_id, ChangeNotice("progress", data))

    def _keep_log(self, held: HeldLease, progress: Progress) -> None:
        """Write a piece at its place; the same piece twice is the same file."""
        path = self._context.log_path(held.experiment_id, *self._gangs.logged_as(held))
        if progress.log_offset > _LONGEST_LOG:
            return
        with disk_told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                if progress.log_offset <= size:  # a hole would be read as zeros
                    os.pwrite(descriptor, progress.log.encode(errors="replace"), progress.log_offset)
            finally:
                os.close(descriptor)

    async def hand_back(self, lease_id: str, reason: str, *, who: Principal) -> None:
        """Give a job back untouched: somebody else may have it at once."""

        def act(transaction: Transaction) -> None:
            row = queue.of_lease(transaction.connection, lease_id, locked=True)
            check_self(row.attempt_agent, who)
            self._transitions.put_back(
                transaction, lease_id, "returned", reason or "the agent returned it", counts=False
            )

        await self._context.write(act)


def _describe_unread(known_agent: KnownAgent) -> str:
    version = known_agent.capabilities.version or "an unknown version"
    return (
        f"agent {known_agent.id} was given this job {MOST_LENDS} times and never began it; its Prony ({version}) may "
        f"be older than the server's ({__version__}): upgrade Prony there and restart the agent"
    )


def _lent(
    job: Job,
    attempt: int,
    lease_id: str,
    known_agent: KnownAgent,
    ttl_s: float,
    empty: Sequence[tuple[PendingLot, int]],
) -> Claimed:
    key = known_agent.device_key_for(lease_id)
    held = HeldLease(lease_id, job.id, job.experiment_id, known_agent.id, key, attempt)
    return Claimed(Lease(id=lease_id, job=job, attempt=attempt, ttl_s=ttl_s), held, empty)


def _keep_placement(transaction: Transaction, held: HeldLease, note: PlacementNote) -> None:
    placement_rows.note_placement(transaction.connection, held.lease_id, note)
    transaction.publish("job", f"{held.experiment_id}/{held.job_id}")


def held_of(row: Row[Any]) -> HeldLease:
    return HeldLease(
        row.lease_id, row.job_id, row.experiment_id, row.agent_id, row.device_key, row.attempt, row.part_of
    )


def _find_held(connection: Connection, lease_id: str) -> HeldLease | None:
    try:
        row = queue.of_lease(connection, lease_id)
    except NotFoundError:
        return None
    if row.state != JobState.LEASED or row.lease_id != lease_id:
        return None
    return held_of(row)
