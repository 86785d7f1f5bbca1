"""Find out which leases and agents still live, and what work no note told of.

Whether a lease lives is judged by whether its beat moves between two looks, by this process's own monotonic time:
a clock that is set forward or back makes nobody late. Time in which this process did not look does not count.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from prony.app.fleet.agents import Agents
from prony.app.fleet.context import FleetContext
from prony.app.fleet.gang_results import GangResults
from prony.app.fleet.leases import held_of
from prony.app.fleet.state import FleetState
from prony.app.fleet.transitions import Transitions
from prony.dispatch.liveness import Pulse, forgive_gap, has_moved, is_silent, lost_after_s, take_pulse
from prony.errors import NotFoundError, PronyError
from prony.model.agent import AgentState
from prony.model.queue import Lot
from prony.store import agents as agent_rows
from prony.store import leases as lease_rows
from prony.store import lot_rows, parts, queue
from prony.store.database import Connection, Row
from prony.store.writer import Transaction

_MAY_BE_LOST = (AgentState.ACTIVE, AgentState.DRAINING, AgentState.DISK_FULL)


class Liveness:
    """Take leases from agents that fell silent, and call such agents lost or stopped."""

    def __init__(
        self,
        context: FleetContext,
        state: FleetState,
        agents: Agents,
        transitions: Transitions,
        gang_results: GangResults,
    ) -> None:
        self._context = context
        self._state = state
        self._agents = agents
        self._transitions = transitions
        self._gang_results = gang_results
        self._judged = 0.0  # when leases were last looked at
        self._lease_pulses: dict[str, Pulse] = {}
        self._agent_pulses: dict[str, Pulse] = {}
        self._reconciled = -math.inf

    def start(self) -> None:
        """Count silence from now on."""
        self._judged = self._context.now()

    def _forgive(self, now: float) -> None:
        """Count for nobody the time in which we did not look: we were asleep, or the database was away or slow."""
        gap, self._judged = now - self._judged, now
        self._lease_pulses = forgive_gap(self._lease_pulses, gap, self._context.settings.sweep_s)
        self._agent_pulses = forgive_gap(self._agent_pulses, gap, self._context.settings.sweep_s)

    async def note_signs(self, since: float) -> None:
        """Write the signs of life since then down, where the other servers see them."""
        renewed = [lease_id for lease_id, at in self._state.renewed.items() if at >= since]
        alive, self._state.alive = self._state.alive, set()
        if not renewed and not alive:
            return

        def note(transaction: Transaction) -> None:
            if renewed:
                lease_rows.renew(transaction.connection, renewed)
            if alive:
                agent_rows.beat(transaction.connection, sorted(alive), now=self._context.clock.now())

        try:
            await self._context.write(note)
        except PronyError:
            self._state.alive |= alive
            raise

    async def look_after_leases(self) -> None:
        self._state.begin_look()
        unwanted = set(self._state.unwanted)
        rows = await self._context.read(lease_rows.list_leases)
        now = self._context.now()
        self._forgive(now)
        self._state.see_leases(held_of(row) for row in rows)
        self._state.unwanted = {row.lease_id for row in rows if row.cancel_asked} | (self._state.unwanted - unwanted)
        before, renewed = self._lease_pulses, self._state.renewed
        self._lease_pulses = pulses = {
            row.lease_id: take_pulse(before.get(row.lease_id), row.beat, now=now, heard_at=renewed.get(row.lease_id))
            for row in rows
        }
        ttl_s = self._context.settings.ttl_s
        late = [row for row in rows if is_silent(pulses[row.lease_id], now, ttl_s)]
        self._state.renewed = {
            lease_id: at for lease_id, at in self._state.renewed.items() if lease_id in self._state.held
        }
        await asyncio.gather(*map(self._lose_lease, late))

    async def _lose_lease(self, row: Row[Any]) -> None:
        reason = f"agent {row.agent_id} sent nothing for {self._context.settings.ttl_s:g} s"
        if await self._context.write(partial(self._expire, lease_id=row.lease_id, beat=row.beat, reason=reason)):
            self._context.hook("lease_lost", job=row.job_id, experiment=row.experiment_id, agent=row.agent_id)

    def _expire(self, transaction: Transaction, lease_id: str, beat: int, reason: str) -> bool:
        try:
            row = queue.of_lease(transaction.connection, lease_id, locked=True)
        except NotFoundError:  # deleted meanwhile
            return False
        if row.lease_id != lease_id or row.beat != beat:  # it ended, or was renewed, while we decided
            return False
        self._transitions.put_back(transaction, lease_id, "lost", reason, counts=True)
        return True

    async def reconcile_if_due(self) -> bool:
        """Compare what is in mind with the database, now and then, or at once where notes were missed."""
        is_due = self._context.now() - self._reconciled >= self._context.settings.reconcile_s
        if not (is_due or self._state.missed_notes):
            return False
        await self._reconcile()
        self._reconciled = self._context.now()
        return True

    async def _reconcile(self) -> None:
        """Find what notes did not tell: another server's lots and agents, pauses that are over, what is unclosed."""

        def ask(connection: Connection) -> tuple[tuple[Lot, ...], Sequence[Row[Any]], list[str], list[str]]:
            unclosed, gathered = lot_rows.find_unclosed(connection), parts.find_gathered(connection)
            return lot_rows.waiting(connection), agent_rows.pulses(connection), unclosed, gathered

        known_lots, known_agents = self._state.lots_with_work(), set(self._state.agents)
        were_missed, self._state.missed_notes = self._state.missed_notes, False
        waiting, rows, unclosed, gathered = await self._context.read(ask)
        changed = [row.id for row in rows if were_missed or self._is_changed(row)]
        if changed:
            await self._agents.load_all(changed)
        for agent_id in known_agents - {row.id for row in rows}:
            self._state.forget(agent_id)
        self._state.see_lots(waiting, known_lots)
        for experiment_id in unclosed:
            await self._context.write(partial(self._transitions.close_if_done, experiment_id=experiment_id))
        for job_id in gathered:
            self._context.spawn(self._gang_results.settle(job_id))
        await self._lose_agents(rows)

    def _is_changed(self, row: Row[Any]) -> bool:
        known_agent = self._state.agents.get(row.id)
        return known_agent is None or (known_agent.state, known_agent.incarnation, known_agent.strikes) != (
            row.state,
            row.incarnation,
            row.strikes,
        )

    async def _lose_agents(self, rows: Sequence[Row[Any]]) -> None:
        """Call those lost or stopped that were silent for long, and those found that any server heard."""
        now, patience = self._context.now(), lost_after_s(self._context.settings.ttl_s)
        pulses: dict[str, Pulse] = {}
        for row in rows:
            before = self._agent_pulses.get(row.id)
            pulses[row.id] = take_pulse(before, row.beat, now=now, heard_at=self._state.seen.get(row.id))
            if row.state in (AgentState.LOST, AgentState.STOPPED):
                if has_moved(before, row.beat):
                    await self._agents.find(row.id)
            elif is_silent(pulses[row.id], now, patience) and row.state in _MAY_BE_LOST:
                await self._agents.lose(row.id, f"it sent nothing for {patience:g} s")
        self._agent_pulses = pulses
        self._state.seen = {agent_id: at for agent_id, at in self._state.seen.items() if agent_id in pulses}
