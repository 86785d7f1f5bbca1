"""A real fleet over a real database, whose time passes when a test says so, and agents that are only their words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from prony.app.fleet.context import FleetSettings
from prony.app.fleet.fleet import Fleet
from prony.model.access import Principal, Role
from prony.model.agent import Agent, Capabilities, Enrolment, Fact, Heartbeat, HeartbeatAnswer
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, Progress, ProgressAnswer
from prony.model.queue import ExperimentView, JobDetail, JobState, QueuedJob, Submission
from prony.model.result import ResultState
from prony.model.target import TargetOffer
from prony.store.home import Home

from .parcels import Parcel, packed

ME = Principal(name="tester", role=Role.ADMIN)
# What a device tells that could run the recipe below.
FACTS: Mapping[str, Fact] = {
    "os": "linux",
    "engine": ("null",),
    "engine.null": "1",
    "engine.null.unit": ("cpu",),
    "unit": ("cpu",),
    "schemes": ("zoo",),
    "kinds": ("model",),
}
TTL_S = 30.0
SETTINGS = FleetSettings(ttl_s=TTL_S, sweep_s=10.0, reconcile_s=0.0)
# After so long a lease is lost for certain: a sign of life counts from the round that writes it down.
SILENCE_S = TTL_S + 3 * SETTINGS.sweep_s


def recipe(jobs: int = 3, name: str = "small", *, times: int = 1, **place: Any) -> str:
    """Return a recipe of so many jobs, and of so many times as many; the rest is written under `place`."""
    lines = [
        f"name: {name}",
        'workload: {kind: model, model: "zoo:noop", engine: "null"}',
        f"matrix: {{workload.batch_size: {list(range(1, jobs + 1))}, workload.threads: {list(range(1, times + 1))}}}",
        "measure: {runs: 5, repeats: 1}",
        f"place: {{{', '.join(f'{key}: {value}' for key, value in place.items())}}}" if place else "",
    ]
    return "\n".join(lines) + "\n"


class SetClock:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.at = datetime(2025, 6, 1, 12, tzinfo=UTC)

    def monotonic_ns(self) -> int:
        return 0

    def now(self) -> datetime:
        return self.at

    def step(self, **delta: float) -> None:
        self.at += timedelta(**delta)


@dataclass
class FleetFixture:
    """One server's fleet."""

    fleet: Fleet
    clock: SetClock
    seconds: float

    async def submit(self, text: str = "", **options: Any) -> ExperimentView:
        key = options.pop("key", None)
        view, _ = await self.fleet.experiments.submit(Submission(text=text or recipe(), **options), key=key, who=ME)
        return view

    async def agent(self, name: str = "a", *, device: str = "", facts: Mapping[str, Fact] | None = None) -> FakeAgent:
        """Enrol an agent; each has a device of its own, unless one is named."""
        fake_agent = FakeAgent(self, name, device or f"device-{name}", dict(FACTS if facts is None else facts))
        await fake_agent.enrol()
        return fake_agent

    async def stand_in(self, name: str = "far", *, slots: int = 2) -> FakeAgent:
        """Enrol an agent that stands in for a target of its name."""
        fake_agent = FakeAgent(self, name, f"device-{name}", dict(FACTS), slots=slots)
        await fake_agent.enrol()
        return fake_agent

    async def pass_time(self, seconds: float, *, beating: Sequence[tuple[FakeAgent, Lease]] = ()) -> None:
        """Let time pass in steps, with a round after each; who beats does so before each round."""
        end = self.seconds + seconds
        while self.seconds < end:
            step = min(self.fleet.context.settings.sweep_s, end - self.seconds)
            self.seconds += step
            self.clock.step(seconds=step)
            for fake_agent, lease in beating:
                await fake_agent.beat(lease.id)
            await self.look()

    async def look(self) -> None:
        """Go one round, and do all that follows from it."""
        await self.fleet.maintenance.look_around()
        await self.settle()

    async def settle(self) -> None:
        """Let everything come to rest that was set off and that nobody waits for."""
        await asyncio.sleep(0)
        while self.fleet.context.tasks:
            await asyncio.wait(self.fleet.context.tasks)
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let others go on until something holds, or fail."""
        async with asyncio.timeout(120):
            while not holds():
                await asyncio.sleep(0.001)

    @asynccontextmanager
    async def waiting(self, *fake_agents: FakeAgent) -> AsyncIterator[list[asyncio.Task[Lease | None]]]:
        """Have agents wait for a job in the order in which they are named; those that still do at the end stop."""
        await self.settle()  # a server that has just heard of an agent wakes it, to look again at what it may do
        polls = []
        for fake_agent in fake_agents:
            polls.append(asyncio.create_task(fake_agent.poll(wait_s=30)))
            await self.until(partial(self.fleet.state.waiters.__contains__, fake_agent.id))
        try:
            yield polls
        finally:
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)

    # Looking

    async def job(self, job_id: str) -> QueuedJob:
        return (await self.fleet.jobs.get(job_id)).queued

    async def detail(self, job_id: str) -> JobDetail:
        return await self.fleet.jobs.get(job_id)

    async def tried(self, job_id: str) -> list[tuple[int, str, str]]:
        """Return number, agent's name and end of every attempt."""
        attempts = (await self.fleet.jobs.get(job_id)).attempts
        return [(one.number, one.agent_id.rpartition("-")[0], one.state) for one in attempts]

    async def jobs(self, experiment_id: str) -> list[QueuedJob]:
        """Return an experiment's jobs in the order of its cells."""
        page = await self.fleet.jobs.page(experiment=experiment_id, limit=10_000)
        return sorted(page.items, key=lambda job: job.id)

    async def counts(self, experiment_id: str) -> dict[str, int]:
        view = await self.fleet.experiments.get(experiment_id)
        return {state.value: count for state, count in view.counts.items()}

    async def state(self, experiment_id: str) -> str:
        return (await self.fleet.experiments.get(experiment_id)).experiment.state.value

    async def job_state(self, job_id: str) -> JobState:
        return (await self.job(job_id)).state


