"""What a worker of a SARK does with each kind of job that it may find, over a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest

from prony.agent.identity import Slot
from prony.agent.logs import AgentLog
from prony.compat.sark.agent import link as sark_link
from prony.compat.sark.agent.link import SarkLink
from prony.compat.sark.agent.orchestrator_client import capabilities_of
from prony.compat.sark.agent.server import SarkServer, read_server
from prony.compat.sark.nouns import WorkerResult
from prony.errors import CapacityError, InputError, TransportError
from prony.instruments.device import detect
from prony.kinds.model.schema import ModelWorkload
from prony.model.agent import Capabilities, Enrolment, Heartbeat
from prony.model.device import EngineReport, EngineUnit
from prony.model.lease import Lease, LeaseRequest
from servers.binaries import AbsentError
from servers.canned import Canned, canned, document
from servers.needs import lack
from servers.redis import redis_server

redis = pytest.importorskip("redis")
T = TypeVar("T")
ID = "worker-0123456789ab"
OWN = f"jobs:{ID}"
GPU = "jobs:capability:gpu_onnx"
JOB = {
    "job_id": "c-job-0",
    "campaign_id": "c",
    "model_url": "https://models.example/tiny.onnx?raw=1",
    "compute_unit": "GPU (ONNX)",
    "worker_id": None,
    "num_inference_runs": 7,
    "status": "pending",
    "retry_count": 1,
}


def report(engine: str, unit: str, word: str | None, state: Any = "ready") -> EngineReport:
    units = (EngineUnit(engine=engine, unit=unit, description="", seed_name=word),)
    return EngineReport(name=engine, python="python", state=state, version="1", units=units)


ENGINES = (report("onnxruntime", "rocm", "GPU (ONNX)"), report("torch", "cpu", None))


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with ExitStack() as block:
        try:
            url = block.enter_context(redis_server())
        except AbsentError as exc:
            lack("redis", str(exc))
        yield url


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url, decode_responses=True, socket_timeout=60) as found:
        found.flushall()
        yield found


@pytest.fixture
def orchestrator() -> Iterator[Canned]:
    with canned() as found:
        found.at("POST /api/register", document({"worker_id": ID}))
        found.at(f"POST /api/workers/{ID}/heartbeat", document({}))
        found.at(f"PUT /api/workers/{ID}/status", document({}))
        yield found


Use = Callable[[Callable[[SarkLink], Awaitable[T]]], T]


@pytest.fixture
def use(orchestrator: Canned, redis_url: str, tmp_path: Path) -> Use[Any]:
    """Return what registers a worker and has it do something."""
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    sark = SarkServer(orchestrator.url, "127.0.0.1", port)

    def used(work: Callable[[SarkLink], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with SarkLink(sark, Slot("1", tmp_path / "slot"), AgentLog(level="error")) as link:
                offered = Capabilities(device=detect(), engines=ENGINES)
                await link.enroll(Enrolment(name="a", device_key="k", incarnation="i", capabilities=offered))
                return await work(link)

        return asyncio.run(run())

    return used


def asked(wait_s: float = 0.001, holding: tuple[str, ...] = ()) -> Callable[[SarkLink], Awaitable[Lease | None]]:
    return lambda link: link.lease(LeaseRequest(agent_id=ID, incarnation="i", wait_s=wait_s, holding=holding))


def held(client: Any) -> list[str]:
    return [*client.lrange(f"{OWN}:held:{ID}", 0, -1), *client.lrange(f"{GPU}:held:{ID}", 0, -1)]


def test_a_job_is_leased_and_held_where_its_worker_finds_it_again(
    use: Use[Any], orchestrator: Canned, client: Any
) -> None:
    client.lpush(GPU, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB}))
    lease = use(asked())
    assert (lease.id, lease.attempt) == ("c-job-0.2", 2)
    assert (lease.job.work(ModelWorkload).engine, lease.job.work(ModelWorkload).unit) == ("onnxruntime", "rocm")
    assert (lease.job.work(ModelWorkload).model, lease.job.measure.runs) == (JOB["model_url"], 7)
    assert held(client) == ["c-job-0"]
    assert client.llen(GPU) == 0
    client.lpush(GPU, "c-job-0")  # whoever keeps the queue has missed it
    assert use(asked(wait_s=0)).job.id == "c-job-0"
    assert client.llen(GPU) == 0


def test_its_own_queue_goes_before_those_of_its_units(use: Use[Any], orchestrator: Canned, client: Any) -> None:
    client.lpush(GPU, "c-job-1")
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB | {"worker_id": ID}}))
    assert use(asked()).job.id == "c-job-0"
    assert client.llen(GPU) == 1


@pytest.mark.parametrize(
    ("wrong", "remark"),
    [
        ({"compute_unit": "CPU (ONNX)"}, "does not offer 'CPU (ONNX)'; it offers GPU (ONNX)"),
        ({"compute_unit": "TPU"}, "does not offer 'TPU'"),
        ({"num_inference_runs": 0}, "cannot be read"),
        ({"num_inference_runs": "abc"}, "cannot be read"),
        ({"model_url": None}, "cannot be read"),
    ],
)
def test_a_job_that_cannot_be_run_here_is_reported_as_failed_and_never_run_otherwise(
    use: Use[Any], orchestrator: Canned, client: Any, wrong: dict[str, Any], remark: str
) -> None:
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB | wrong}))
    assert use(asked()) is None
    result = WorkerResult.read_json(client.rpop("results"))
    assert (result.job_id, result.campaign_id, result.status) == ("c-job-0", "c", "Failed")
    assert remark in (result.remark or "")
    assert held(client) == []


@pytest.mark.parametrize(
    "told",
    [
        document({"error": "Job not found"}, 404),
        document({"job": JOB | {"status": "Complete"}}),
        document({"job": JOB | {"status": "running", "worker_id": "worker-ba9876543210"}}),
    ],
    ids=["unknown", "over", "of another"],
)
def test_a_job_that_nobody_wants_any_more_is_let_go(
    use: Use[Any], orchestrator: Canned, client: Any, told: Any
) -> None:
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", told)
    assert use(asked()) is None
    assert held(client) == []
    assert client.llen("results") == 0


def test_a_job_stays_while_the_orchestrator_cannot_tell_what_it_is(
    use: Use[Any], orchestrator: Canned, client: Any
) -> None:
    client.lpush(GPU, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"error": "starting"}, 503))
    with pytest.raises(TransportError, match="503"):
        use(asked())
    assert held(client) == ["c-job-0"]


def test_a_job_whose_result_waits_here_is_not_begun_again(use: Use[Any], orchestrator: Canned, client: Any) -> None:
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB}))
    assert use(asked(holding=("c-job-0.2",))) is None
    assert held(client) == ["c-job-0"]


def test_a_result_that_the_orchestrator_has_already_is_not_pushed_again(
    use: Use[Any], orchestrator: Canned, client: Any
) -> None:
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB | {"status": "complete"}}))
    answer = use(lambda link: link.finish("c-job-0.2", b"", sha256="", ask_next=False))
    assert not answer.accepted
    assert held(client) == []
    assert client.llen("results") == 0


def test_a_result_that_is_damaged_on_this_disk_is_reported_as_lost(
    use: Use[Any], orchestrator: Canned, client: Any, tmp_path: Path
) -> None:
    client.lpush(OWN, "c-job-0")
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB}))
    work = tmp_path / "slot" / "spool" / "c-job-0.2"
    work.mkdir(parents=True)
    (work / "result.tar").write_bytes(b"rotten" * 100)
    use(lambda link: link.finish("c-job-0.2", b"", sha256="", ask_next=False))
    result = WorkerResult.read_json(client.rpop("results"))
    assert result.status == "Failed"
    assert "the result is lost" in (result.remark or "")
    assert held(client) == []


def test_a_job_that_was_cancelled_at_the_orchestrator_is_told_with_the_heartbeat(
    use: Use[Any], orchestrator: Canned
) -> None:
    orchestrator.at("GET /api/jobs/c-job-0", document({"job": JOB | {"status": "cancelled"}}))
    orchestrator.at("GET /api/jobs/c-job-1", document({"job": JOB | {"status": "running"}}))
    beat = Heartbeat(incarnation="i", leases=("c-job-0.1", "c-job-1.1", "c-job-2.1"))
    answer = use(lambda link: link.heartbeat(ID, beat))
    assert answer.cancel == ("c-job-0.1", "c-job-2.1")


def test_heartbeats_are_as_far_apart_as_sark_wants_them(use: Use[Any], orchestrator: Canned) -> None:
    async def twice(link: SarkLink) -> None:
        await link.heartbeat(ID, Heartbeat(incarnation="i"))
        await link.heartbeat(ID, Heartbeat(incarnation="i"))

    use(twice)
    assert orchestrator.asked.count(f"POST /api/workers/{ID}/heartbeat") == 1


def test_who_waits_for_a_job_gives_a_sign_of_life_in_between(use: Use[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sark_link, "_BEAT_S", 0.01)  # the agent beats when a wait has brought nothing
    assert use(asked(wait_s=30)) is None


def test_only_what_works_here_is_offered() -> None:
    engines = (report("onnxruntime", "cpu", "CPU (ONNX)", "broken"), *ENGINES)
    assert capabilities_of(engines) == {"GPU (ONNX)": ("onnxruntime", "rocm")}


def test_a_device_without_anything_that_sark_has_a_word_for_is_not_registered(
    orchestrator: Canned, tmp_path: Path
) -> None:
    async def enrolled() -> None:
        async with SarkLink(SarkServer(orchestrator.url, "127.0.0.1"), Slot("1", tmp_path), AgentLog()) as link:
            offered = Capabilities(device=detect(), engines=ENGINES[1:])
            await link.enroll(Enrolment(name="a", device_key="k", incarnation="i", capabilities=offered))

    with pytest.raises(CapacityError, match="no engine that SARK knows"):
        asyncio.run(enrolled())
    assert orchestrator.asked == []


def test_redis_is_looked_for_where_the_orchestrator_is() -> None:
    assert read_server("http://10.0.0.7:5000/api/", None, 6379).redis_host == "10.0.0.7"
    assert read_server("http://10.0.0.7:5000", "10.0.0.8", 6380) == SarkServer("http://10.0.0.7:5000", "10.0.0.8", 6380)
    with pytest.raises(InputError, match="not a port"):
        read_server("http://localhost:5000", None, 0)
