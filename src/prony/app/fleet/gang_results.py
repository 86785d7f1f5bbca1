"""Put the parts of a job together when all have ended, or give the job back whole."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from typing import Any

from prony.app.fleet.context import FleetContext
from prony.app.fleet.gangs import Gangs
from prony.app.fleet.result_intake import ResultIntake
from prony.app.fleet.state import FleetState
from prony.app.fleet.transitions import Transitions
from prony.app.fleet.unpack_result import Brought, MergeOrder
from prony.dispatch.gangs import find_cause
from prony.errors import InputError, NotFoundError
from prony.model.job import Job
from prony.model.queue import JobState
from prony.model.result import Failure
from prony.store import parts, queue
from prony.store.database import Connection, Row
from prony.store.writer import Transaction


class GangResults:
    """Record what the agents of a gang brought as one result."""

    def __init__(
        self, context: FleetContext, state: FleetState, transitions: Transitions, gangs: Gangs, intake: ResultIntake
    ) -> None:
        self._context = context
        self._state = state
        self._transitions = transitions
        self._gangs = gangs
        self._intake = intake
        self._settling: set[str] = set()  # loads that are being put together

    async def settle(self, job_id: str) -> None:
        """Record what a gang brought, once all of it has ended. To be asked again, or by two servers, does no harm."""
        if job_id in self._settling:
            return
        self._settling.add(job_id)
        try:
            found = await self._context.read(lambda connection: _look(connection, job_id))
            if found is not None:
                await self._settle(*found)
        finally:
            self._settling.discard(job_id)

    async def _settle(self, whole: Row[Any], members: Sequence[Row[Any]], job: Job) -> None:
        cause = find_cause(members, lambda row: (row.attempt_state, row.ended_at))
        brought = [
            Brought(self._name_of(row.agent_id), place)
            for row in members
            if (place := self._intake.part_place(row.job_id)).is_dir()
        ]
        if not brought or (cause is not None and cause.attempt_state == "returned"):
            reason = "no part of the result was sent" if cause is None else self._describe_cause(cause)
            await self._give_back(whole, reason, counts=cause is None or cause.attempt_state != "returned")
        else:
            failure = None if cause is None else self._failure(cause)
            is_lost = cause is not None and cause.attempt_state == "lost"
            folder = self._context.home.uploads / f"{secrets.token_hex(12)}.folder"
            try:
                await self._record_whole(whole, MergeOrder(tuple(brought), folder, job, failure, is_lost))
            except InputError as exc:
                await self._give_back(whole, f"the parts do not fit together: {exc.message}", counts=True)
        for row in members:
            shutil.rmtree(self._intake.part_place(row.job_id), ignore_errors=True)
        self._gangs.forget(whole.job_id)

    def _name_of(self, agent_id: str) -> str:
        known_agent = self._state.agents.get(agent_id)
        return known_agent.name if known_agent is not None else agent_id

    def _describe_cause(self, cause: Row[Any]) -> str:
        """Say which of several agents it was, and what of it."""
        return (
            f"agent {self._name_of(cause.agent_id)}, one of several that ran this job together: {cause.attempt_reason}"
        )

    def _failure(self, cause: Row[Any]) -> Failure:
        """Return why there is no whole result, for where no runner tells it in its own folder."""
        hint = "the parts of the other agents are kept; the whole job is tried again"
        return Failure(code="agent_lost", message=self._describe_cause(cause), hint=hint, whose="prony")

    async def _give_back(self, whole: Row[Any], reason: str, *, counts: bool) -> None:
        def act(transaction: Transaction) -> None:
            parts.remove(transaction.connection, whole.job_id)
            self._transitions.put_back(
                transaction, whole.lease_id, "lost" if counts else "returned", reason, counts=counts
            )

        await self._context.write(act)

    async def _record_whole(self, whole: Row[Any], order: MergeOrder) -> None:
        arrived = await self._context.openers.open(order)

        def act(transaction: Transaction) -> Row[Any] | None:
            row, _ = self._intake.record(transaction, whole.lease_id, arrived, None, ())
            parts.remove(transaction.connection, whole.job_id)
            return row

        try:
            row = await self._context.write(act)
        finally:
            shutil.rmtree(order.folder, ignore_errors=True)
        if row is not None:
            self._intake.count(row, arrived)


def _look(connection: Connection, job_id: str) -> tuple[Row[Any], Sequence[Row[Any]], Job] | None:
    """Return a job that is lent with its parts, all of which have ended; None where there is no such thing."""
    try:
        whole = queue.by_job(connection, job_id)
    except NotFoundError:  # deleted
        return None
    members = parts.of_job(connection, job_id)
    if not members or whole.state != JobState.LEASED or any(row.state == JobState.LEASED for row in members):
        return None
    return whole, members, Job.read_json(queue.job_document(connection, job_id))
