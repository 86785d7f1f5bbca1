"""`prony agent` with a real server, real runners and real signals: whoever is killed, each job ends once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from prony.app.access import Access
from prony.client import Client
from prony.errors import PronyError
from prony.model.access import NewToken, Role
from prony.model.agent import AgentState
from prony.model.queue import JobState, Submission
from prony.model.result import ResultState
from prony.ports.clock import SystemClock
from prony.store.database import connect_database
from prony.store.home import Home
from prony.store.schema import upgrade
from servers.ports import free_port
from servers.process import wait_all_gone
from servers.waiting import wait_for

SHORT = "{runs: 5, repeats: 1, warmup: 1, check: false, isolation: fork}"
LONG = "{runs: 5, repeats: 10000, warmup: 1, check: false, isolation: fork}"
PATIENCE_S = 240.0
# The real agent, except that it starts one engine and not all of this machine's to see what they can do.
QUICK_AGENT = str(Path(__file__).parents[1] / "chaos" / "recorded_agent.py")


def recipe(measure: str = SHORT, batch_sizes: int = 1) -> Submission:
    sizes = list(range(1, batch_sizes + 1))
    text = f"""
name: small
workload: {{kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}}
matrix: {{workload.batch_size: {sizes}}}
measure: {measure}
"""
    return Submission(text=text)


@dataclass
class Started:
    """A process with what it says; ended with the block that it was started in."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def family(self) -> list[psutil.Process]:
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@dataclass
class Ground:
    """A folder with a server's home and the agents' homes in it, and the processes that live there."""

    folder: Path
    stack: ExitStack
    url: str = ""
    options: list[str] = field(default_factory=list)
    number: int = 0

    def server(self, port: int = 0) -> Started:
        command = ["server", "--port", str(port), "--lease-ttl", "30s", *self.options]
        started = self._start(command, self.folder / "server")
        wait_for(lambda: "serving at" in started.said or started.process.poll() is not None)
        found = re.search(r"serving at (http://\S+)", started.said)
        assert found, started.said
        self.url = found[1]
        return started

    def agent(self, *options: str, home: str = "agent", quick: bool = True) -> Started:
        command = ["agent", "start", "--server", self.url, "--log-format", "json", "--log-level", "debug", *options]
        started = self._start(command, self.folder / home, quick=quick)
        wait_for(lambda: '"event": "enrolled"' in started.said or started.process.poll() is not None)
        assert '"event": "enrolled"' in started.said, started.said
        return started

    def client(self, token: str | None = None) -> Client:
        return self.stack.enter_context(Client(self.url, token))

    def prony(self, *arguments: str, home: str = "agent", quick: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            program(arguments, quick=quick),
            capture_output=True,
            text=True,
            check=False,
            env=environment(self.folder / home),
            timeout=PATIENCE_S,
        )

    def _start(self, arguments: list[str], home: Path, *, quick: bool = False) -> Started:
        self.number += 1
        log = self.folder / f"{self.number}-{arguments[0]}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                program(arguments, quick=quick),
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
                env=environment(home),
            )
        self.stack.callback(_end, process)
        return Started(process, log)


def program(arguments: Sequence[str], *, quick: bool) -> list[str]:
    """Return how to run `prony`, or `prony agent` by the program that has one engine."""
    if quick:
        assert arguments[0] == "agent"
        return [sys.executable, QUICK_AGENT, *arguments[1:]]
    return [sys.executable, "-m", "prony", *arguments]


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"PRONY_HOME": str(home), "FLEET_ENGINE": "onnxruntime"}


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        assert gone(family)


@contextmanager
def grounds(folder: Path, *options: str) -> Iterator[Ground]:
    with ExitStack() as stack:
        yield Ground(folder, stack, options=list(options))


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """A server that asks nobody who they are, unless that is the subject."""
    with grounds(tmp_path, "--no-auth") as made:
        yield made


def gone(processes: list[psutil.Process]) -> bool:
    return not wait_all_gone(processes)


def ended(client: Client, experiment_id: str) -> bool:
    try:
        return client.experiments.get(experiment_id).experiment.ended_at is not None
    except PronyError:  # it is just being started again
        return False