@dataclass
class FakeAgent:
    """An agent's side of the talk: it says what it is told to say, and does nothing by itself."""

    fleet_fixture: FleetFixture
    name: str
    device: str
    facts: dict[str, Fact]
    life: int = 1
    id: str = ""
    slots: int = 0  # of a stand-in

    @property
    def incarnation(self) -> str:
        return f"life-{self.life}"

    @property
    def fleet(self) -> Fleet:
        return self.fleet_fixture.fleet

    def at(self, fleet_fixture: FleetFixture) -> FakeAgent:
        """Return the same agent as it talks to another server."""
        return replace(self, fleet_fixture=fleet_fixture)

    async def enrol(self, *holding: str) -> Agent:
        target = TargetOffer(name=self.name, kind="slurm", slots=self.slots) if self.slots else None
        capabilities = Capabilities(facts=self.facts, target=target)
        asked = Enrolment(id=self.id or None, name=self.name, device_key=self.device, incarnation=self.incarnation,
                          capabilities=capabilities, holding=holding)  # fmt: skip
        enrolled = await self.fleet.agents.enroll(asked, who=ME)
        self.id = enrolled.agent.id
        return enrolled.agent

    async def restart(self, *holding: str) -> Agent:
        """Be killed, and come back as another life of the same agent, which goes on with these leases."""
        self.life += 1
        return await self.enrol(*holding)

    async def poll(self, *, wait_s: float = 0, holding: Sequence[str] = ()) -> Lease | None:
        """Ask for a job, when the server has thought of all that it was told."""
        if not wait_s:
            await self.fleet_fixture.settle()
        asked = LeaseRequest(agent_id=self.id, incarnation=self.incarnation, holding=tuple(holding), wait_s=wait_s)
        return await self.fleet.leases.acquire(asked, who=ME)

    async def lease(self) -> Lease:
        """Ask for a job that is surely there."""
        lease = await self.poll()
        assert lease is not None
        return lease

    async def beat(self, *lease_ids: str) -> HeartbeatAnswer:
        return await self.fleet.agents.heartbeat(
            self.id, Heartbeat(incarnation=self.incarnation, leases=lease_ids), who=ME
        )

    async def progress(self, lease: Lease, **said: Any) -> ProgressAnswer:
        return await self.fleet.leases.renew(lease.id, Progress(**said), who=ME)

    async def finish(
        self, lease: Lease, state: ResultState | str = "complete", *, go_on: bool = False, **changes: Any
    ) -> FinishAnswer:
        made = packed(lease.job, ResultState(state), **changes)
        return await self.send(lease, made, go_on=go_on)

    async def send(self, lease: Lease, made: Parcel, *, go_on: bool = False) -> FinishAnswer:
        return await self.fleet.intake.finish(lease.id, made.chunks(), sha256=made.sha256, next=go_on, who=ME)

    async def hand_back(self, lease: Lease, reason: str = "") -> None:
        await self.fleet.leases.hand_back(lease.id, reason, who=ME)

    async def shown(self) -> Agent:
        return await self.fleet.agents.get(self.id)


@asynccontextmanager
async def open_fleet(
    home: Home,
    url: str = "",
    settings: FleetSettings = SETTINGS,
    *,
    clock: SetClock | None = None,
    seconds: float = 1000.0,
) -> AsyncIterator[FleetFixture]:
    """Open a fleet that goes its rounds only when it is told to."""
    fleet = await asyncio.to_thread(Fleet.open, home, url=url, settings=settings)
    fleet_fixture = FleetFixture(fleet, clock or SetClock(), seconds)
    fleet.context.clock = fleet_fixture.clock
    fleet.context.time = lambda: fleet_fixture.seconds
    await fleet.start(sweeping=False)
    await fleet_fixture.settle()
    try:
        yield fleet_fixture
    finally:
        await fleet.stop()
