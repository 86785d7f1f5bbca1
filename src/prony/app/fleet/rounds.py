"""What a server does by itself: looks after leases and agents, finds work that it forgot, closes what has ended.

Whether a lease lives is judged by whether its beat moves between two looks, by this process's own monotonic time:
a clock that is set forward or back makes nobody late. Time in which this process did not look does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row

from prony.app.fleet.agents import Agents
from prony.app.fleet.leases import held_of
from prony.app.fleet.wire import Listener
from prony.errors import PronyError
from prony.model.agent import AgentState
from prony.model.queue import Lot
from prony.store import agents as agent_rows
from prony.store import lots, queue
from prony.store.writer import Desk

_LOST_AFTER = 3  # times the life of a lease


class Rounds(Agents):
    """Started with the server and ended with it."""

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.last_round = self.loop.time()
        self._beats: dict[str, tuple[int, float]] = {}
        self._agent_beats: dict[str, tuple[int, float]] = {}
        self._reconciled = 0.0
        if self.is_shared:
            self.listener = Listener(self.engine, self._told_by_writer)
        await self._look_around()
        self._sweeper = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """End every wait and the round; the store is closed last."""
        self._sweeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeper
        for agent_id in list(self.floor.waiters):
            self.floor.rouse(agent_id)
        for experiment_id in list(self.watchers):
            self.publish(experiment_id, None)
        if self.listener is not None:
            await asyncio.to_thread(self.listener.close)
        await asyncio.to_thread(self.writer.close)
        self.store.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.settings.sweep_s)
            try:
                await self._look_around()
            except PronyError as exc:  # the database is away; agents go on, and so does the round
                self.hook("round_failed", message=exc.message)

    async def _look_around(self) -> None:
        now = self.now()
        gap = now - self.last_round
        if gap > 3 * self.settings.sweep_s:  # we were asleep, or the database was away: nobody is late for that
            self._forgive(gap)
        await self._flush()
        await self._look_after_leases()
        if now - self._reconciled >= self.settings.reconcile_s:
            self._reconciled = now
            await self._reconcile()
        self.last_round = self.now()

    def _forgive(self, gap: float) -> None:
        self._beats = {key: (beat, at + gap) for key, (beat, at) in self._beats.items()}
        self._agent_beats = {key: (beat, at + gap) for key, (beat, at) in self._agent_beats.items()}

    async def _flush(self) -> None:
        """Write the signs of life down, where the other servers see them."""
        since = self.last_round - self.settings.sweep_s
        renewed = [lease_id for lease_id, at in self.renewed.items() if at >= since]
        alive, self.alive = self.alive, set()
        if not renewed and not alive:
            return

        def note(desk: Desk) -> None:
            if renewed:
                queue.renew(desk.connection, renewed)
            if alive:
                agent_rows.beat(desk.connection, sorted(alive), now=self.clock.now())

        try:
            await self.write(note)
        except PronyError:
            self.alive |= alive
            raise

    async def _look_after_leases(self) -> None:
        rows = await self.read(queue.leased)
        now = self.now()
        self.floor.see_leases(held_of(row) for row in rows)
        self.unwanted = {row.lease_id for row in rows if row.cancel_asked}
        late = []
        beats: dict[str, tuple[int, float]] = {}
        for row in rows:
            beat, at = self._beats.get(row.lease_id, (None, now))
            at = now if beat != row.beat else at
            at = max(at, self.renewed.get(row.lease_id, at))
            beats[row.lease_id] = (row.beat, at)
            if now - at > self.settings.ttl_s:
                late.append(row)
        self._beats = beats
        self.renewed = {lease_id: at for lease_id, at in self.renewed.items() if lease_id in beats}
        for row in late:
            reason = f"nothing was heard of agent {row.agent_id} for {self.settings.ttl_s:g} s"
            await self.write(partial(self._expire, lease_id=row.lease_id, beat=row.beat, reason=reason))
            self.hook("lease_lost", job=row.job_id, experiment=row.experiment_id, agent=row.agent_id)

    def _expire(self, desk: Desk, lease_id: str, beat: int, reason: str) -> None:
        row = queue.of_lease(desk.connection, lease_id)
        if row.beat == beat:  # else it was renewed while we decided
            self.put_back(desk, lease_id, "lost", reason, counts=True)

    async def _reconcile(self) -> None:
        """Find what notes did not tell: another server's lots and agents, pauses that are over, what is unclosed."""

        def ask(connection: Connection) -> tuple[tuple[Lot, ...], Sequence[Row[Any]], list[str]]:
            return lots.waiting(connection), agent_rows.pulses(connection), queue.unclosed(connection)

        waiting, rows, unclosed = await self.read(ask)
        await self._see_agents(rows)
        for lot in waiting:
            self.floor.offer(lot, count=1)
        for experiment_id in unclosed:
            await self.write(partial(self.close_if_done, experiment_id=experiment_id))
        await self._lose_agents(rows)

    async def _see_agents(self, rows: Sequence[Row[Any]]) -> None:
        present = set()
        for row in rows:
            present.add(row.id)
            card = self.floor.cards.get(row.id)
            if card is None or (card.state, card.incarnation, card.strikes) != (
                row.state,
                row.incarnation,
                row.strikes,
            ):
                await self.load_card(row.id)
        for agent_id in self.floor.cards.keys() - present:
            del self.floor.cards[agent_id]

    async def _lose_agents(self, rows: Sequence[Row[Any]]) -> None:
        """Call those lost that were silent for long, and those active again that were heard."""
        now, patience = self.now(), _LOST_AFTER * self.settings.ttl_s
        seen: dict[str, tuple[int, float]] = {}
        for row in rows:
            beat, at = self._agent_beats.get(row.id, (None, now))
            at = now if beat != row.beat else at
            at = max(at, self.seen.get(row.id, at))
            seen[row.id] = (row.beat, at)
            is_silent = now - at > patience
            if is_silent and row.state in (AgentState.ACTIVE, AgentState.DRAINING):
                await self._set_agent(row.id, AgentState.LOST, f"not heard of for {patience:g} s")
            elif not is_silent and row.state == AgentState.LOST and beat is not None and at > now - patience / 2:
                await self._set_agent(row.id, AgentState.ACTIVE, "")
        self._agent_beats = seen
        self.seen = {agent_id: at for agent_id, at in self.seen.items() if agent_id in seen}

    async def _set_agent(self, agent_id: str, state: AgentState, reason: str) -> None:
        def act(desk: Desk) -> None:
            agent_rows.change(desk.connection, agent_id, state=state.value, reason=reason)
            desk.tell("agent", agent_id)

        await self.write(act)
