"""Prony's own agent serves a SARK: a real agent, a real Redis, an orchestrator that answers as SARK does."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from chaos.work import record
from prony.compat.sark.nouns import WorkerResult
from prony.model.loopback import is_loopback
from prony.plugins.models.addresses import is_own, resolve_host
from servers.binaries import AbsentError
from servers.canned import Canned, canned, document
from servers.needs import lack
from servers.redis import redis_server

redis = pytest.importorskip("redis")
ID = "worker-0123456789ab"
QUEUE = "jobs:capability:cpu_onnx"
CHAOS = Path(__file__).parents[1] / "chaos"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with ExitStack() as block:
        try:
            url = block.enter_context(redis_server())
        except AbsentError as exc:
            lack("redis", str(exc))
        yield url


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


@dataclass
class Sark:
    """An orchestrator, its Redis, and the agents that serve it."""

    orchestrator: Canned
    redis: Any
    port: int
    folder: Path
    recording: Path
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def tells(self, job_id: str, **more: Any) -> str:
        """Let the orchestrator know a job."""
        job = {
            "job_id": job_id,
            "campaign_id": "campaign-1",
            "model_url": "zoo:tiny",
            "compute_unit": "CPU (ONNX)",
            "worker_id": None,
            "num_inference_runs": 5,
            "status": "pending",
            "retry_count": 0,
        }
        self.orchestrator.at(f"GET /api/jobs/{job_id}", document({"job": job | more, "result": None}))
        return job_id

    def start(self, *options: str, seconds: float = 0.0, recorded: bool = True) -> subprocess.Popen[bytes]:
        program = str(CHAOS / "recorded_agent.py")
        command = [sys.executable, program, "start", "--sark", f"{self.orchestrator.url}/", "--log-level", "DEBUG"]
        command += ["--redis-host", "127.0.0.1", "--redis-port", str(self.port), *options]
        told = {"FLEET_ENGINE": "onnxruntime", "FLEET_SECONDS": str(seconds)}
        told |= {"FLEET_RECORDING": str(self.recording)} if recorded else {}
        with (self.folder / f"agent-{len(self.agents)}.log").open("wb") as log:
            agent = subprocess.Popen(command, env=os.environ | told, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.agents.append(agent)
        return agent

    def result(self, *, within_s: float = 120.0) -> WorkerResult:
        popped = self.redis.brpop("results", within_s)
        assert popped is not None, self.said()
        return WorkerResult.read_json(popped[1])

    def said(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("agent-*.log")))

    def statuses(self) -> list[str]:
        return [json.loads(one.body)["status"] for one in self.orchestrator.requests if one.path.endswith("/status")]

    def wait(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 120
        while not is_so():
            assert time.monotonic() < deadline, f"waited for {what}; the agent said:\n{self.said()}"
            time.sleep(0.02)


@pytest.fixture
def sark(tmp_path: Path, redis_url: str, recording: Path) -> Iterator[Sark]:
    with (
        canned() as orchestrator,
        redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=None) as client,
    ):
        client.flushall()
        orchestrator.at("POST /api/register", document({"worker_id": ID, "status": "registered"}))
        orchestrator.at(f"POST /api/workers/{ID}/heartbeat", document({}))
        orchestrator.at(f"PUT /api/workers/{ID}/status", document({}))
        made = Sark(orchestrator, client, port_of(redis_url), tmp_path, recording)
        try:
            yield made
        finally:
            for agent in made.agents:
                agent.kill()
                agent.wait()


def test_a_job_of_a_capability_is_measured_and_reported_in_sarks_fields(sark: Sark) -> None:
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0"))
    agent = sark.start("--device-name", "Bench 1", recorded=False)
    result = sark.result(within_s=60)
    assert result.device_name == "Bench 1"
    told = json.loads(sark.orchestrator.requests[0].body)
    assert told["capabilities"] == ["CPU (ONNX)"]
    assert told["device_info"]["UDID"]
    assert (result.status, result.job_id, result.campaign_id) == ("Complete", "campaign-1-job-0", "campaign-1")
    assert (result.worker_id, result.compute_units) == (ID, "CPU (ONNX)")
    assert result.load_ms_std_dev
    assert result.load_ms_min is not None
    assert result.load_ms_max is not None
    assert result.load_ms_min < result.load_ms_max
    assert result.inference_ms_median
    assert result.peak_inference_ram_usage
    assert result.average_inference_cpu_percent
    sark.wait(lambda: sark.statuses()[-1:] == ["active"], "the worker to be active again")
    assert sark.statuses() == ["busy", "cleanup", "active"]
    assert sark.redis.keys("jobs:*") == []
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0


@pytest.fixture
def private_model(recording: Path) -> Iterator[str]:
    """The address of a real model, by plain http at a name whose address is private."""
    name = socket.gethostname()
    try:
        is_private = not is_loopback(name) and all(map(is_own, resolve_host(name, 80)))
    except OSError:
        is_private = False
    if not is_private:
        lack("private-name", f"the name {name} has no private address")
    file = next(recording.parent.joinpath("home").rglob("*.onnx"))
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(file.parent))
    with ThreadingHTTPServer((name, 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://{name}:{server.server_address[1]}/{file.name}"
        server.shutdown()


def test_a_model_of_a_private_network_comes_by_plain_http_where_the_owner_allows_it(
    sark: Sark, private_model: str
) -> None:
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0", model_url=private_model))
    sark.start("--model-private", "plain", recorded=False)
    result = sark.result()
    assert (result.status, result.file_name) == ("Complete", private_model.rpartition("/")[2])
    assert result.inference_ms_median


def test_a_model_by_plain_http_fails_and_its_remark_names_the_option(sark: Sark, private_model: str) -> None:
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0", model_url=private_model))
    sark.start(recorded=False)
    result = sark.result()
    assert result.status == "Failed"
    assert "models need https" in str(result.remark)
    assert "--model-private plain" in str(result.remark)


def test_an_agent_killed_in_the_middle_of_a_job_takes_it_up_again_and_reports_it_once(sark: Sark) -> None:
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0"))
    agent = sark.start(seconds=60)
    sark.wait(lambda: "job started" in sark.said(), "the job to begin")
    agent.kill()
    agent.wait()
    assert sark.redis.lrange(f"{QUEUE}:held:{ID}", 0, -1) == ["campaign-1-job-0"]
    sark.start()
    assert sark.result().status == "Complete"
    assert sark.redis.keys("jobs:*") == []
    assert sark.redis.llen("results") == 0


def test_an_agent_that_is_stopped_puts_its_job_back_for_the_others(sark: Sark) -> None:
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-1"), sark.tells("campaign-1-job-2"))
    agent = sark.start("--drain-timeout", "100ms", seconds=60)
    sark.wait(lambda: "job started" in sark.said(), "the job to begin")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0
    assert sark.redis.lrange(QUEUE, 0, -1) == ["campaign-1-job-2", "campaign-1-job-1"]
    assert sark.redis.keys() == [QUEUE]


def test_a_job_for_this_worker_alone_stays_with_it_when_it_is_stopped(sark: Sark) -> None:
    sark.redis.lpush(f"jobs:{ID}", sark.tells("campaign-1-job-0", worker_id=ID))
    agent = sark.start("--drain-timeout", "100ms", seconds=60)
    sark.wait(lambda: "job started" in sark.said(), "the job to begin")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(120) == 0
    assert sark.redis.lrange(f"jobs:{ID}", 0, -1) == ["campaign-1-job-0"]


def test_a_result_waits_on_the_disk_while_redis_is_away(sark: Sark) -> None:
    job_id = sark.tells("campaign-1-job-0")
    with redis_server() as url:
        sark.port = port_of(url)
        with redis.Redis.from_url(url, socket_timeout=None) as client:
            client.lpush(QUEUE, job_id)
        sark.start(seconds=1)
        sark.wait(lambda: "job started" in sark.said(), "the job to begin")
    sark.wait(lambda: "result not uploaded yet" in sark.said(), "the agent to miss its Redis")
    with redis_server(port=sark.port) as url, redis.Redis.from_url(url, socket_timeout=None) as client:
        popped = client.brpop("results", 60)
        assert popped is not None, sark.said()
        assert WorkerResult.read_json(popped[1]).job_id == job_id


def test_a_worker_that_the_orchestrator_has_forgotten_registers_again(sark: Sark) -> None:
    forgotten = document({"error": "Worker not found"}, 404)
    sark.orchestrator.at(f"POST /api/workers/{ID}/heartbeat", forgotten, document({}))
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0"))
    sark.start()
    assert sark.result().status == "Complete"
    sark.wait(lambda: sark.orchestrator.asked.count("POST /api/register") == 2, "the second registration")


def test_two_agents_on_one_machine_are_two_workers(sark: Sark) -> None:
    sark.start()
    sark.start()
    sark.wait(lambda: sark.orchestrator.asked.count("POST /api/register") == 2, "both to register")
    told = [json.loads(one.body) for one in sark.orchestrator.requests if one.path == "/api/register"]
    assert len({one["device_info"]["UDID"] for one in told}) == 2


def test_an_agent_waits_for_an_orchestrator_that_is_not_there_yet(sark: Sark) -> None:
    sark.orchestrator.at("POST /api/register", document({"error": "starting"}, 503), document({"worker_id": ID}))
    sark.redis.lpush(QUEUE, sark.tells("campaign-1-job-0"))
    sark.start()
    assert sark.result().status == "Complete"
