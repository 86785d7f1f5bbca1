"""Anything that people, agents, clocks and kills can do to a queue, in any order; and what must hold all the while."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any, TypeVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Connection, select

from prony.errors import ConflictError, NotFoundError
from prony.model.lease import FinishAnswer, Lease
from prony.model.queue import JobState
from prony.model.result import ResultState
from prony.model.states import ENDED, experiment_outcome
from prony.store import tables
from prony.store.database import reading
from prony.store.folder import read_folder
from prony.store.home import Home

from .fleet_fixture import FACTS, ME, SILENCE_S, FakeAgent, FleetFixture, SetClock, open_fleet, recipe
from .parcels import OURS, SUT, packed

T = TypeVar("T")
WHICH = st.integers(0, 20)
FAILURES = {"ours": OURS, "sut": SUT, "": None}
WHY = list(FAILURES)


class QueueMachine(RuleBasedStateMachine):
    """`servers` of them share a database. An agent talks to whichever it likes, and may be told anything twice."""

    def __init__(self, home: Home, url: str, servers: int) -> None:
        super().__init__()
        self.home, self.url = home, url
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.clock = SetClock()
        self.grounds: list[FleetFixture] = []
        self.fake_agents: list[FakeAgent] = []
        self.lent: list[tuple[int, Lease]] = []  # every lease that was ever answered with, and to whom
        self.accepted: dict[str, tuple[str, int]] = {}  # lease -> job and attempt
        self.complete: set[str] = set()
        self.has_looked = False
        self.servers = servers

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(work)

    async def _open(self) -> FleetFixture:
        seconds = max([one.seconds for one in self.grounds], default=1000.0)
        return await self.stack.enter_async_context(open_fleet(self.home, self.url, clock=self.clock, seconds=seconds))

    @initialize(tries=st.integers(1, 3))
    def begin(self, tries: int) -> None:
        for _ in range(self.servers):
            self.grounds.append(self.run(self._open()))
        for number in range(3):  # two of them share a device
            fake_agent = FakeAgent(self.grounds[0], f"a{number}", f"device-{number // 2}", dict(FACTS))
            self.run(fake_agent.enrol())
            self.fake_agents.append(fake_agent)
        self.submit(2, tries, 0, 0)

    def teardown(self) -> None:
        if self.grounds:
            self.check_rows()
            self.run(self._all_look())
            self.has_looked = True
            self.check_experiments()
            self.check_folders()
        self.run(self.stack.aclose())
        self.loop.close()

    # People

    @rule(jobs=st.integers(1, 3), tries=st.integers(1, 3), priority=st.integers(-1, 1), at=WHICH)
    def submit(self, jobs: int, tries: int, priority: int, at: int) -> None:
        self.run(self._at(at).submit(recipe(jobs, attempts=tries, priority=priority)))
        self.has_looked = False

    @rule(which=WHICH, at=WHICH, verb=st.sampled_from(["cancel", "retry"]))
    def change_a_job(self, which: int, at: int, verb: str) -> None:
        ids = self._ids(tables.job)
        if ids:
            self._try(getattr(self._at(at).fleet.jobs, verb)(ids[which % len(ids)], who=ME))

    @rule(which=WHICH, at=WHICH, verb=st.sampled_from(["cancel", "retry"]))
    def change_an_experiment(self, which: int, at: int, verb: str) -> None:
        ids = self._ids(tables.experiment)
        if ids:
            self._try(getattr(self._at(at).fleet.experiments, verb)(ids[which % len(ids)], who=ME))

    @rule(which=WHICH, at=WHICH)
    def delete(self, which: int, at: int) -> None:
        ids = self._ids(tables.experiment)
        if len(ids) > 1:
            gone = ids[which % len(ids)]
            self.run(self._at(at).fleet.experiments.delete(gone, force=True, who=ME))
            self.complete = {one for one in self.complete if not one.startswith(f"{gone}-")}
            self.accepted = {key: one for key, one in self.accepted.items() if not one[0].startswith(f"{gone}-")}

    @rule(who=WHICH, at=WHICH, verb=st.sampled_from(["drain", "reset"]))
    def change_an_agent(self, who: int, at: int, verb: str) -> None:
        self._try(getattr(self._at(at).fleet.agents, verb)(self._hand(who).id, who=ME))

    # Agents

    @rule(who=WHICH, at=WHICH, knows=st.booleans())
    def poll(self, who: int, at: int, knows: bool) -> None:
        """Ask for a job, as one that knows what it has or as one that never heard of it."""
        number = who % len(self.fake_agents)
        fake_agent = self._hand(who).at(self._at(at))
        held = [lease.id for whose, lease in self.lent if whose == number] if knows else []
        lease = self.run(fake_agent.poll(holding=held))
        if lease is not None:
            assert lease.job.id not in self.complete
            assert lease.id not in held
            self.lent += [(number, lease)] if all(lease.id != one.id for _, one in self.lent) else []
        self.has_looked = False

    @rule()
    def poll_all_at_once(self) -> None:
        """All of them ask in the same instant, each at every server."""

        async def ask() -> list[tuple[int, Lease | None]]:
            asked = [
                (number, fake_agent.at(at)) for number, fake_agent in enumerate(self.fake_agents) for at in self.grounds
            ]
            found = await asyncio.gather(*(fake_agent.poll() for _, fake_agent in asked))
            return [(number, lease) for (number, _), lease in zip(asked, found, strict=True)]

        known = {lease.id for _, lease in self.lent}
        for number, lease in self.run(ask()):
            if lease is not None:
                assert lease.job.id not in self.complete
                self.lent += [(number, lease)] if lease.id not in known else []
                known.add(lease.id)
        self.has_looked = False

    @rule(who=WHICH, at=WHICH)
    def beat(self, who: int, at: int) -> None:
        number = who % len(self.fake_agents)
        known = [lease.id for whose, lease in self.lent if whose == number]
        answer = self.run(self._hand(who).at(self._at(at)).beat(*known[-20:]))
        running = self._leases()
        assert set(known[-20:]) - set(answer.cancel) <= running

    @precondition(lambda self: self.lent)
    @rule(
        which=WHICH, at=WHICH, state=st.sampled_from(ResultState), why=st.sampled_from(list(FAILURES)), on=st.booleans()
    )
    def finish(self, which: int, at: int, state: ResultState, why: str, on: bool) -> None:
        """Bring a result, of a lease that still is or of one long past, for the first time or again."""
        number, lease = self.lent[-1 - which % len(self.lent)]
        failure = FAILURES[why] if state is not ResultState.COMPLETE else None
        fake_agent = self.fake_agents[number].at(self._at(at))
        try:
            answer = self.run(fake_agent.finish(lease, state, go_on=on, failure=failure))
        except NotFoundError:
            assert lease.job.id not in self._ids(tables.job)
            return
        assert answer.accepted == (lease.id not in self.accepted)
        if answer.accepted:
            self.accepted[lease.id] = (lease.job.id, lease.attempt)
        if answer.lease is not None:
            assert answer.lease.job.id not in self.complete
            self.lent.append((number, answer.lease))
        self.has_looked = False

    @precondition(lambda self: self.lent)
    @rule(which=WHICH)
    def finish_at_all_at_once(self, which: int) -> None:
        """Bring the same result in the same instant to every server, and twice to each."""
        number, lease = self.lent[-1 - which % len(self.lent)]
        made = packed(lease.job)
        fake_agents = [self.fake_agents[number].at(fleet_fixture) for fleet_fixture in self.grounds * 2]

        async def bring() -> list[FinishAnswer]:
            return await asyncio.gather(*(fake_agent.send(lease, made) for fake_agent in fake_agents))

        try:
            answers = self.run(bring())
        except NotFoundError:
            assert lease.job.id not in self._ids(tables.job)
            return
        assert sum(answer.accepted for answer in answers) == (lease.id not in self.accepted)
        self.accepted[lease.id] = (lease.job.id, lease.attempt)
        self.has_looked = False

    @precondition(lambda self: self.lent)
    @rule(which=WHICH, at=WHICH)
    def hand_back(self, which: int, at: int) -> None:
        number, lease = self.lent[-1 - which % len(self.lent)]
        self._try(self.fake_agents[number].at(self._at(at)).hand_back(lease))

    @rule(who=WHICH, at=WHICH)
    def restart_an_agent(self, who: int, at: int) -> None:
        fake_agent = self._hand(who)
        fake_agent.life += 1
        self.run(fake_agent.at(self._at(at)).enrol())

    # Time and fate

    @rule(seconds=st.sampled_from([2, 10, SILENCE_S, 200]))
    def pass_time(self, seconds: float) -> None:
        async def pass_at_all() -> None:
            left = seconds
            while left > 0:
                step = min(10.0, left)
                left -= step
                self.clock.step(seconds=step)
                for fleet_fixture in self.grounds:
                    fleet_fixture.seconds += step
                    await fleet_fixture.look()

        self.run(pass_at_all())
        self.has_looked = True

    @rule()
    def stall(self) -> None:
        """Nobody looks for an hour: nobody is late for that."""
        before = self._leases()
        for fleet_fixture in self.grounds:
            fleet_fixture.seconds += 3600
        self.run(self._all_look())
        assert self._leases() == before
        self.has_looked = True

    @rule(days=st.sampled_from([-3000, -1, 1, 3000]))
    def set_the_clock(self, days: int) -> None:
        self.clock.step(days=days)

    @rule(at=WHICH)
    def replace_a_server(self, at: int) -> None:
        """Kill one and start another: of the first nothing is closed before the very end."""
        self.grounds[at % len(self.grounds)] = self.run(self._open())
        self.has_looked = False

    # What must hold

    @invariant()
    def check_rows(self) -> None:
        if not self.grounds:
            return
        with reading(self.grounds[0].fleet.context.engine) as connection:
            jobs = connection.execute(select(tables.queue)).all()
            attempts = connection.execute(select(tables.attempt).order_by(tables.attempt.c.number)).all()
            results = connection.execute(select(tables.result)).all()
        self._check_leases(jobs, attempts)
        self._check_results(results)
        states = {job.job_id: JobState(job.state) for job in jobs}
        assert all((job.ended_at is None) == (states[job.job_id] not in ENDED) for job in jobs)
        assert all(job.tries_left > 0 for job in jobs if states[job.job_id] not in ENDED)
        assert all(states[job_id] is JobState.COMPLETE for job_id in self.complete), "a complete job was begun again"
        self.complete |= {job_id for job_id, state in states.items() if state is JobState.COMPLETE}
        kept = {(row.job_id, row.attempt) for row in results if row.state == "complete"}
        assert self.complete <= {job_id for job_id, _ in kept}, "complete without a whole result"

    def _check_leases(self, jobs: Any, attempts: Any) -> None:
        leased = [job for job in jobs if job.state == JobState.LEASED]
        devices = Counter(job.device_key for job in leased)
        assert not devices or max(devices.values()) == 1, "two jobs on one device"
        assert {row.lease_id for row in attempts if row.state == "leased"} == {job.lease_id for job in leased}
        assert all(job.lease_id is None for job in jobs if job.state != JobState.LEASED)
        numbers: dict[str, list[int]] = defaultdict(list)
        for row in attempts:
            numbers[row.job_id].append(row.number)
        for job in jobs:
            assert numbers[job.job_id] == list(range(1, job.attempt + 1)), "attempts are not counted one by one"

    def _check_results(self, results: Any) -> None:
        stored = {(row.job_id, row.attempt) for row in results}
        assert stored == set(self.accepted.values()), "what was accepted is not what is stored"
        standing = Counter(row.job_id for row in results if row.stands)
        assert all(count == 1 for count in standing.values())
        assert set(standing) == {row.job_id for row in results}

    @precondition(lambda self: self.has_looked)
    @invariant()
    def check_experiments(self) -> None:
        """After a round, an experiment has ended exactly when all its jobs have, and as they have."""

        def ask(connection: Connection) -> tuple[Any, Any]:
            queued = connection.execute(select(tables.queue.c.experiment_id, tables.queue.c.state)).all()
            return connection.execute(select(tables.experiment)).all(), queued

        with reading(self.grounds[0].fleet.context.engine) as connection:
            experiments, queued = ask(connection)
        for row in experiments:
            counts = Counter(JobState(state) for experiment_id, state in queued if experiment_id == row.id)
            if set(counts) <= ENDED:
                assert (row.state, row.ended_at is None) == (experiment_outcome(counts).value, False)
            else:
                assert row.state in ("pending", "running")
                assert row.ended_at is None

    def check_folders(self) -> None:
        """Every result that was accepted can be read to its end."""
        with reading(self.grounds[0].fleet.context.engine) as connection:
            for row in connection.execute(select(tables.result)):
                contents = read_folder(self.home.results / row.folder)
                assert (contents.result.job_id, contents.result.state) == (row.job_id, row.state)

    # Inside

    def _at(self, number: int) -> FleetFixture:
        return self.grounds[number % len(self.grounds)]

    def _hand(self, number: int) -> FakeAgent:
        return self.fake_agents[number % len(self.fake_agents)]

    def _try(self, work: Coroutine[Any, Any, object]) -> None:
        with suppress(ConflictError, NotFoundError):  # it is in no state that allows it
            self.run(work)
        self.has_looked = False

    async def _all_look(self) -> None:
        for fleet_fixture in self.grounds:
            await fleet_fixture.look()

    def _ids(self, table: Any) -> list[str]:
        with reading(self.grounds[0].fleet.context.engine) as connection:
            return sorted(connection.execute(select(table.c.id)).scalars())

    def _leases(self) -> set[str]:
        query = select(tables.queue.c.lease_id).where(tables.queue.c.state == "leased")
        with reading(self.grounds[0].fleet.context.engine) as connection:
            return set(connection.execute(query).scalars())
