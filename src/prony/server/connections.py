"""Count the open connections of a server, in total and by address, and say which one has to go when there are too many.

A connection that has sent no whole request yet is `half-open`. Of those an address has few at a time: a client sends
its request at once. When an address has too many of them for longer than a moment, or too many connections at all, its
oldest half-open or idle connection goes, so that whoever sends whole requests from there still gets through.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from prony.app.access import network_of
from prony.errors import InputError

_log = structlog.get_logger("prony.server")
PER_ADDRESS = "PRONY_CONNECTIONS_PER_ADDRESS"
_LOG_EVERY_S = 10.0
# A whole fleet may connect at once after a restart, and its requests come a little later.
_MOMENT_S = 2.0
# Descriptors for all else: the database, files of results, pipes to processes.
_RESERVE = 100


class Connection(Protocol):
    """One connection, as those who count them see it."""

    def evict(self) -> None: ...


@dataclass(frozen=True)
class ConnectionLimits:
    """`half_open` and `per_address` count for one address; for IPv6 a /64 network is one address."""

    total: int
    per_address: int
    half_open: int = 100


class Connections:
    """Those of all ports of one server. Each is busy with a request, idle between two, or half-open."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        # Kept in the order in which they came to be what they are: the first is the oldest.
        self._half_open: dict[str, dict[Connection, float]] = {}
        self._idle: dict[str, dict[Connection, float]] = {}
        self._counts: dict[str, int] = {}
        self._total = 0
        self._told: dict[str, tuple[float, int]] = {}

    def __len__(self) -> int:
        return self._total

    def add(self, connection: Connection, address: str) -> bool:
        """Count a new connection, which is half-open; False, and a line in the log, where there is no room for it."""
        key = network_of(address)
        if not self._make_room(key):
            self.tell("connection refused: too many are open", address)
            return False
        self._total += 1
        self._counts[key] = self._counts.get(key, 0) + 1
        self._half_open.setdefault(key, {})[connection] = self._clock()
        return True

    def remove(self, connection: Connection, address: str) -> None:
        key = network_of(address)
        self._forget(connection, key)
        self._total -= 1
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]

    def note_busy(self, connection: Connection, address: str) -> None:
        """Its request has come; it is never closed for want of room until it is answered."""
        self._forget(connection, network_of(address))

    def note_idle(self, connection: Connection, address: str) -> None:
        """Its request is answered, and it may bring another."""
        key = network_of(address)
        self._forget(connection, key)
        self._idle.setdefault(key, {})[connection] = self._clock()

    def note_half_open(self, connection: Connection, address: str) -> None:
        """The next request has begun to come."""
        key = network_of(address)
        self._forget(connection, key)
        self._half_open.setdefault(key, {})[connection] = self._clock()

    def tell(self, event: str, address: str) -> None:
        """Log what was done to a connection, one line for all of the same kind within some seconds."""
        said_at, count = self._told.get(event, (-_LOG_EVERY_S, 0))
        count += 1
        if self._clock() - said_at >= _LOG_EVERY_S:
            _log.warning(event, address=address, count=count, connections=self._total)
            said_at, count = self._clock(), 0
        self._told[event] = (said_at, count)

    def _make_room(self, key: str) -> bool:
        """Close the oldest connection that may go where there are too many."""
        half_open = self._half_open.get(key, {})
        if len(half_open) >= self.limits.half_open and self._clock() - next(iter(half_open.values())) > _MOMENT_S:
            return self._evict(self._half_open, key)
        if self._counts.get(key, 0) >= self.limits.per_address:
            return self._evict(self._half_open, key) or self._evict(self._idle, key)
        if self._total >= self.limits.total:
            greediest = max(self._half_open, key=lambda one: len(self._half_open[one]), default=key)
            return self._evict(self._half_open, greediest) or self._evict(self._idle, key)
        return True

    def _evict(self, group: dict[str, dict[Connection, float]], key: str) -> bool:
        oldest = next(iter(group.get(key, ())), None)
        if oldest is None:
            return False
        self._forget(oldest, key)
        self.tell("connection closed: too many from this address", key)
        oldest.evict()
        return True

    def _forget(self, connection: Connection, key: str) -> None:
        for group in (self._half_open, self._idle):
            found = group.get(key)
            if found is not None and connection in found:
                del found[connection]
                if not found:
                    del group[key]


def descriptor_limits(environment: Mapping[str, str] = os.environ) -> ConnectionLimits:
    """Return limits that leave room below the number of files that this process may have open."""
    most = _most_connections()
    asked = environment.get(PER_ADDRESS, "")
    if asked and not (asked.isdecimal() and 0 < int(asked) < 10**9):
        raise InputError(f"{PER_ADDRESS}={asked[:100]!r} is not a number of connections", hint="as in 500")
    per_address = min(int(asked) if asked else max(8, most * 3 // 4), most)
    return ConnectionLimits(most, per_address, max(1, min(ConnectionLimits.half_open, per_address // 2)))


def _most_connections() -> int:
    if sys.platform == "win32":
        return 10_000
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 100_000 if soft in (resource.RLIM_INFINITY, -1) else max(16, soft - max(_RESERVE, soft // 4))