def runs(client: Client, job_id: str) -> Callable[[], bool]:
    """Has the job measured something?"""
    return lambda: b"repetition 2" in client.jobs.logs(job_id).text


@pytest.mark.slow
@pytest.mark.usefixtures("new_interpreters")
def test_jobs_run_on_the_agent_and_their_results_and_logs_are_at_the_server(ground: Ground) -> None:
    ground.server()
    agent = ground.agent("--label", "room=lab2", quick=False)
    client = ground.client()
    view = client.experiments.submit(recipe(batch_sizes=3))
    wait_for(lambda: ended(client, view.experiment.id))
    assert client.experiments.get(view.experiment.id).counts == {JobState.COMPLETE: 3}
    data = client.experiments.results(view.experiment.id)
    assert {entry.result.state for entry in data.entries} == {ResultState.COMPLETE}
    assert b"finished" in client.jobs.logs(data.entries[0].job.id).text
    [seen] = client.agents.page().items
    assert seen.capabilities.facts["label.room"] == "lab2"
    assert seen.state in (AgentState.ACTIVE, AgentState.CLEANUP)
    # The server has a result an instant before the agent has heard so.
    spool = ground.folder / "agent" / "agents" / "1" / "spool"
    wait_for(lambda: list(spool.iterdir()) == [])
    assert agent.stop() == 0
    assert client.agents.get(seen.id).state is AgentState.DRAINING


def test_an_agent_that_is_killed_leaves_no_process_and_is_the_same_when_it_is_back(ground: Ground) -> None:
    ground.server()
    agent = ground.agent()
    client = ground.client()
    experiment = client.experiments.submit(recipe(LONG)).experiment
    job = f"{experiment.id}-001"
    wait_for(runs(client, job))
    family = agent.family()
    assert len(family) > 2  # the agent, its runner, the engine's spawner
    agent.kill()
    assert gone(family)
    again = ground.agent()
    assert [one.name for one in client.agents.page().items] == [client.agents.page().items[0].name]
    wait_for(lambda: client.jobs.get(job).queued.attempt == 2)
    attempts = {one.number: one.state for one in client.jobs.get(job).attempts}
    assert attempts[1] == "partial"  # what it had measured was sent when it came back
    client.jobs.cancel(job)
    wait_for(lambda: ended(client, experiment.id))
    assert client.jobs.get(job).queued.state is JobState.CANCELLED
    assert again.stop() == 0


def test_cancelling_reaches_a_running_job_in_seconds_and_frees_the_device(ground: Ground) -> None:
    ground.server()
    ground.agent()
    client = ground.client()
    long = client.experiments.submit(recipe(LONG)).experiment
    short = client.experiments.submit(recipe()).experiment
    wait_for(runs(client, f"{long.id}-001"))
    begin = time.monotonic()
    client.experiments.cancel(long.id)
    wait_for(lambda: ended(client, long.id))
    assert time.monotonic() - begin < 60  # of its own accord it would take much longer
    wait_for(lambda: ended(client, short.id))
    assert client.experiments.get(short.id).counts == {JobState.COMPLETE: 1}
    kept = client.jobs.result(f"{long.id}-001").result
    assert kept.state is ResultState.PARTIAL
    assert kept.repetitions


@pytest.mark.slow
def test_a_drained_agent_hands_its_job_to_another(ground: Ground) -> None:
    ground.server()
    first = ground.agent("--drain-timeout", "1s", home="first")
    client = ground.client()
    experiment = client.experiments.submit(recipe(LONG)).experiment
    job = f"{experiment.id}-001"
    wait_for(runs(client, job))
    family = first.family()
    assert first.stop() == 0
    assert gone(family)
    detail = client.jobs.get(job)
    assert detail.attempts[0].state == "returned"
    assert detail.queued.state is JobState.WAITING
    ground.agent(home="second")
    wait_for(lambda: client.jobs.get(job).queued.state is JobState.LEASED)
    client.jobs.cancel(job)
    wait_for(lambda: ended(client, experiment.id))


