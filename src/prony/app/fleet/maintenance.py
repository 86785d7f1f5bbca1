"""What a server does by itself: looks after leases, agents and schedules, finds lost work, closes what has ended.

Whether a lease lives is judged by whether its beat moves between two looks, by this process's own monotonic time:
a clock that is set forward or back makes nobody late. Time in which this process did not look does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row

from prony.app.fleet import scripts, uploads
from prony.app.fleet.agents import Agents
from prony.app.fleet.alarm_use_cases import Alarming
from prony.app.fleet.gate_results import Gating
from prony.app.fleet.leases import held_of
from prony.app.fleet.regression_confirmation import Confirming
from prony.app.fleet.wire import Listener
from prony.errors import NotFoundError, PronyError
from prony.model.agent import AgentState
from prony.model.queue import Lot
from prony.store import agents as agent_rows
from prony.store import alarms as alarm_rows
from prony.store import leases as lease_rows
from prony.store import lot_rows, parts, queue, schedules
from prony.store.writer import Transaction

_LOST_AFTER = 3  # times the life of a lease
_LAST_WORK_S = 2.0  # a server ends within 10 s of its signal, and requests have 5 s of them
_HISTORY_ROUNDS = 5
_DAY_S = 86_400.0
# How long what has ended is kept of alarms and schedules; experiments stay until somebody deletes them.
_KEPT = timedelta(days=90)


class Rounds(Confirming, Alarming, Gating, Agents):
    """Started with the server and ended with it."""

    async def start(self, *, sweeping: bool = True) -> None:
        """Look around, and go on doing so; without `sweeping` only when `look_around` is called."""
        self.loop = asyncio.get_running_loop()
        self.last_round = self._judged = self.now()
        self._beats: dict[str, tuple[int, float]] = {}
        self._agent_beats: dict[str, tuple[int, float]] = {}
        self._reconciled = self._forgot = -math.inf
        self._rounds_gone = 0
        self._judging: asyncio.Task[object] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        await asyncio.to_thread(uploads.sweep, self.home)
        if self.is_shared:
            self._listen()
        await self.begin_alarms()
        await self.remember_ended()
        await self.look_around()
        if sweeping:
            self._sweeper = asyncio.create_task(self._sweep())

    def _listen(self) -> None:
        self.listener = Listener(self.engine, self._told_by_writer)

    async def stop(self) -> None:
        """End every wait and the round; the store is closed last."""
        self.is_stopping = True
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
        for agent_id in list(self.floor.waiters):
            self.floor.rouse(agent_id)
        for experiment_id in list(self.watchers):
            self.publish(experiment_id, None)
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=_LAST_WORK_S)
        await asyncio.gather(self.openers.close(), self.readers.close(), self.checkers.close())
        if self.listener is not None:
            await asyncio.to_thread(self.listener.close)
        await asyncio.to_thread(self.writer.close)
        self.store.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.settings.sweep_s)
            try:
                await self.look_around()
            except PronyError as exc:  # the database is away; agents go on, and so does the round
                self.hook("round_failed", message=exc.message)
            # Beside the round, which looks after leases and must not wait for a long history.
            if self._judging is None or self._judging.done():
                self._judging = self._begin(self._run_logged(self.attend()))

    async def attend(self) -> None:
        """See to what results mean for people: in every round which gates failed, and in every fifth what changed in a
        history, which is judged as a whole: results that come one by one then cost less together."""
        await self.judge_gates()
        self._rounds_gone += 1
        if self._rounds_gone % _HISTORY_ROUNDS == 0:
            await self.attend_histories()

    async def look_around(self) -> None:
        """Go one round."""
        await self._flush()
        await self._look_after_leases()
        await self.look_after_schedules()
        await self.look_after_alarms()
        if self.missed_notes or self.now() - self._reconciled >= self.settings.reconcile_s:
            await self._reconcile()
            self._reconciled = self.now()
        if self.now() - self._forgot >= _DAY_S:
            await self.write(partial(_forget, before=self.clock.now() - _KEPT))
            for sha256 in await scripts.remove_unneeded(self):
                self.hook("scripts_removed", sha256=sha256)
            self._forgot = self.now()
        self.last_round = self.now()

    def _forgive(self, now: float) -> None:
        """Count for nobody the time in which we did not look: we were asleep, or the database was away or slow."""
        gap, self._judged = now - self._judged, now
        if gap > 3 * self.settings.sweep_s:
            self._beats = {key: (beat, at + gap) for key, (beat, at) in self._beats.items()}
            self._agent_beats = {key: (beat, at + gap) for key, (beat, at) in self._agent_beats.items()}

    async def _flush(self) -> None:
        """Write the signs of life down, where the other servers see them."""
        since = self.last_round - self.settings.sweep_s
        renewed = [lease_id for lease_id, at in self.renewed.items() if at >= since]
        alive, self.alive = self.alive, set()
        if not renewed and not alive:
            return

        def note(desk: Transaction) -> None:
            if renewed:
                lease_rows.renew(desk.connection, renewed)
            if alive:
                agent_rows.beat(desk.connection, sorted(alive), now=self.clock.now())

        try:
            await self.write(note)
        except PronyError:
            self.alive |= alive
            raise

    async def _look_after_leases(self) -> None:
        self.floor.begin_look()
        unwanted = set(self.unwanted)
        rows = await self.read(lease_rows.list_leases)
        now = self.now()
        self._forgive(now)
        self.floor.see_leases(held_of(row) for row in rows)
        self.unwanted = {row.lease_id for row in rows if row.cancel_asked} | (self.unwanted - unwanted)
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
        self.renewed = {lease_id: at for lease_id, at in self.renewed.items() if lease_id in self.floor.held}
        await asyncio.gather(*map(self._lose_lease, late))

    async def _lose_lease(self, row: Row[Any]) -> None:
        reason = f"nothing was heard of agent {row.agent_id} for {self.settings.ttl_s:g} s"
        if await self.write(partial(self._expire, lease_id=row.lease_id, beat=row.beat, reason=reason)):
            self.hook("lease_lost", job=row.job_id, experiment=row.experiment_id, agent=row.agent_id)

    def _expire(self, desk: Transaction, lease_id: str, beat: int, reason: str) -> bool:
        try:
            row = queue.of_lease(desk.connection, lease_id, locked=True)
        except NotFoundError:  # deleted meanwhile
            return False
        if row.lease_id != lease_id or row.beat != beat:  # it ended, or was renewed, while we decided
            return False
        self.put_back(desk, lease_id, "lost", reason, counts=True)
        return True

    async def _reconcile(self) -> None:
        """Find what notes did not tell: another server's lots and agents, pauses that are over, what is unclosed."""

        def ask(connection: Connection) -> tuple[tuple[Lot, ...], Sequence[Row[Any]], list[str], list[str]]:
            unclosed, gathered = lot_rows.find_unclosed(connection), parts.find_gathered(connection)
            return lot_rows.waiting(connection), agent_rows.pulses(connection), unclosed, gathered

        known_lots, known_agents = self.floor.lots_with_work(), set(self.floor.cards)
        were_missed, self.missed_notes = self.missed_notes, False
        waiting, rows, unclosed, gathered = await self.read(ask)
        changed = [row.id for row in rows if were_missed or self._is_changed(row)]
        if changed:
            await self.load_cards(changed)
        for agent_id in known_agents - {row.id for row in rows}:
            self.floor.forget(agent_id)
        self.floor.see_lots(waiting, known_lots)
        for experiment_id in unclosed:
            await self.write(partial(self.close_if_done, experiment_id=experiment_id))
        for job_id in gathered:
            self.spawn(self.settle_gang(job_id))
        await self._lose_agents(rows)
        await self.load_alarms()

    def _is_changed(self, row: Row[Any]) -> bool:
        card = self.floor.cards.get(row.id)
        return card is None or (card.state, card.incarnation, card.strikes) != (row.state, row.incarnation, row.strikes)

    async def _lose_agents(self, rows: Sequence[Row[Any]]) -> None:
        """Call those lost that were silent for long, and those found that were heard, here or by another server."""
        now, patience = self.now(), _LOST_AFTER * self.settings.ttl_s
        seen: dict[str, tuple[int, float]] = {}
        for row in rows:
            beat, at = self._agent_beats.get(row.id, (None, now))
            has_beaten = beat is not None and beat != row.beat
            at = now if beat != row.beat else at
            at = max(at, self.seen.get(row.id, at))
            seen[row.id] = (row.beat, at)
            if row.state == AgentState.LOST:
                if has_beaten:
                    await self.find_agent(row.id)
            elif now - at > patience and row.state in (AgentState.ACTIVE, AgentState.DRAINING, AgentState.DISK_FULL):
                await self.lose_agent(row.id, f"not heard of for {patience:g} s")
        self._agent_beats = seen
        self.seen = {agent_id: at for agent_id, at in self.seen.items() if agent_id in seen}


def _forget(desk: Transaction, before: datetime) -> None:
    """Forget what ended before then: incidents with what was told of them, and fires of schedules."""
    alarm_rows.prune(desk.connection, before)
    schedules.prune(desk.connection, before)
