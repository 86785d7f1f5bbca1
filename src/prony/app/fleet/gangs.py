"""Gangs: agents that are lent one job together, all at once or none, and that meet while they run it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from prony.app.fleet.agents import check_self
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState, HeldLease, KnownAgent
from prony.app.meetings import Meetings, add_lives
from prony.errors import ConflictError
from prony.model.access import Principal
from prony.model.event import Event, Live
from prony.model.gang import Meeting, Met
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.queue import JobState
from prony.store import leases as lease_rows
from prony.store import parts, queue
from prony.store.database import Connection, Row
from prony.store.parts import Lent
from prony.store.writer import Transaction


class Gangs:
    """Lend one job to several agents, and let them meet."""

    def __init__(self, context: FleetContext, state: FleetState) -> None:
        self._context = context
        self._state = state
        self._meetings = Meetings()
        self._lives: dict[str, dict[str, Live]] = {}  # load that several send -> how it goes for each

    async def meet(self, lease_id: str, meeting: Meeting, *, who: Principal) -> Met | None:
        """Have a member wait for the others of its gang; None when they are not all there yet: it asks again."""

        def ask(connection: Connection) -> tuple[Row[Any], int]:
            row = queue.of_lease(connection, lease_id)
            return row, len(parts.of_job(connection, row.part_of)) if row.part_of else 0

        row, of = await self._context.read(ask)
        check_self(row.attempt_agent, who)
        if row.part_of is None or row.state != JobState.LEASED:
            raise ConflictError(f"lease {lease_id} is not part of a running job", hint="stop: the job has ended")
        self._state.renewed[lease_id] = self._context.now()
        return await self._meetings.come(row.job_id.rpartition(".")[0], meeting, row.part, of)

    def of_whole(self, held: HeldLease, event: Event) -> Event | None:
        """Return what watchers of a job are told when one of its members says something: the first one's words, with
        the counts of all added up. Percentiles of several are none of all, so there are none."""
        lives = self._lives.setdefault(held.part_of or "", {})
        if event.live is not None:
            lives[held.job_id] = event.live
        if not held.job_id.endswith(".0"):
            return None
        return event.model_copy(
            update={"job_id": held.part_of, "live": add_lives(list(lives.values())) if event.live else None}
        )

    def logged_as(self, held: HeldLease) -> tuple[str, int]:
        """Return the job and attempt under which a log is kept: that of the first member is the job's own."""
        whole, _, index = held.job_id.rpartition(".")
        if held.part_of is None or index != "0":
            return held.job_id, held.attempt
        return held.part_of, int(whole.rpartition(".")[2])

    # In the writer's thread

    def lend(
        self, transaction: Transaction, lot_id: str, members: Sequence[KnownAgent], *, now: datetime, absurd: float
    ) -> tuple[list[Lease], list[HeldLease]] | None:
        """Lend a job of the lot to all members, the first of whom asked; None where there is none or one is busy."""
        connection = transaction.connection
        if any(lease_rows.on_device(connection, known_agent.device_key) is not None for known_agent in members):
            return None
        whole = secrets.token_hex(12)
        borrower = queue.Borrower(members[0].id, None, is_alone=True)
        found = queue.claim(connection, lot_id, borrower, lease_id=whole, now=now, absurd=absurd)
        if found is None:
            return None
        lent = [Lent(known_agent.id, known_agent.device_key, secrets.token_hex(12)) for known_agent in members]
        job = Job.read_json(found.document)
        shares = parts.lend(connection, job, lot_id, found.attempt, lent, now=now)
        transaction.publish("job", f"{job.experiment_id}/{job.id}")
        if queue.set_state(connection, job.experiment_id, "running", was=("pending",)):
            transaction.publish("job", f"{job.experiment_id}/")
        leases = [
            Lease(id=member.lease_id, job=share, attempt=1, ttl_s=self._context.settings.ttl_s)
            for member, share in zip(lent, shares, strict=True)
        ]
        held = [
            HeldLease(member.lease_id, share.id, job.experiment_id, member.agent_id, member.device_key, 1, job.id)
            for member, share in zip(lent, shares, strict=True)
        ]
        return leases, held

    def forget(self, job_id: str) -> None:
        """Forget the meetings of a job that has ended, and how it went."""
        self._meetings.forget(job_id)
        self._lives.pop(job_id, None)
