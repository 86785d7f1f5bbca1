"""Jobs of workers that know no leases, over a real Redis and over the server's own lists: none lost, none twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from lanes import only_slowly
from prony.compat.sark.face.bridge import Bridge
from prony.compat.sark.face.settings import WHO
from servers.redis import redis_server
from servers.sark import DUMONT, Sark, complete, connect_redis, served_sark
from servers.shared import Shared

Serving = Callable[..., AbstractContextManager[Sark]]


@pytest.fixture(scope="module")
def real_redis() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture(scope="module", params=["redis", *only_slowly("own lists")])
def url(request: pytest.FixtureRequest) -> str:
    """Where the lists are; empty: in the server itself."""
    return str(request.getfixturevalue("real_redis")) if request.param == "redis" else ""


@pytest.fixture
def serving(url: str, tmp_path: Path) -> Serving:
    """Return how to serve one home, again and again: what a server left, the next one finds."""
    apart = url.removesuffix("/0") + "/1" if url else ""
    return lambda **settings: served_sark(tmp_path, redis_url=apart, **settings)


@pytest.fixture(scope="module")
def running(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sark]:
    with served_sark(tmp_path_factory.mktemp("sark"), redis_url=url) as found:
        yield found


@pytest.fixture
def sark(running: Sark) -> Sark:
    running.post("reset")
    return running


def attempts(sark: Sark, job_id: str) -> list[tuple[str, str]]:
    asked = asyncio.run_coroutine_threadsafe(sark.fleet.jobs.get(job_id), sark.loop)
    return [(one.agent_id, one.state) for one in asked.result(120).attempts]


def retried(sark: Sark, job_id: str) -> Callable[[], bool]:
    return lambda: bool(sark.get(f"jobs/{job_id}")["job"]["status"] == "pending")


class TestWhoHasWhat:
    def test_a_job_that_was_taken_is_leased_to_the_worker_that_took_it(self, sark: Sark) -> None:
        one, other = sark.register("one"), sark.register("other")
        sark.campaign({}, {})
        first, second = sark.begin(one), sark.begin(other)
        assert attempts(sark, first) == [(one, "leased")]
        assert attempts(sark, second) == [(other, "leased")]
        assert sark.get(f"workers/{one}")["status"] == "busy"

    def test_a_job_for_one_worker_waits_in_its_own_list(self, sark: Sark) -> None:
        one, other = sark.register("one"), sark.register("other")
        campaign_id = sark.campaign({"worker_id": other})
        assert sark.pop(one) is None
        assert sark.begin(other) == f"{campaign_id}-job-0"

    def test_jobs_are_taken_in_the_order_in_which_they_came(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign({}, {}, {})
        assert [sark.pop(worker_id) for _ in range(4)] == [f"{campaign_id}-job-{place}" for place in range(3)] + [None]

    def test_two_processes_that_share_an_id_may_each_run_a_job(self, sark: Sark) -> None:
        worker_id = sark.register()
        assert sark.register() == worker_id
        campaign_id = sark.campaign({}, {})
        first, second = sark.begin(worker_id), sark.begin(worker_id)
        assert {attempts(sark, one)[0] for one in (first, second)} == {(worker_id, "leased")}
        sark.report(second, worker_id)
        sark.report(first, worker_id)
        assert sark.ended(campaign_id)["completed_jobs"] == 2

    def test_somebody_who_only_looks_at_a_job_does_not_get_it(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        sark.get(f"jobs/{campaign_id}-job-0")
        sark.put(f"workers/{worker_id}/status", {"status": "busy"})
        assert attempts(sark, f"{campaign_id}-job-0") == []


class TestLost:
    def test_a_worker_that_is_silent_after_it_took_a_job_loses_it(self, serving: Serving) -> None:
        with serving(ttl_s=5.0) as sark:
            sark.post("reset")
            silent, other = sark.register("silent"), sark.register("other")
            campaign_id = sark.campaign()
            job_id = sark.begin(silent)
            sark.until(retried(sark, job_id))
            assert sark.serve_one(other) == job_id
            assert sark.ended(campaign_id)["completed_jobs"] == 1
            assert attempts(sark, job_id) == [(silent, "lost"), (other, "complete")]

    def test_a_worker_that_registers_anew_has_lost_what_it_ran(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.begin(worker_id)
        sark.register()
        assert sark.serve_one(worker_id) == job_id
        sark.ended(campaign_id)
        assert attempts(sark, job_id) == [(worker_id, "lost"), (worker_id, "complete")]

    def test_a_job_that_nobody_is_busy_with_is_put_into_its_list_again(self, serving: Serving) -> None:
        with serving(claim_s=0.5) as sark:
            sark.post("reset")
            campaign_id = sark.campaign()
            assert sark.until(sark.steal) == f"{campaign_id}-job-0"
            worker_id = sark.register()
            sark.serve_one(worker_id)
            assert sark.ended(campaign_id)["completed_jobs"] == 1

    def test_a_worker_that_is_free_again_without_a_report_has_lost_the_job(self, serving: Serving) -> None:
        with serving(report_s=1.0) as sark:
            sark.post("reset")
            worker_id = sark.register()
            campaign_id = sark.campaign()
            job_id = sark.begin(worker_id)
            sark.put(f"workers/{worker_id}/status", {"status": "active"})
            sark.until(retried(sark, job_id))
            sark.serve_one(worker_id)
            assert sark.ended(campaign_id)["completed_jobs"] == 1

    @pytest.mark.slow
    def test_a_hung_worker_loses_its_job_though_its_heart_beats(self, serving: Serving) -> None:
        with serving() as sark:
            sark.post("reset")
            hung, other = sark.register("hung"), sark.register("other")
            campaign_id = sark.campaign({"timeout_seconds": 2})
            job_id = sark.begin(hung)

            def is_back() -> bool:
                sark.post(f"workers/{hung}/heartbeat", {"timestamp": 1.0})
                return retried(sark, job_id)()

            sark.until(is_back)
            sark.serve_one(other)
            assert sark.ended(campaign_id)["completed_jobs"] == 1
            assert sark.get("monitoring/stats")["timeout_handler"]["timed_out_jobs"] >= 1

    def test_a_campaign_ends_though_no_worker_could_ever_run_it(self, sark: Sark) -> None:
        campaign_id = sark.campaign({"compute_unit": "GPU (CoreML)", "timeout_seconds": 0.2})
        ended = sark.ended(campaign_id)
        assert ended["failed_jobs"] == 1
        assert "jobs:capability:gpu_coreml" in ended["jobs"][0]["reason"]

    def test_a_cancelled_job_ends_though_its_worker_cannot_be_told(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign({}, {})
        job_id = sark.begin(worker_id)
        cancelling = sark.fleet.experiments.cancel(campaign_id, who=WHO)
        asyncio.run_coroutine_threadsafe(cancelling, sark.loop).result(120)
        sark.post(f"workers/{worker_id}/heartbeat", {"timestamp": 1.0})
        ended = sark.ended(campaign_id)
        assert [job["status"] for job in ended["jobs"]] == ["cancelled", "cancelled"]
        sark.until(lambda: sark.lists.llen("jobs:capability:cpu_onnx") == 0)
        sark.report(job_id, worker_id)
        assert "Cancelled" in sark.http.get(f"/api/campaigns/{campaign_id}/results").text


class TestReports:
    def test_a_report_that_comes_twice_counts_once(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign({}, {})
        job_id = sark.serve_one(worker_id)
        for _ in range(2):
            sark.lists.lpush("results", json.dumps(complete(job_id, worker_id)))
        sark.serve_one(worker_id)
        ended = sark.ended(campaign_id)
        assert (ended["completed_jobs"], ended["total_jobs"]) == (2, 2)
        sark.until(lambda: _dropped(sark).get("duplicate") == 2)
        assert len(sark.get("results/files")["files"]) == 1

    @pytest.mark.parametrize(
        "report",
        [
            b"",
            b"{",
            b"[]",
            b'{"job_id": 5}',
            b'{"status": "Complete"}',
            b"\xff",
            b"null",
            b'{"job_id": "campaign-1-job-9"}',
        ],
    )
    def test_a_report_of_nothing_that_is_known_is_dropped_and_counted(self, sark: Sark, report: bytes) -> None:
        sark.lists.lpush("results", report)
        sark.until(lambda: sum(_dropped(sark).values()) == 1)
        sark.until(lambda: sark.lists.llen("results") == 0)
        assert sark.get("results/files")["files"] == []

    @pytest.mark.parametrize("changes", [{"status": "Odd"}, {"InferenceMsMedian": "fast"}, {"LoadMsMedian": -1}])
    def test_a_report_that_cannot_be_read_is_a_failure_that_is_tried_again(
        self, sark: Sark, changes: dict[str, Any]
    ) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.serve_one(worker_id, **changes)
        sark.until(retried(sark, job_id))
        assert "cannot be read" in sark.get(f"jobs/{job_id}")["job"]["reason"]
        sark.serve_one(worker_id)
        assert sark.ended(campaign_id)["completed_jobs"] == 1

    def test_a_failed_download_is_tried_again(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.serve_one(worker_id, status="Failed", remark="Failed to download model: connection reset")
        sark.until(retried(sark, job_id))
        sark.serve_one(worker_id)
        ended = sark.ended(campaign_id)
        assert (ended["completed_jobs"], ended["jobs"][0]["retry_count"]) == (1, 1)

    @pytest.mark.slow
    def test_a_late_report_counts_and_the_next_is_kept_beside_it(self, serving: Serving) -> None:
        with serving(ttl_s=5.0) as sark:
            sark.post("reset")
            late, other = sark.register("late"), sark.register("other")
            campaign_id = sark.campaign()
            job_id = sark.begin(late)
            sark.until(retried(sark, job_id))
            assert sark.begin(other) == job_id
            sark.report(job_id, late, InferenceMsMedian=7.0)
            ended = sark.ended(campaign_id)
            assert ended["completed_jobs"] == 1
            sark.report(job_id, other)
            sark.until(lambda: attempts(sark, job_id)[-1][1] == "complete")
            assert sark.get(f"campaigns/{campaign_id}")["completed_jobs"] == 1
            assert sark.get(f"jobs/{job_id}")["result"]["InferenceMsMedian"] == 7.0

    def test_a_report_of_a_worker_that_nobody_knows_any_more_counts(self, sark: Sark) -> None:
        campaign_id = sark.campaign()
        job_id = f"{campaign_id}-job-0"
        sark.until(sark.steal)
        sark.lists.lpush("results", json.dumps(complete(job_id, "worker-000000000000")))
        assert sark.ended(campaign_id)["completed_jobs"] == 1


class TestRestarts:
    def test_a_server_ends_although_its_rounds_swallow_a_cancellation(
        self, serving: Serving, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def run(_: Bridge) -> None:
            with suppress(asyncio.CancelledError):  # as a client of Redis may, while it gives up a connection
                await asyncio.sleep(3600)
            await asyncio.sleep(3600)

        monkeypatch.setattr(Bridge, "run", run)
        with serving() as sark:
            assert sark.http.get("/api/health").status_code == 200

    def test_a_server_that_comes_back_goes_on_where_it_was(self, serving: Serving) -> None:
        with serving() as sark:
            sark.post("reset")
            worker_id = sark.register()
            campaign_id = sark.campaign({}, {}, {})
            sark.serve_one(worker_id)
            running = sark.begin(worker_id)
        with serving() as sark:
            sark.report(running, worker_id)
            sark.serve_one(worker_id)
            ended = sark.ended(campaign_id)
            assert (ended["completed_jobs"], ended["failed_jobs"]) == (3, 0)
            assert sark.get(f"workers/{worker_id}")["device_name"] == DUMONT["device_name"]

    def test_lists_that_were_lost_are_filled_again(self, serving: Serving) -> None:
        with serving(claim_s=2.0) as sark:
            sark.post("reset")
            worker_id = sark.register()
            campaign_id = sark.campaign({}, {})
            sark.until(lambda: sark.lists.llen("jobs:capability:cpu_onnx") == 2)
            for _ in range(2):
                sark.steal()
            for _ in range(2):
                sark.serve_one(worker_id)
            assert sark.ended(campaign_id)["completed_jobs"] == 2

    def test_what_the_lists_hold_of_others_stays(self, sark: Sark) -> None:
        sark.lists.lpush("jobs:capability:cpu_onnx", "somebody-else-s")
        campaign_id = sark.campaign({"compute_unit": "GPU (ONNX)", "timeout_seconds": 0.2})
        sark.ended(campaign_id)
        assert sark.lists.lrange("jobs:capability:cpu_onnx", 0, -1) == [b"somebody-else-s"]


def test_reports_that_came_while_no_server_ran_are_recorded(real_redis: str, tmp_path: Path) -> None:
    real_redis = real_redis.removesuffix("/0") + "/2"
    with served_sark(tmp_path, redis_url=real_redis) as sark:
        sark.post("reset")
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.begin(worker_id)
    with connect_redis(real_redis) as lists:
        lists.lpush("results", json.dumps(complete(job_id, worker_id)))
    with served_sark(tmp_path, redis_url=real_redis) as sark:
        assert sark.ended(campaign_id)["completed_jobs"] == 1


def test_without_its_redis_a_campaign_is_kept_and_handed_out_when_it_is_back(tmp_path: Path) -> None:
    with redis_server() as url, served_sark(tmp_path, redis_url=url) as sark:
        worker_id = sark.register()
        sark.lists.shutdown(nosave=True)
        campaign_id = sark.campaign()
        assert sark.get("health")["redis"]["connected"] is False
        assert sark.get("health")["status"] == "healthy"
        port = url.rpartition(":")[2].partition("/")[0]
        with redis_server(port=int(port)):
            sark.serve_one(worker_id)
            assert sark.ended(campaign_id)["completed_jobs"] == 1


@pytest.mark.slow
def test_a_campaign_is_served_from_postgresql_as_well(postgres: Shared, tmp_path: Path) -> None:
    name = postgres.create_migrated()
    try:
        with served_sark(tmp_path, database=postgres.url_of(name), ttl_s=5.0) as sark:
            silent, worker_id = sark.register("silent"), sark.register()
            campaign_id = sark.campaign({}, {"worker_id": worker_id})
            sark.begin(silent)
            sark.serve_one(worker_id)
            sark.until(lambda: sark.get(f"campaigns/{campaign_id}")["job_breakdown"]["pending"] == 1)
            sark.serve_one(worker_id)
            assert sark.ended(campaign_id)["completed_jobs"] == 2
            assert sark.get("campaigns")["count"] == sark.get("results/files")["count"] == 1
            assert sark.post("reset").status_code == 200
    finally:
        postgres.drop(name)


def _dropped(sark: Sark) -> dict[str, int]:
    found: dict[str, int] = sark.get("monitoring/stats")["results"]["dropped"]
    return found
