"""The newest result of every series, kept in memory for whoever watches the fleet's figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from prony.app.fleet.context import FleetContext
from prony.errors import NotFoundError
from prony.model.history import Series
from prony.store import series as rows

# So many are kept; what Prometheus is given must not grow with the store.
MOST_SERIES = 10_000
# Series that went with their experiments, and notes that were missed, are made up for so often.
_RELOAD_S = 3600.0


class LatestResults:
    """Read once, and then series by series as they are judged, by this server or another."""

    def __init__(self, context: FleetContext, most: int = MOST_SERIES) -> None:
        self._context = context
        self._most = most
        self._known: dict[str, Series] = {}
        self._loaded_s = -math.inf
        self.left_out = 0

    async def list_series(self) -> Sequence[Series]:
        """Return the series that have a result; the first call reads them."""
        now_s = self._context.now()
        if now_s - self._loaded_s >= _RELOAD_S:
            found, self.left_out = await self._context.read(lambda connection: rows.newest(connection, self._most))
            self._known = {one.id: one for one in found}
            self._loaded_s = now_s
        return tuple(self._known.values())

    async def refresh(self, series_id: str) -> None:
        """Read a series that was judged anew. Until somebody asks for them, none is read."""
        if self._loaded_s == -math.inf:
            return
        try:
            found, _ = await self._context.read(lambda connection: rows.one(connection, series_id))
        except NotFoundError:
            self._known.pop(series_id, None)
            return
        if found.last_at is None:
            return
        self._known[series_id] = found
        if len(self._known) > self._most:
            self._known.pop(min(self._known, key=self._measured_at))
            self.left_out += 1

    def _measured_at(self, series_id: str) -> float:
        last_at = self._known[series_id].last_at
        return -math.inf if last_at is None else last_at.timestamp()