def test_a_server_that_is_killed_and_started_again_loses_nothing(ground: Ground) -> None:
    port = free_port()  # one that the system itself gives out may be lost until the server is back
    server = ground.server(port)
    agent = ground.agent()
    client = ground.client()
    experiment = client.experiments.submit(
        recipe("{runs: 5, repeats: 30, warmup: 1, check: false, isolation: fork}", batch_sizes=2)
    ).experiment
    wait_for(runs(client, f"{experiment.id}-001"))
    server.kill()
    wait_for(lambda: "the server does not answer" in agent.said)
    ground.server(port)
    wait_for(lambda: ended(client, experiment.id))
    assert client.experiments.get(experiment.id).counts == {JobState.COMPLETE: 2}
    for number in (1, 2):
        attempts = client.jobs.get(f"{experiment.id}-00{number}").attempts
        assert [one.state for one in attempts] == ["complete"]


@pytest.mark.slow
def test_two_agents_on_one_host_stay_two_and_measure_one_at_a_time(ground: Ground) -> None:
    ground.server()
    for _ in range(2):
        ground.agent()
    client = ground.client()
    names = [one.name for one in client.agents.page().items]
    assert len(set(names)) == 2
    assert len({one.device_key for one in client.agents.page().items}) == 1
    experiment = client.experiments.submit(recipe(LONG, batch_sizes=2)).experiment
    wait_for(lambda: bool(client.leases.current()))
    wait_for(runs(client, client.leases.current()[0].job_id))
    assert len(client.leases.current()) == 1
    client.experiments.cancel(experiment.id)
    wait_for(lambda: ended(client, experiment.id))


@pytest.mark.slow
def test_a_one_time_token_enrols_one_agent(tmp_path: Path) -> None:
    with grounds(tmp_path) as ground:
        place = Home(tmp_path / "server").create()
        engine = connect_database(place)
        upgrade(engine, place)
        access = Access(engine, SystemClock())
        admin = access.add_token(NewToken(name="admin", role=Role.ADMIN)).secret
        once = access.add_token(NewToken(name="rack", role=Role.AGENT, once=True)).secret
        engine.dispose()
        ground.server()
        token = tmp_path / "token"
        token.write_text(once + "\n")
        without = ground.prony("agent", "enroll", "--server", ground.url)
        assert without.returncode == 2, without.stderr
        done = ground.prony("agent", "enroll", "--server", ground.url, "--token-file", str(token), "--json")
        assert done.returncode == 0, done.stderr
        agent_id = json.loads(done.stdout)["agent"]["id"]
        twice = ground.prony("agent", "enroll", "--server", ground.url, "--token-file", str(token), home="other")
        assert twice.returncode == 2
        assert once not in ground.folder.joinpath("agent/agents/1/agent.json").read_text()
        agent = ground.agent()
        client = ground.client(admin)
        experiment = client.experiments.submit(recipe()).experiment
        wait_for(lambda: ended(client, experiment.id))
        assert [one.id for one in client.agents.page().items if one.state is not AgentState.LOST] == [agent_id]
        checked = ground.prony("agent", "validate", "--server", ground.url, "--json")
        assert {one["name"]: one["ok"] for one in json.loads(checked.stdout)}["token"]
        client.agents.remove(agent_id)
        assert agent.process.wait(PATIENCE_S) == 2  # told to its owner, and not tried for ever


def test_an_owner_sees_the_device_and_the_way_to_the_server(ground: Ground) -> None:
    ground.server()
    info = ground.prony("agent", "info", "--json", "--label", "room=lab2")
    document = json.loads(info.stdout)
    assert document["facts"]["label.room"] == "lab2"
    assert {unit["engine"] for unit in document["compute_units"]} >= {"onnxruntime"}
    shown = ground.prony("agent", "info").stdout
    assert "Available Compute Units:" in shown
    tested = ground.prony("agent", "test", "--server", ground.url, "--json")
    assert tested.returncode == 0
    answer = json.loads(tested.stdout)
    assert answer["healthy"]
    assert abs(answer["offset_s"]) < 60
    checked = ground.prony("agent", "validate", "--server", ground.url)
    assert checked.returncode == 0, checked.stdout
    assert ground.client().leases.current() == ()
    assert ground.client().agents.page().items == ()
    away = ground.prony("agent", "test", "--server", "http://127.0.0.1:1")
    assert away.returncode == 3
    assert "cannot reach the server" in away.stderr
    assert ground.prony("agent", "validate", "--server", "http://127.0.0.1:1").returncode == 1
