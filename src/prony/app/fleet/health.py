"""Say whether every part of a server works."""

from __future__ import annotations

import asyncio
import os
import shutil

from prony.app.fleet.context import FleetContext
from prony.app.fleet.maintenance import Maintenance
from prony.errors import PronyError
from prony.model.queue import Health, HealthPart
from prony.store.database import is_answering

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
        def touch(desk: object) -> None:
            """An empty transaction is still one that the writer began and committed."""

        try:
            await asyncio.wait_for(self._context.write(touch), 5)
        except (PronyError, TimeoutError) as exc:
            return HealthPart(name="writer", ok=False, detail=str(exc) or "no answer in 5 s")
        return HealthPart(name="writer", ok=self._context.writer.lives, detail=f"{self._context.writer.backlog} wait")

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
        return HealthPart(name="round", ok=ok, detail=f"{age:.1f} s ago")
