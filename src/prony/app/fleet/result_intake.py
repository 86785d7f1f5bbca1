"""Results of a fleet, taken in: whole, checked, on the disk, once for each attempt."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from prony.app.fleet import uploads
from prony.app.fleet.agents import check_self
from prony.app.fleet.alarm_engine import AlarmEngine
from prony.app.fleet.context import FleetContext
from prony.app.fleet.leases import Asked, Claimed, Leases
from prony.app.fleet.state import FleetState, HeldLease, KnownAgent
from prony.app.fleet.transitions import Transitions
from prony.app.fleet.unpack_result import UnpackedResult, UnpackOrder, summarise_written
from prony.dispatch.outcomes import after_late_result, after_result, agents_to_strike, is_faulty, may_be_the_agent
from prony.errors import ConflictError, InputError, StoreError
from prony.model.access import Principal
from prony.model.agent import AgentState
from prony.model.estimate import Summary
from prony.model.lease import FinishAnswer, Lease, LeaseRequest
from prony.model.queue import JobState
from prony.model.result import ResultState
from prony.store import agents as agent_rows
from prony.store import confirmations, experiments, queue, result_rows, result_tar
from prony.store.database import Connection, Row
from prony.store.folder import FolderContents
from prony.store.home import safe_id
from prony.store.writer import Transaction


class ResultIntake:
    """Receive the result of an attempt and record it, once."""

    def __init__(
        self,
        context: FleetContext,
        state: FleetState,
        alarm_engine: AlarmEngine,
        transitions: Transitions,
        leases: Leases,
    ) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine
        self._transitions = transitions
        self._leases = leases

    async def upload_offset(self, lease_id: str, *, who: Principal) -> int:
        """Return how much of a result has arrived, so that a broken upload goes on from there."""
        await self._own(lease_id, who)
        return _size(self._part(lease_id))

    async def upload(self, lease_id: str, offset: int, chunks: AsyncIterator[bytes], *, who: Principal) -> int:
        """Take in one piece of a result; return how much is here now."""
        await self._own(lease_id, who)
        part = self._part(lease_id)
        here = _size(part)
        if offset != here:
            raise ConflictError(
                f"the server has {here} bytes, so a part at offset {offset} does not fit",
                hint="ask for the offset and continue from there",
                code="wrong_offset",
            )
        await uploads.save(chunks, part, most=self._context.settings.max_upload_bytes, start=offset)
        self._state.renewed[lease_id] = self._context.now()
        return _size(part)

    async def finish(
        self,
        lease_id: str,
        chunks: AsyncIterator[bytes],
        *,
        sha256: str,
        next: bool = False,  # noqa: A002 - the name of the request's own parameter
        wait_s: float = 0,
        who: Principal,
    ) -> FinishAnswer:
        """Record an attempt's result, once. The agent may forget it when this has returned, and not before."""
        held = await self._own(lease_id, who)
        tar = self._part(lease_id).with_suffix(f".{secrets.token_hex(4)}")
        try:
            size = await uploads.save(chunks, tar, most=self._context.settings.max_upload_bytes)
        except BaseException:
            tar.unlink(missing_ok=True)
            raise
        accepted, lease = await self._context.through(
            self._take_in(held, tar, sha256, has_body=size > 0, with_next=next)
        )
        if next and lease is None:
            lease = await self._follow(held, wait_s, who)
        return FinishAnswer(accepted=accepted, lease=lease)

    async def finish_written(self, lease_id: str, written: FolderContents, *, who: Principal) -> bool:
        """Record a result that this process wrote to a folder beside the results; False where it was recorded before.

        No other process is started for it: nothing is unpacked, and there are no samples to look through.
        """
        held = await self._own(lease_id, who)

        async def take_in() -> bool:
            arrived = await asyncio.to_thread(summarise_written, written)
            row, _ = await self._keep_result(held, arrived, None, ())
            return row is not None

        return await self._context.through(take_in())

    async def _follow(self, held: HeldLease, wait_s: float, who: Principal) -> Lease | None:
        """Lend the next job to whoever brought a result, unless it is at another already."""
        self._state.release(held.lease_id)
        known_agent = self._state.agents.get(held.agent_id)
        if known_agent is None or known_agent.device_key in self._state.devices:
            return None
        asking = LeaseRequest(agent_id=known_agent.id, incarnation=known_agent.incarnation, wait_s=wait_s)
        return await self._leases.acquire(asking, who=who)

    async def _own(self, lease_id: str, who: Principal) -> HeldLease:
        """Return the lease that an agent speaks of, old or current: as we have it in mind, or as the database has."""
        held = self._state.held.get(lease_id)
        if held is None:
            held = await self._context.read(lambda connection: _attempt_of(connection, lease_id))
        check_self(held.agent_id, who)
        return held

    def _part(self, lease_id: str) -> Path:
        return self._context.home.uploads / f"{lease_id}.part"

    # Whole

    async def _take_in(
        self, held: HeldLease, tar: Path, sha256: str, *, has_body: bool, with_next: bool
    ) -> tuple[bool, Lease | None]:
        """Record what came in the body, or else what was uploaded before; False where it was recorded before.

        With it, in the same transaction, the next job is lent where there is one.
        """
        try:
            if not has_body:
                known = await self._context.read(lambda connection: _is_recorded(connection, held))
                if known:
                    self._part(held.lease_id).unlink(missing_ok=True)
                    return False, None
                self._take_uploaded(held.lease_id, tar)
            folder = tar.with_suffix(f".{secrets.token_hex(4)}.folder")
            is_part = held.part_of is not None
            order = UnpackOrder(tar, folder, sha256, held.job_id, held.experiment_id, is_part=is_part)
            with self._context.tracer.span("summarise", {"job": held.job_id, "attempt": held.attempt}) as span:
                arrived = await self._context.openers.open(order)
                span.add_facts(state=arrived.state.value)
        finally:
            tar.unlink(missing_ok=True)
        if is_part:
            return await self._take_in_part(held, arrived), None
        known_agent = self._state.agents.get(held.agent_id) if with_next else None
        asked = self._leases.asked_for(known_agent) if known_agent is not None else ()
        row, claimed = await self._keep_result(held, arrived, known_agent, asked)
        self._part(held.lease_id).unlink(missing_ok=True)
        return row is not None, self._leases.settle(claimed) if claimed is not None else None

    async def _keep_result(
        self, held: HeldLease, arrived: UnpackedResult, known_agent: KnownAgent | None, asked: Sequence[Asked]
    ) -> tuple[Row[Any] | None, Claimed | None]:
        """Record what has arrived, and count it; see `record`."""
        try:
            row, claimed = await self._context.write(
                lambda transaction: self.record(transaction, held.lease_id, arrived, known_agent, asked)
            )
        finally:
            shutil.rmtree(arrived.folder, ignore_errors=True)
        if row is not None:
            self.count(row, arrived)
            self._state.release(held.lease_id)
        return row, claimed

    def part_place(self, job_id: str) -> Path:
        """Return where a part of a load lies until all parts are here."""
        return self._context.home.uploads / f"{safe_id(job_id)}.part-of"

    async def _take_in_part(self, held: HeldLease, arrived: UnpackedResult) -> bool:
        """Keep one agent's part of a load; False where it was kept before, or is too late to be of use."""
        reason = arrived.failure.message if arrived.failure else ""

        def act(transaction: Transaction) -> bool:
            row = queue.of_lease(transaction.connection, held.lease_id, locked=True)
            if row.state != JobState.LEASED:
                return False
            _put(arrived.folder, self.part_place(held.job_id))
            self._transitions.end_part(transaction, row, arrived.state.value, reason)
            return True

        try:
            is_new = await self._context.write(act)
        finally:
            shutil.rmtree(arrived.folder, ignore_errors=True)
        self._part(held.lease_id).unlink(missing_ok=True)
        self._state.release(held.lease_id)
        return is_new

    def _take_uploaded(self, lease_id: str, tar: Path) -> None:
        try:
            self._part(lease_id).replace(tar)
        except FileNotFoundError as exc:
            hint = "send it in the body, or upload it in parts first"
            raise InputError("there is no result", hint=hint, code="no_body") from exc

    # Recorded, in the writer's thread

    def record(
        self,
        transaction: Transaction,
        lease_id: str,
        arrived: UnpackedResult,
        known_agent: KnownAgent | None,
        asked: Sequence[Asked],
    ) -> tuple[Row[Any] | None, Claimed | None]:
        """Return the job as it was before, or None where this attempt's result is here already; and what was lent."""
        row = queue.of_lease(transaction.connection, lease_id, locked=True)
        number, failure = row.attempt_number, arrived.failure
        place = self._context.home.result_folder(row.experiment_id, row.job_id, number)
        inside = place.relative_to(self._context.home.results).as_posix()
        # The job's row in the queue is ours until the end, so nobody else can bring a result of it.
        result_rows.keep_experiment(transaction.connection, row.experiment_id)
        is_first = row.attempt == 1  # no other was ever lent
        if not result_rows.add_attempt(
            transaction.connection, arrived.row, attempt=number, folder=inside, is_first=is_first
        ):
            return None, None
        _put(arrived.folder, place)
        reason = failure.message if failure else ""
        queue.end_attempt(
            transaction.connection, lease_id, arrived.state.value, at=self._context.clock.now(), reason=reason
        )
        is_current = row.state == JobState.LEASED and row.lease_id == lease_id
        if is_current:
            self._end_current(transaction, row, arrived)
        else:
            self._end_late(transaction, row, arrived)
        self._judge(transaction, row, arrived)
        self._report(transaction, row.experiment_id, arrived)
        claimed = None
        # Whoever failed is asked again first whether it may have more, and a late one's device may be another's.
        if (
            is_current
            and arrived.state is ResultState.COMPLETE
            and known_agent is not None
            and known_agent.device_key == row.device_key
        ):
            claimed = self._leases.lend(transaction, known_agent, asked, begun=row.experiment_id)
        if claimed is None or claimed.held is None or claimed.held.experiment_id != row.experiment_id:
            self._transitions.close_if_done(transaction, row.experiment_id)
        transaction.publish("freed", lease_id)
        transaction.publish("job", f"{row.experiment_id}/{row.job_id}")
        return row, claimed

    def _end_current(self, transaction: Transaction, row: Row[Any], arrived: UnpackedResult) -> None:
        now, failure, left = self._context.clock.now(), arrived.failure, row.tries_left - 1
        reason = failure.message if failure else ""
        state = after_result(arrived.state, failure, tries_left=left, is_cancelled=row.cancel_asked)
        if state is JobState.WAITING:
            self._transitions.try_again(transaction, row, tries_left=left, reason=reason)
        elif state is JobState.CANCELLED:
            queue.end(transaction.connection, row.number, state, at=now, reason="cancelled")
        else:
            queue.end(transaction.connection, row.number, state, at=now, reason=reason, failure=failure)

    def _end_late(self, transaction: Transaction, row: Row[Any], arrived: UnpackedResult) -> None:
        """Record what a result changes whose lease was lost before it came."""
        now, failure = self._context.clock.now(), arrived.failure
        state = after_late_result(JobState(row.state), arrived.state)
        if state is JobState.PARTIAL:
            reason = failure.message if failure else ""
            queue.end(transaction.connection, row.number, state, at=now, reason=reason, failure=failure)
        if state is not JobState.COMPLETE:
            return
        if row.state == JobState.LEASED:
            queue.end_attempt(
                transaction.connection,
                row.lease_id,
                "cancelled",
                at=now,
                reason="the result of an earlier attempt arrived",
            )
            transaction.publish("freed", row.lease_id)
        queue.end(transaction.connection, row.number, state, at=now)

    def _judge(self, transaction: Transaction, row: Row[Any], arrived: UnpackedResult) -> None:
        """Count it against an agent when a job that failed there is done elsewhere; three in a row and it is faulty."""
        known_agent = self._state.agents.get(row.attempt_agent)
        if arrived.state is ResultState.COMPLETE:
            if known_agent is not None and known_agent.strikes:
                agent_rows.change(transaction.connection, known_agent.id, strikes=0)
                transaction.publish("agent", known_agent.id)
            if row.attempt_number > 1 and row.state != JobState.COMPLETE:
                attempts = queue.attempts(transaction.connection, row.job_id)
                for agent_id in agents_to_strike(attempts, done_by=row.attempt_agent):
                    self._strike(transaction, agent_id)
        elif may_be_the_agent(arrived.failure) and queue.is_done_elsewhere(
            transaction.connection, row.experiment_id, row.lot_id, row.attempt_agent
        ):
            self._strike(transaction, row.attempt_agent)

    def _report(self, transaction: Transaction, experiment_id: str, arrived: UnpackedResult) -> None:
        """Have alarms look at its numbers."""
        if arrived.state is not ResultState.FAILED and self._alarm_engine.hears("threshold"):
            if confirmations.is_confirming(transaction.connection, experiment_id):
                return
            recipe = experiments.name_of(transaction.connection, experiment_id)
            summary = Summary.read_json(arrived.row["summary"])
            self._alarm_engine.report_result(transaction, recipe, summary, self._context.clock.now())

    def _strike(self, transaction: Transaction, agent_id: str) -> None:
        count = agent_rows.strike(transaction.connection, agent_id)
        if is_faulty(count):
            reason = f"{count} jobs in a row failed here and succeeded on other agents"
            agent_rows.change(transaction.connection, agent_id, state=AgentState.FAULTY.value, reason=reason)
        transaction.publish("agent", agent_id)

    def count(self, row: Row[Any], arrived: UnpackedResult) -> None:
        failure = arrived.failure
        seconds = (self._context.clock.now() - row.attempt_leased_at).total_seconds()
        self._context.hook("finished", state=arrived.state.value, code=failure.code if failure else "", seconds=seconds)


def _attempt_of(connection: Connection, lease_id: str) -> HeldLease:
    row = queue.of_lease(connection, lease_id)
    number, device = row.attempt_number, row.device_key or ""
    return HeldLease(lease_id, row.job_id, row.experiment_id, row.attempt_agent, device, number, row.part_of)


def _is_recorded(connection: Connection, held: HeldLease) -> bool:
    if held.part_of is not None:
        return bool(queue.of_lease(connection, held.lease_id).state != JobState.LEASED)
    return result_rows.has_attempt(connection, held.job_id, held.attempt)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _put(folder: Path, place: Path) -> None:
    """Rename a result into its place; what lies there without a row was left by a crash, or by ourselves just now."""
    if not folder.exists():
        if not place.exists():
            raise StoreError(f"the result at {place} is missing", hint="send it again")
        return  # the operation is carried out again, and it lies there already
    with result_tar.disk_told(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            away = folder.with_suffix(".old")
            place.rename(away)
            shutil.rmtree(away, ignore_errors=True)
        folder.rename(place)
