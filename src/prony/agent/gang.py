"""Pass a runner's gang messages to the server and return the answers in this machine's time."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

from prony.agent.logs import Log
from prony.agent.server_client import Refused
from prony.client.wire import delays
from prony.errors import TransportError
from prony.instruments.offset import Trip, offset_of
from prony.model.event import Event
from prony.model.gang import Meeting, Offset, Told
from prony.ports.agent_link import ServerLink

T = TypeVar("T")

_TRIPS = 24
_WAIT_S = 10.0


class Messenger:
    """Goes to the server for one runner. `tell` writes a line to it."""

    def __init__(self, link: ServerLink, lease_id: str, *, tell: Callable[[str], None], log: Log) -> None:
        self._link = link
        self._lease_id = lease_id
        self._tell = tell
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, event: Event) -> None:
        """Go; the answer comes when all have met."""
        task = asyncio.create_task(self._go(Meeting(name=event.phase, says=event.message, wait_s=_WAIT_S)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait no longer."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _go(self, meeting: Meeting) -> None:
        try:
            clock = await _ask_until_answered(lambda: clock_of(self._link))
            met = await _ask_until_answered(lambda: self._link.meet(self._lease_id, meeting))
        except Refused as exc:  # the lease is over: the reporter hears that too, and has the runner stopped
            self._log.warning("the others are not met", meeting=meeting.name, reason=exc.error.message)
            return
        told = Told(name=meeting.name, said=met.said, at_ns=met.at_ns - clock.offset_ns, clock=clock)
        self._log.debug("met", meeting=meeting.name, uncertainty_us=clock.uncertainty_ns / 1000)
        self._tell(told.model_dump_json())


async def _ask_until_answered(ask: Callable[[], Awaitable[T | None]]) -> T:
    """Ask until there is an answer, however long the server is away; only a refusal ends it."""
    pauses = delays(0.1, 2.0)
    while True:
        try:
            found = await ask()
        except TransportError:
            await asyncio.sleep(next(pauses))
        except Refused as exc:
            if exc.is_final:
                raise
            await asyncio.sleep(exc.retry_after_s or next(pauses))
        else:
            if found is not None:
                return found


def address_towards(server: str) -> str:
    """Return the address that this machine has on its way to the server; empty where that has none. Nothing is sent."""
    at = urlsplit(server)
    try:
        found = socket.getaddrinfo(at.hostname, at.port or 80, type=socket.SOCK_DGRAM)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as way:
            way.connect(found[0][4])
            return str(way.getsockname()[0])
    except OSError:  # no such name, or no way there just now
        return ""


async def clock_of(link: ServerLink) -> Offset:
    """Ask for the server's time again and again, and return what the quickest answer says."""
    trips = []
    for _ in range(_TRIPS):
        sent_ns = time.perf_counter_ns()
        read = await link.clock()
        back_ns = time.perf_counter_ns()
        trips.append(Trip(sent_ns, read.received_ns, read.answered_ns, back_ns))
    return offset_of(trips)
