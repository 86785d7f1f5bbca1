"""The stand-in says on the wire what a Dumont worker says, to a server that remembers and a Redis that monitors."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dumont.crew import Crew, Hand, crew
from prony.compat.sark.nouns import WorkerResult
from servers.binaries import AbsentError
from servers.canned import Canned, canned, document
from servers.needs import lack
from servers.redis import redis_server

redis = pytest.importorskip("redis")
JOB = {
    "job_id": "campaign-1-job-0",
    "campaign_id": "campaign-1",
    "model_url": "http://models.example/tiny.onnx",
    "compute_unit": "CPU (ONNX)",
    "num_inference_runs": 3,
}
ID = "worker-0123456789ab"


@pytest.fixture
def orchestrator() -> Iterator[Canned]:
    with canned() as found:
        found.at("POST /api/register", document({"worker_id": ID}))
        found.at(f"POST /api/workers/{ID}/heartbeat", document({}))
        found.at(f"PUT /api/workers/{ID}/status", document({}))
        found.at(f"GET /api/jobs/{JOB['job_id']}", document({"job": JOB, "result": None}))
        yield found


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with ExitStack() as block:
        try:
            url = block.enter_context(redis_server())
        except AbsentError as exc:
            lack("redis", str(exc))
        yield url


@pytest.fixture
def workers(tmp_path: Path, orchestrator: Canned, redis_url: str) -> Iterator[Crew]:
    with redis.Redis.from_url(redis_url, socket_timeout=None) as client:
        client.flushall()
    with crew(tmp_path, host=orchestrator.url, redis_url=redis_url) as found:
        yield found


def taken(client: Any, hand: Hand) -> WorkerResult:
    _, text = client.brpop("results", 30)
    hand.wait_said("Published result")
    return WorkerResult.read_json(text)


def test_a_job_goes_its_way_in_the_order_of_the_worker(workers: Crew, orchestrator: Canned, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, socket_timeout=None) as client, client.monitor() as monitor:
        client.lpush("jobs:capability:cpu_onnx", JOB["job_id"])
        hand = workers.start(options=["--capability", "CPU (ONNX)", "--device", "vm"])
        result = taken(client, hand)
        said = [one["command"] for one in _until(monitor, "LPUSH results")]
    assert (result.job_id, result.campaign_id, result.worker_id, result.status) == (
        JOB["job_id"], "campaign-1", ID, "Complete",
    )  # fmt: skip
    asked = [one for one in orchestrator.asked if "heartbeat" not in one]
    status = f"PUT /api/workers/{ID}/status"
    assert asked == ["POST /api/register", f"GET /api/jobs/{JOB['job_id']}", status, status]
    bodies = [json.loads(one.body) for one in orchestrator.requests if one.path.endswith("/status")]
    assert bodies == [{"status": "busy"}, {"status": "active"}]
    at = said.index(f"RPOP jobs:{ID}")
    assert said[at - 1 : at + 2] == ["PING", f"RPOP jobs:{ID}", "RPOP jobs:capability:cpu_onnx"]
    assert said[-2] == "PING"


def _until(monitor: Any, begin: str) -> Iterator[dict[str, str]]:
    for one in monitor.listen():
        yield one
        if one["command"].startswith(begin):
            return


def test_it_registers_with_just_what_dumont_says(workers: Crew, orchestrator: Canned) -> None:
    hand = workers.start(options=["--device", "vm", "--capability", "CPU (ONNX)"])
    hand.wait_said("Starting job loop")
    request = orchestrator.requests[0]
    body = json.loads(request.body)
    assert request.headers["User-Agent"].startswith("python-requests/")
    assert body.keys() == {"device_name", "ip_address", "capabilities", "device_info"}
    assert body["device_info"].keys() == {"DeviceName", "Soc", "Ram", "DeviceOs", "DeviceOsVersion"}
    assert isinstance(body["device_info"]["Ram"], str)
    assert body["ip_address"] == "localhost"


def test_ctrl_c_ends_it_well_and_sigterm_ends_it_with_the_job(workers: Crew, redis_url: str) -> None:
    first, second = workers.start(), workers.start("held")
    first.wait_said("Starting job loop")
    assert first.stop(signal.SIGINT) == 0
    with redis.Redis.from_url(redis_url, socket_timeout=None) as client:
        client.lpush(f"jobs:{ID}", JOB["job_id"])
        second.wait_said("Executing job")
        assert second.stop() == -signal.SIGTERM
        assert client.llen(f"jobs:{ID}") == client.llen("results") == 0


def test_it_drops_a_job_that_it_cannot_look_up(workers: Crew, redis_url: str) -> None:
    hand = workers.start()
    with redis.Redis.from_url(redis_url, socket_timeout=None) as client:
        client.lpush(f"jobs:{ID}", "campaign-9-job-9")
        hand.wait_said("Could not fetch job details for campaign-9-job-9")
        assert client.llen("results") == 0


def test_it_does_not_start_where_registering_is_answered_with_201(workers: Crew, orchestrator: Canned) -> None:
    orchestrator.at("POST /api/register", document({"worker_id": ID}, 201))
    assert workers.start().ended() == 1


def test_without_a_redis_it_ends_as_if_all_were_well(tmp_path: Path, orchestrator: Canned) -> None:
    with crew(tmp_path, host=orchestrator.url, redis_url="redis://127.0.0.1:1/0") as alone:
        hand = alone.start()
        assert hand.ended() == 0
        assert "Redis not connected" in hand.said()
