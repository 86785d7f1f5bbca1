"""Hundreds of jobs over several agents while everything around them is killed at random: each ends exactly once.

`PRONY_TEST_FAULT_JOBS` (120) is how many jobs, `PRONY_TEST_FAULT_SEED` (1) what happens when. A failure names both.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.fleet import Fleet, fleet, wait_for
from chaos.proxy import Odds, Proxy
from prony.client import Client
from prony.errors import PronyError
from prony.measure.samples import SAMPLES, read_frame
from prony.model.queue import ExperimentView, JobState, Submission
from prony.store.folder import read_folder
from prony.store.home import Home
from prony.store.store import Store
from servers.postgres import Postgres

JOBS = int(os.environ.get("PRONY_TEST_FAULT_JOBS", "120"))
SEED = int(os.environ.get("PRONY_TEST_FAULT_SEED", "1"))
AGENTS = 4
PATIENCE_S = 240.0

JOB = """{"id": "recorded", "experiment_id": "recorded", "name": "recorded",
 "workload": {"kind": "model", "model": "zoo:tiny", "engine": "onnxruntime"},
 "measure": {"runs": 5, "warmup": 0, "repeats": 1, "cold_starts": 1, "check": false}}"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of one real run."""
    folder = tmp_path_factory.mktemp("recording")
    (folder / "job.json").write_text(JOB)
    command = [sys.executable, "-m", "prony", "exec", str(folder / "job.json"), "--out", str(folder / "out")]
    subprocess.run(command, check=True, env=os.environ | {"PRONY_HOME": str(folder / "home")}, capture_output=True)
    return folder / "out"


def recipe(name: str, count: int) -> Submission:
    sizes = ", ".join(str(size) for size in range(1, count + 1))
    text = f"""
name: {name}
workload: {{kind: model, model: "zoo:tiny", engine: "null"}}
matrix: {{workload.batch_size: [{sizes}]}}
place: {{attempts: 20}}
"""
    return Submission(text=text)


def submit(url: str, name: str, count: int) -> str:
    """Submit for as long as it takes: the same key makes it one experiment however often it is asked for."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with Client(url, attempts=1) as client:
                return client.submit(recipe(name, count), key=name).experiment.id
        except PronyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def asked(url: str, experiment_id: str) -> ExperimentView | None:
    try:
        with Client(url, attempts=1, timeout_s=5) as client:
            return client.experiment(experiment_id)
    except PronyError:
        return None


class Chaos:
    """Does one thing after another to a fleet, by a seed."""

    def __init__(self, fleet: Fleet, proxy: Proxy, postgres: Postgres | None, seed: int) -> None:
        self.fleet = fleet
        self.proxy = proxy
        self.postgres = postgres
        self.random = random.Random(seed)
        self.done: list[str] = []

    def strike(self) -> None:
        deeds: list[Callable[[], None]] = [self.kill_agent, self.kill_agent, self.kill_server, self.proxy.cut_all]
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

    def kill_database(self) -> None:
        if self.postgres is not None:
            self.postgres.kill()
            time.sleep(self.random.uniform(0, 0.5))
            self.postgres.start()


def run_to_the_end(fleet: Fleet, chaos: Chaos, experiments: list[str]) -> None:
    """Strike every second or so while work is left; then let it calm down."""
    deadline = time.monotonic() + PATIENCE_S
    for _ in range(12):
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
    raise AssertionError(f"jobs {JOBS}, seed {SEED}: not done after {PATIENCE_S:g} s: {states}; {chaos.done}\n{logs}")


def check_everything(fleet: Fleet, experiments: list[str], recording: Path) -> None:
    """Every job ended once, complete; every result is whole; nobody holds anything any more."""
    with Client(fleet.url) as client:
        assert client.leases() == ()
        for one in experiments:
            view = client.experiment(one)
            assert view.counts == {JobState.COMPLETE: view.experiment.job_count}, view.counts
    samples = read_frame(recording, SAMPLES)
    with Store.open(Home(fleet.server_home), url=fleet.database) as store:
        for one in experiments:
            jobs, records = store.jobs(one), store.records(one)
            assert [record.job_id for record in records] == [job.id for job in jobs]
            for record in records:
                contents = read_folder(record.folder)
                assert contents.result.job_id == record.job_id
                assert read_frame(record.folder, SAMPLES).equals(samples)


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_every_job_ends_once_whatever_is_killed(
    where: str, tmp_path: Path, recording: Path, request: pytest.FixtureRequest
) -> None:
    postgres: Postgres | None = request.getfixturevalue("private_postgres") if where == "postgresql" else None
    odds = Odds(cut_before=0.02, cut_after=0.04, twice=0.04, delay=0.05, longest_delay_s=0.5)
    with fleet(tmp_path, database=postgres.url if postgres else "") as running:
        running.extra = {"PRONY_TEST_RECORDING": str(recording), "PRONY_TEST_SECONDS": "0.05"}
        running.add_server().start()
        running.wait_ready()
        proxy = Proxy(running.port, odds, SEED)
        try:
            for _ in range(AGENTS):
                running.add_agent(proxy.url).start()
            chaos = Chaos(running, proxy, postgres, SEED)
            experiments = [submit(running.url, f"part-{number}", JOBS // 3) for number in range(3)]
            run_to_the_end(running, chaos, experiments)
            check_everything(running, experiments, recording)
            for agent in running.agents:
                agent.stop()
        finally:
            proxy.close()
        running.servers[0].stop()
        wait_for(lambda: not running.leftovers(), f"processes to end: {running.leftovers()}", 20)
        assert {"twice", "cut_after", "delay"} <= proxy.counts.keys()
        for number in range(AGENTS):
            spool = list((tmp_path / f"a{number}").rglob("result.tar"))
            assert spool == [], f"results that were never taken in: {spool}"
