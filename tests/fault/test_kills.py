"""Hundreds of jobs over several agents while everything around them is killed at random: each ends exactly once.

`PRONY_TEST_FAULT_JOBS` (24; 120 in the slow ones) is how many jobs, `PRONY_TEST_FAULT_SEED` (1) what happens when. A
failure names both.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet
from chaos.proxy import Odds, Proxy
from chaos.work import asked, check_everything, record, submit
from servers.ports import free_port
from servers.postgres import Postgres
from servers.waiting import wait_for

JOBS = os.environ.get("PRONY_TEST_FAULT_JOBS")
SEED = int(os.environ.get("PRONY_TEST_FAULT_SEED", "1"))
AGENTS = 4
PATIENCE_S = 600.0


@dataclass(frozen=True)
class Siege:
    """So many servers on one database, jobs for them, and blows while they are at it."""

    where: str
    servers: int
    jobs: int
    strikes: int
    odds: Odds


SELDOM = Odds(cut_before=0.02, cut_after=0.04, twice=0.04, delay=0.05, longest_delay_s=0.5)
OFTEN = Odds(cut_before=0.04, cut_after=0.1, twice=0.1, delay=0.1, longest_delay_s=0.5)
# With few requests, more of them are hit: each thing must happen to some.
SHORT = {"two": Siege("postgresql", 2, 24, 4, OFTEN)}
LONG = {
    "long-sqlite": Siege("sqlite", 1, 120, 12, SELDOM),
    "long-postgresql": Siege("postgresql", 1, 120, 12, SELDOM),
    "long-two": Siege("postgresql", 2, 120, 12, SELDOM),
}
SIEGES = [
    *(pytest.param(siege, id=name) for name, siege in SHORT.items()),
    *(pytest.param(siege, id=name, marks=pytest.mark.slow) for name, siege in LONG.items()),
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recording"))


class Chaos:
    """Does one thing after another to a fleet, by a seed."""

    def __init__(self, fleet: Fleet, proxies: list[Proxy], postgres: Postgres | None, seed: int) -> None:
        self.fleet = fleet
        self.proxies = proxies
        self.postgres = postgres
        self.random = random.Random(seed)
        self.done: list[str] = []

    def strike(self) -> None:
        deeds: list[Callable[[], None]] = [self.kill_agent, self.kill_agent, self.kill_server, self.cut_connections]
        deeds += [self.kill_database] if self.postgres else []
        deed = self.random.choice(deeds)
        self.done.append(deed.__name__)
        deed()

    def kill_agent(self) -> None:
        agent = self.random.choice(self.fleet.agents)
        agent.kill()
        agent.start()

    def kill_server(self) -> None:
        server = self.random.choice(self.fleet.servers)
        server.kill()
        time.sleep(self.random.uniform(0, 0.5))
        server.start()

    def cut_connections(self) -> None:
        self.random.choice(self.proxies).cut_all()

    def kill_database(self) -> None:
        if self.postgres is not None:
            self.postgres.kill()
            time.sleep(self.random.uniform(0, 0.5))
            self.postgres.start()


def run_to_the_end(fleet: Fleet, chaos: Chaos, experiments: list[str], strikes: int) -> None:
    """Strike every second or so while work is left; then let it calm down."""
    deadline = time.monotonic() + PATIENCE_S
    for _ in range(strikes):
        time.sleep(chaos.random.uniform(0.3, 1.6))
        chaos.strike()
    while time.monotonic() < deadline:
        for process in (*fleet.servers, *fleet.agents):
            if not process.is_running:  # one that could not live without its database is started again, as by a keeper
                process.start()
        views = [asked(fleet.url, one) for one in experiments]
        if all(view is not None and view.experiment.ended_at is not None for view in views):
            return
        time.sleep(0.2)
    states = [view.counts if view else None for view in (asked(fleet.url, one) for one in experiments)]
    logs = "\n".join(f"--- {process.log.name}\n{process.said()[-2500:]}" for process in (*fleet.servers, *fleet.agents))
    raise AssertionError(f"seed {SEED}: not done after {PATIENCE_S:g} s: {states}; {chaos.done}\n{logs}")


@pytest.mark.parametrize("siege", SIEGES)
def test_every_job_ends_once_whatever_is_killed(
    siege: Siege, tmp_path: Path, recording: Path, request: pytest.FixtureRequest
) -> None:
    postgres: Postgres | None = request.getfixturevalue("private_postgres") if siege.where == "postgresql" else None
    jobs = int(JOBS or siege.jobs)
    with ExitStack() as stack:
        running = stack.enter_context(fleet(tmp_path, database=postgres.url if postgres else ""))
        running.extra = {"FLEET_RECORDING": str(recording), "FLEET_SECONDS": "0.05"}
        proxies = [begin_server(running, number, siege.odds, stack) for number in range(siege.servers)]
        for number in range(AGENTS):
            running.add_agent(proxies[number % siege.servers].url).start()
        chaos = Chaos(running, proxies, postgres, SEED)
        experiments = [submit(running.url, f"part-{number}", jobs // 3) for number in range(3)]
        run_to_the_end(running, chaos, experiments, siege.strikes)
        check_everything(running, experiments, recording)
        for process in (*running.agents, *running.servers):
            process.stop()
        wait_for(lambda: not running.leftovers(), f"processes to end: {running.leftovers()}")
        # Each by chance, so that of a few requests through one of them none may have been hit.
        assert {"twice", "cut_after", "delay"} <= {fate for proxy in proxies for fate in proxy.counts}
        unsent = list(tmp_path.glob("a*/**/result.tar"))
        assert unsent == [], f"results that were never taken in: {unsent}"


def begin_server(running: Fleet, number: int, odds: Odds, stack: ExitStack) -> Proxy:
    """Start one more server on the same home and database; return the bad connection to it."""
    port = running.port if number == 0 else free_port()
    running.add_server(port=port).start()
    running.wait_ready(port=port)
    proxy = Proxy(port, odds, SEED + number)
    stack.callback(proxy.close)
    return proxy
