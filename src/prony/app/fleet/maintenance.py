"""What a server does by itself, in rounds, and whether every part of it works."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from prony.app.fleet import scripts, uploads
from prony.app.fleet.alarms import Alarms
from prony.app.fleet.confirmations import Confirmations
from prony.app.fleet.context import FleetContext
from prony.app.fleet.gates import Gates
from prony.app.fleet.liveness import Liveness
from prony.app.fleet.schedules import Schedules
from prony.errors import PronyError
from prony.model.queue import Health, HealthPart
from prony.store import alarms as alarm_rows
from prony.store import schedules
from prony.store.database import is_answering
from prony.store.writer import Transaction

_HISTORY_ROUNDS = 5
_DAY_S = 86_400.0
# How long what has ended is kept of alarms and schedules; experiments stay until somebody deletes them.
_KEPT = timedelta(days=90)


class Maintenance:
    """Look after leases, agents, schedules, alarms and histories, round after round."""

    def __init__(
        self,
        context: FleetContext,
        liveness: Liveness,
        schedules: Schedules,
        alarms: Alarms,
        gates: Gates,
        confirmations: Confirmations,
    ) -> None:
        self._context = context
        self._liveness = liveness
        self._schedules = schedules
        self._alarms = alarms
        self._gates = gates
        self._confirmations = confirmations
        self.last_round = 0.0
        self._forgot = -math.inf
        self._rounds_gone = 0
        self._judging: asyncio.Task[None] | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self.after_round: Callable[[], None] = lambda: None

    async def start(self, *, sweeping: bool = True) -> None:
        """Look around, and go on doing so; without `sweeping` only when `look_around` is called."""
        self.last_round = self._context.now()
        self._liveness.start()
        await asyncio.to_thread(uploads.remove_old_uploads, self._context.home)
        await self._alarms.begin()
        await self._gates.remember_ended()
        await self.look_around()
        if sweeping:
            self._sweeper = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Go no more rounds."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._context.settings.sweep_s)
            try:
                await self.look_around()
            except PronyError as exc:  # the database is away; agents go on, and so does the round
                self._context.hook("maintenance_failed", message=exc.message)
            # Beside the round, which looks after leases and must not wait for a long history.
            if self._judging is None or self._judging.done():
                self._judging = self._context.spawn(self.attend())
            self.after_round()

    async def attend(self) -> None:
        """See to what results mean for people: in every round which gates failed, and in every fifth what changed in a
        history, which is judged as a whole: results that come one by one then cost less together."""
        await self._gates.judge_ended()
        self._rounds_gone += 1
        if self._rounds_gone % _HISTORY_ROUNDS == 0:
            await self._confirmations.attend()

    async def look_around(self) -> None:
        """Go one round."""
        await self._liveness.note_signs(self.last_round - self._context.settings.sweep_s)
        await self._liveness.look_after_leases()
        await self._schedules.fire_due()
        await self._alarms.send_ready()
        if await self._liveness.reconcile_if_due():
            await self._alarms.load()
        if self._context.now() - self._forgot >= _DAY_S:
            await self._context.write(partial(_forget, before=self._context.clock.now() - _KEPT))
            for sha256 in await scripts.remove_unneeded(self._context):
                self._context.hook("scripts_removed", sha256=sha256)
            self._forgot = self._context.now()
        self.last_round = self._context.now()


def _forget(transaction: Transaction, before: datetime) -> None:
    """Forget what ended before then: incidents with what was told of them, and fires of schedules."""
    alarm_rows.prune(transaction.connection, before)
    schedules.prune(transaction.connection, before)


_LEAST_FREE = 100 * 2**20


class HealthCheck:
    """Try the database, the disk and the round that looks after leases."""

    def __init__(self, context: FleetContext, maintenance: Maintenance) -> None:
        self._context = context
        self._maintenance = maintenance

    async def check(self) -> Health:
        """Try every part for real: a read, a write, the disk, the round that looks after leases."""
        from prony import __version__

        parts = [await self._database_reads(), await self._database_writes(), self._disk(), self._round()]
        return Health(ok=all(part.ok for part in parts), version=__version__, parts=tuple(parts))

    async def _database_reads(self) -> HealthPart:
        try:
            await asyncio.wait_for(self._context.read(is_answering), 5)
        except (PronyError, TimeoutError) as exc:
            return HealthPart(name="database", ok=False, detail=str(exc) or "no answer in 5 s")
        return HealthPart(name="database", ok=True, detail=self._context.engine.dialect.name)

    async def _database_writes(self) -> HealthPart:
        def touch(transaction: object) -> None:
            """An empty transaction is still one that the writer began and committed."""

        try:
            await asyncio.wait_for(self._context.write(touch), 5)
        except (PronyError, TimeoutError) as exc:
            return HealthPart(name="writer", ok=False, detail=str(exc) or "no answer in 5 s")
        return HealthPart(
            name="writer", ok=self._context.writer.lives, detail=f"{self._context.writer.backlog} writes waiting"
        )

    def _disk(self) -> HealthPart:
        free = shutil.disk_usage(self._context.home.root).free
        writable = os.access(self._context.home.results, os.W_OK)
        ok = writable and free >= _LEAST_FREE
        return HealthPart(
            name="disk", ok=ok, detail=f"{free / 2**30:.1f} GiB free" + ("" if writable else ", read-only")
        )

    def _round(self) -> HealthPart:
        age = self._context.now() - self._maintenance.last_round
        ok = age < 10 * self._context.settings.sweep_s + 10
        return HealthPart(name="round", ok=ok, detail=f"last maintenance {age:.1f} s ago")
