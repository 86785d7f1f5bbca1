"""`prony agent` with --sark: what Dumont's commands did, and how each of them ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from prony.agent import capabilities, checks
from prony.cli.main import main
from prony.model.device import EngineReport, EngineUnit
from prony.store.home import Home
from servers.binaries import AbsentError
from servers.canned import Canned, canned, document
from servers.needs import lack
from servers.redis import redis_server

pytest.importorskip("redis")
ID = "worker-0123456789ab"
NOWHERE = ("--redis-host", "127.0.0.1", "--redis-port", "1")


@pytest.fixture(scope="module")
def redis_port() -> Iterator[str]:
    with ExitStack() as block:
        try:
            url = block.enter_context(redis_server())
        except AbsentError as exc:
            lack("redis", str(exc))
        yield url.rpartition(":")[2].partition("/")[0]


@pytest.fixture
def orchestrator() -> Iterator[Canned]:
    with canned() as found:
        found.at("GET /api/health", document({"status": "healthy"}))
        found.at("POST /api/register", document({"worker_id": ID}))
        yield found


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting the real ones takes seconds."""
    unit = EngineUnit(engine="onnxruntime", unit="cpu", description="", seed_name="CPU (ONNX)")
    report = EngineReport(name="onnxruntime", python=sys.executable, state="ready", version="1", units=(unit,))

    def inspect(_home: Home) -> list[EngineReport]:
        return [report]

    monkeypatch.setattr(capabilities, "inspect_engines", inspect)
    monkeypatch.setattr(checks, "inspect_engines", inspect)


def prony(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["agent", *words]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_device_is_described_in_sarks_words_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    text = prony(capsys, "info", "--sark", "--device-name", "MyDevice")
    assert "Available Compute Units:\n- CPU (ONNX)" in text
    told = json.loads(prony(capsys, "info", "--sark", "--json", "--device-name", "MyDevice"))
    assert told["capabilities"] == ["CPU (ONNX)"]
    assert told["device"]["DeviceName"] == "MyDevice"
    assert told["device"]["DeviceOs"] == sys.platform.capitalize()


def test_a_sark_that_is_there_is_reached(
    orchestrator: Canned, redis_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--sark", f"{orchestrator.url}/api/", "--redis-port", redis_port)
    assert "reachable (HTTP 200)" in prony(capsys, "test", *place)
    told = json.loads(prony(capsys, "test", *place, "--json"))
    assert told["healthy"] is True
    assert told["redis_error"] is None
    assert "ok    redis" in prony(capsys, "validate", *place)


def test_an_orchestrator_without_its_redis_is_told_and_is_no_success(
    orchestrator: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--sark", orchestrator.url, *NOWHERE)
    assert "cannot use the Redis at 127.0.0.1:1" in prony(capsys, "test", *place, code=3)
    assert "FAIL  redis" in prony(capsys, "validate", *place, code=1)


def test_an_orchestrator_that_is_ill_is_told(
    orchestrator: Canned, redis_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.at("GET /api/health", document({"error": "no"}, 500))
    place = ("--sark", orchestrator.url, "--redis-port", redis_port)
    assert "HTTP 500" in prony(capsys, "test", *place, code=1)


def test_a_device_is_enrolled_with_a_sark_and_its_worker_told(
    orchestrator: Canned, redis_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--sark", orchestrator.url, "--redis-port", redis_port)
    assert f"enrolled as {ID}" in prony(capsys, "enroll", *place)
    told = json.loads(orchestrator.requests[-1].body)
    assert told.keys() == {"device_name", "ip_address", "capabilities", "device_info"}
    assert told["ip_address"] == "127.0.0.1"


def test_an_agent_that_serves_a_sark_is_not_taken_for_one_of_a_prony_server(
    orchestrator: Canned, redis_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    prony(capsys, "enroll", "--sark", orchestrator.url, "--redis-port", redis_port)
    for action in ("enroll", "test"):
        assert main(["agent", action]) == 2
        assert f"--sark {orchestrator.url}" in capsys.readouterr().err
    assert "serves a SARK" in prony(capsys, "validate", code=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sark", "nonsense"), "is not the address"),
        (("--sark", "http://127.0.0.1:1", "--redis-port", "70000"), "not a port"),
        (("--sark", "http://127.0.0.1:1", "--server", "http://127.0.0.1:2"), "--sark cannot be used with --server"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "test", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_orchestrator_that_refuses_a_worker_ends_its_enrolment(
    orchestrator: Canned, redis_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.at("POST /api/register", document({"error": "Missing field: ip_address"}, 400))
    assert main(["agent", "enroll", "--sark", orchestrator.url, "--redis-port", redis_port]) == 2
    assert "Missing field: ip_address" in capsys.readouterr().err
