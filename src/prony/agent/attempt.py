"""Run the job of one lease: start its runner, report its progress, pass on its gang messages, and stop it on request.

The server's answers to gang messages are returned to the runner in this machine's time.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlsplit

from prony.agent.finalize_attempt import Ending
from prony.agent.logs import AgentLog
from prony.agent.process import GRACE_S, RunnerProcess
from prony.agent.reporter import Reporter, open_log
from prony.agent.server_client import Refused
from prony.agent.spool import Work
from prony.agent.stopping import cancel_tasks
from prony.client.wire import delays
from prony.errors import TransportError
from prony.instruments.clock import Trip, offset_of
from prony.model.event import Event
from prony.model.gang import Meeting, Told
from prony.model.lease import Lease
from prony.ports.agent_link import MeetingLink, ServerLink
from prony.store.home import Home

T = TypeVar("T")

_TRIPS = 24
_WAIT_S = 10.0


class Messenger:
    """Goes to where a gang meets for one runner. `tell` writes a line to it."""

    def __init__(self, link: MeetingLink, lease_id: str, *, tell: Callable[[str], None], log: AgentLog) -> None:
        self._link = link
        self._lease_id = lease_id
        self._tell = tell
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, event: Event) -> None:
        """Go; the answer comes when all have met."""
        task = asyncio.create_task(self._go(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait no longer."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _go(self, event: Event) -> None:
        meeting = Meeting(name=event.phase, says=event.message, wait_s=_WAIT_S)
        try:
            trips = await _ask_until_answered(lambda: _read_clock(self._link))
            clock, slowest_ns = offset_of(trips), max(trip.on_the_way_ns for trip in trips)
            meeting = meeting.model_copy(update={"round_trip_ns": max(0, slowest_ns)})
            met = await _ask_until_answered(lambda: self._link.meet(self._lease_id, meeting))
        except Refused as exc:  # the lease is over: the reporter hears that too, and has the runner stopped
            self._log.warning(
                "could not start together with the other agents: the lease is over",
                meeting=meeting.name,
                reason=exc.error.message,
            )
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


async def _read_clock(link: MeetingLink) -> list[Trip]:
    """Ask for the other side's time again and again."""
    trips = []
    for _ in range(_TRIPS):
        sent_ns = time.perf_counter_ns()
        read = await link.clock()
        back_ns = time.perf_counter_ns()
        trips.append(Trip(sent_ns, read.received_ns, read.answered_ns, back_ns))
    return trips


_FLUSH_S = 2.0
_LINGER_S = 1.0


class Why(StrEnum):
    """Who wanted a job to stop: the server, because it was cancelled or is not ours any more; or this agent's end."""

    CANCELLED = "cancelled"
    LOST = "lost"
    DRAINED = "drained"


class RunningAttempt:
    """A lease while its job runs."""

    def __init__(self, lease: Lease, work: Work, link: ServerLink, log: AgentLog) -> None:
        self.lease = lease
        self.work = work
        self.why: Why | None = None
        self._log = log
        self._asked = asyncio.Event()
        self._has_ended = False
        self._grace_s = GRACE_S
        self._link = link
        self._reporter = Reporter(link, lease.id, open_log(work), on_cancel=self._cancel, log=log)

    def ask_to_stop(self, why: Why, *, grace_s: float = GRACE_S) -> None:
        """Have the job stopped and what was measured kept; the first reason stands."""
        if self.why is None:
            self.why = why
            self._grace_s = grace_s
            self._log.info("stopping the job", reason=why.value)
            # What has ended is stopped no more, and its folder may be on its way out: a line would leave it there.
            if not self._has_ended:
                self._reporter.say(f"stopped: {why.value}")
        self._asked.set()

    def _cancel(self, is_lost: bool) -> None:
        self.ask_to_stop(Why.LOST if is_lost else Why.CANCELLED)

    async def perform(self, home: Home, calibration_id: str | None, policy: dict[str, str]) -> Ending:
        """Run the job to its end, or to where it is stopped."""
        is_part = self.lease.job.part is not None
        runner = await RunnerProcess.start(self.work, home, calibration_id, policy, is_part=is_part)
        messenger = Messenger(self._link, self.lease.id, tell=runner.tell, log=self._log)
        self._log.debug("runner started", pid=runner.pid)
        reporting = asyncio.create_task(self._reporter.run())
        hearing = asyncio.create_task(self._hear(runner, messenger))
        exiting = asyncio.create_task(runner.wait())
        asking = asyncio.create_task(self._asked.wait())
        try:
            await asyncio.wait({exiting, asking}, return_when=asyncio.FIRST_COMPLETED)
            exit_code = exiting.result() if exiting.done() else await runner.stop(self._grace_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(hearing, _LINGER_S)
        finally:
            runner.close()
            await cancel_tasks(reporting, hearing, exiting, asking)
            await messenger.close()
        await self._reporter.flush(_FLUSH_S)
        self._has_ended = True
        return Ending(exit_code, cancelled=self.why is not None)

    async def _hear(self, runner: RunnerProcess, messenger: Messenger) -> None:
        async for said in runner.events():
            if isinstance(said, Event) and said.kind == "meet":
                messenger.send(said)
            elif isinstance(said, Event):
                self._reporter.event(said)
            else:
                self._reporter.say(said)
