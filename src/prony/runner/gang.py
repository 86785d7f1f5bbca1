"""Gang member: meet the other parts of a job through the agent.

A meeting is an event on standard output and, when all members have come, a line on standard input: what each said, and
when all go on by this machine's clock.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from prony.errors import InputError, MeasurementError, PronyError
from prony.load.endpoint import is_local
from prony.load.generator import ClientShare
from prony.model.clients import ClientTiming
from prony.model.event import Event
from prony.model.gang import Offset, Part, Told
from prony.model.job import Job
from prony.ports.driver import Endpoint
from prony.runner.context import Stopped

_IN = 0
_TICK_S = 0.2
_BOOT, _NETWORK = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/net")


class LostGangError(PronyError):
    """Nobody leads to the others any more."""

    code = "agents_missing"


@dataclass(frozen=True)
class GangStart:
    """When this part begins by its own clock, and what was known of that clock then."""

    at_ns: int
    clock: Offset
    late_ns: int


class Gang:
    """One member's way to the others."""

    def __init__(self, job: Job, part: Part, emit: Callable[[Event], None], stop_asked: Callable[[], bool]) -> None:
        self.part = part
        self._job = job
        self._emit = emit
        self._stop_asked = stop_asked
        self._heard = b""
        self._starts: list[GangStart] = []
        self.is_one_machine = False
        self.share = ClientShare(part.index, part.of)
        # With nodes of their own for the clients, the first part has the service and sends nothing.
        self.first_sender = 0 if job.load.clients.on is None else job.agents - job.load.clients.agents

    # Where the load goes

    @property
    def sends(self) -> bool:
        """Does this part send requests, or does it only have the service?"""
        return self.part.index >= self.first_sender

    @property
    def senders(self) -> int:
        return self.part.of - self.first_sender

    def agree_on_endpoint(self, endpoint: Endpoint | None, address: str = "") -> Endpoint:
        """Tell the others where the service listens, or hear it from the first of them; `address` is where others reach
        it, if it listens there."""
        shown = asdict(endpoint) if endpoint is not None else None
        mine = {"machine": loopback_id(), "endpoint": shown, "address": address}
        said = [json.loads(text) for text in self.meet("scene", json.dumps(mine)).said]
        self.is_one_machine = len({one["machine"] for one in said}) == 1
        found = Endpoint(**(said[0]["endpoint"] or {}))
        if not self.is_one_machine and is_local(found) and said[0]["address"]:
            return replace(found, host=said[0]["address"])
        if not self.is_one_machine and is_local(found):
            raise InputError(
                f"{found.path or f'{found.host}:{found.port}'} is a different server on each agent's machine",
                hint="use an endpoint that all agents can reach: start the service yourself, and write its host",
                code="loopback",
            )
        return found

    def agree_on_shares(self, processes: int) -> None:
        """Tell how many client processes there are here; with the others' it says which part of the schedule is ours.

        Each machine may have as many as it likes: the schedule is dealt out to all of them in turn."""
        counts = [int(text) for text in self.meet("shares", str(processes)).said]
        self.share = ClientShare(sum(counts[: self.part.index]), sum(counts))

    def agree_on_salt(self, salt: str) -> str:
        """Return the salt of the first: prompts that begin alike do so from wherever they are sent."""
        return self.meet("salt", salt).said[0]

    # One run

    def start(self, index: int) -> int:
        """Wait until all are ready; return when all begin."""
        return self.begin(index).at_ns

    def begin(self, index: int, says: str = "") -> Told:
        """The same, with what each has to say to it."""
        told = self.meet(f"run-{index}", says)
        self._starts.append(GangStart(told.at_ns, told.clock, max(0, time.perf_counter_ns() - told.at_ns)))
        return told

    def latest_timing(self) -> ClientTiming:
        """Return what was known of the clock when the latest run began."""
        begun = self._starts[-1]
        return ClientTiming(
            offset_ns=begun.clock.offset_ns, uncertainty_ns=begun.clock.uncertainty_ns, late_ns=begun.late_ns
        )

    def timing(self, index: int, on_tick: Callable[[], None] = lambda: None) -> ClientTiming:
        """Wait until all have ended, and look at the clocks again; one that is stopped knows of its start alone."""
        known = self.latest_timing()
        try:
            now = self.meet(f"after-{index}", on_tick=on_tick).clock
        except Stopped:
            return known
        most = max(known.uncertainty_ns, now.uncertainty_ns)
        return known.model_copy(update={"drift_ns": now.offset_ns - known.offset_ns, "uncertainty_ns": most})

    # Meetings

    def come(self, name: str, says: str) -> None:
        """Say something to the others that come there, and go on: what they say is not heard."""
        self._emit(Event(kind="meet", job_id=self._job.id, phase=name, message=says))

    def meet(self, name: str, says: str = "", *, on_tick: Callable[[], None] = lambda: None) -> Told:
        """Say that we have come, and wait for the others; `on_tick` is called now and then meanwhile."""
        self.come(name, says)
        limit = time.monotonic() + self._job.limits.timeout / 1e9
        while True:
            if self._stop_asked():
                raise Stopped
            on_tick()
            told = self._next()
            if told is not None and told.name == name:
                return told
            if time.monotonic() > limit:
                waited = self._job.limits.timeout / 1e9
                raise MeasurementError(
                    f"timed out waiting for the other agents of this job at `{name}` after {waited:g} s",
                    hint="check that all agents use the same server; limits.timeout is how long they wait",
                    code="agents_missing",
                )

    def _next(self) -> Told | None:
        """Return the next line, or None where there is none yet."""
        line, newline, rest = self._heard.partition(b"\n")
        if newline:
            self._heard = rest
            return Told.read_json(line)
        ready, _, _ = select.select([_IN], [], [], _TICK_S)
        if ready:
            data = os.read(_IN, 2**16)
            if not data:
                raise LostGangError(
                    "this part of a job waits for the other agents, and no agent runs it",
                    hint="submit the whole recipe to a server: prony run RECIPE --server URL",
                )
            self._heard += data
        return None


def loopback_id() -> str:
    """Return what is the same for all processes that share a loopback, and for no others."""
    try:
        return f"{_BOOT.read_text().strip()} {_NETWORK.readlink()}"
    except OSError:
        import platform
        import uuid

        return f"{platform.node()}-{uuid.getnode()}"


def gang_of(job: Job, emit: Callable[[Event], None], stop_asked: Callable[[], bool]) -> Gang | None:
    """Return the gang that a job is part of; None where it is a whole job."""
    if job.part is not None:
        return Gang(job, job.part, emit, stop_asked)
    if job.agents > 1:
        raise InputError(
            f"job {job.id} needs {job.agents} agents together",
            hint="submit its recipe to a server: prony run RECIPE --server URL",
            code="needs_agents",
        )
    return None
