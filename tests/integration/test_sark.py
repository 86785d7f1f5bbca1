"""Dumont workers serve a Prony server: whatever befalls them, nothing is lost, nothing counts twice, campaigns end.

Everything is real but the workers, which stand in for Dumont's: processes that say and do what it does, over a real
Redis. Most report the figures of a recorded run, because it is not the figures that are in question.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from chaos.work import record
from dumont.faults import NO_DOWNLOAD
from dumont.house import WITHIN_S, House, house
from lanes import only_slowly
from prony.compat.sark.nouns import CSV_COLUMNS
from servers.binaries import AbsentError
from servers.needs import lack
from servers.redis import redis_server
from servers.waiting import wait_for

redis = pytest.importorskip("redis")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with ExitStack() as block:
        try:
            made = block.enter_context(house(tmp_path_factory.mktemp("house")))
        except AbsentError as exc:
            lack("redis", str(exc))
        yield made


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("own"), has_redis=False) as made:
        yield made


@pytest.fixture
def sark(shared: House) -> Iterator[House]:
    """A server with a Redis that nobody works for yet."""
    yield shared
    shared.dismiss()


@pytest.fixture(params=["shared", pytest.param("own", marks=pytest.mark.slow)], ids=["redis", "own lists"])
def either(request: pytest.FixtureRequest) -> Iterator[House]:
    """The same with a Redis, and with lists of its own."""
    made: House = request.getfixturevalue(request.param)
    yield made
    made.dismiss()


@pytest.fixture(params=[True, False], ids=["redis", "own lists"])
def private(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """The same, to be killed and started again."""
    with ExitStack() as block:
        try:
            made = block.enter_context(house(tmp_path, has_redis=request.param))
        except AbsentError as exc:
            lack("redis", str(exc))
        yield made


def told(view: dict[str, Any]) -> tuple[str, int, int, int]:
    """Return how a campaign ended: its word, and how many jobs it has, completed and failed."""
    return view["status"], view["total_jobs"], view["completed_jobs"], view["failed_jobs"]


def check_all_once(sark: House, campaign_id: str, count: int) -> dict[str, Any]:
    """Every job ended once, complete, and has one row."""
    view = sark.ended(campaign_id)
    assert told(view) == ("completed", count, count, 0)
    assert view["job_breakdown"] == {"pending": 0, "running": 0, "complete": count, "failed": 0}
    rows = sark.rows(campaign_id)
    assert sorted(row["JobId"] for row in rows) == sorted(f"{campaign_id}-job-{number}" for number in range(count))
    assert {row["Status"] for row in rows} == {"Complete"}
    counts = sark.prony(f"experiments/{campaign_id}")["counts"]
    assert {state: number for state, number in counts.items() if number} == {"complete": count}
    return view


def is_all(sark: House, campaign_id: str, state: str) -> bool:
    view = sark.view(campaign_id)
    return bool(view["job_breakdown"][state] == view["total_jobs"])


def lasted_s(attempts: Sequence[dict[str, Any]]) -> float:
    """Return how long it took from the first lease to the end of the last attempt."""
    first, last = (datetime.fromisoformat(at) for at in (attempts[0]["leased_at"], attempts[-1]["ended_at"]))
    return (last - first).total_seconds()


# Nothing goes wrong


def test_a_campaign_goes_from_its_queue_to_its_csv(either: House) -> None:
    worker = either.worker()
    campaign_id = either.campaign(3)
    check_all_once(either, campaign_id, 3)
    rows = either.rows(campaign_id)
    assert tuple(rows[0]) == CSV_COLUMNS
    assert (rows[0]["UploadId"], rows[0]["InferenceMsMedian"]) == (campaign_id, "0.021")
    job = either.ask("GET", f"/api/jobs/{campaign_id}-job-0")
    assert (job["job"]["status"], job["result"]["status"]) == ("complete", "Complete")
    assert job["result"]["worker_id"] == worker.worker_id()


def test_a_job_for_one_worker_is_run_by_no_other(sark: House) -> None:
    others, chosen = [sark.worker(), sark.worker()], sark.worker()
    campaign_id = sark.campaign(3, worker_id=chosen.worker_id())
    check_all_once(sark, campaign_id, 3)
    results = [sark.ask("GET", f"/api/jobs/{campaign_id}-job-{number}")["result"] for number in range(3)]
    assert {result["worker_id"] for result in results} == {chosen.worker_id()}
    assert not any("Got job" in other.said() for other in others)


def test_what_a_worker_cannot_know_keeps_its_numbers_from_being_valid(sark: House) -> None:
    sark.worker()
    campaign_id = sark.campaign()
    check_all_once(sark, campaign_id, 1)
    verdict = sark.prony(f"jobs/{campaign_id}-job-0/result")["summary"]["verdict"]
    assert verdict["grade"] == "suspect"
    assert verdict["reasons"]


def test_a_model_that_fails_is_a_result_and_is_not_tried_again(sark: House) -> None:
    worker = sark.worker("fail")
    campaign_id = sark.campaign()
    assert told(sark.ended(campaign_id)) == ("completed", 1, 0, 1)
    assert [row["Status"] for row in sark.rows(campaign_id)] == ["Failed"]
    assert worker.said().count("Got job") == 1


@pytest.mark.slow
def test_a_worker_that_fails_again_in_the_same_words_is_believed_each_time(either: House) -> None:
    before = either.dropped().get("duplicate", 0)
    worker = either.worker("no-download")
    campaign_id = either.campaign()
    assert told(either.ended(campaign_id)) == ("completed", 1, 0, 1)
    job = either.prony(f"jobs/{campaign_id}-job-0")
    tries = [(one["state"], one["reason"]) for one in job["attempts"]]
    assert tries == [("failed", NO_DOWNLOAD)] * 3  # none of them was given up because no report came
    assert lasted_s(job["attempts"]) < 20  # three tries, and pauses of 2 and 4 s between them
    assert either.ask("GET", f"/api/jobs/{campaign_id}-job-0")["job"]["reason"] == NO_DOWNLOAD
    assert either.dropped().get("duplicate", 0) == before
    assert worker.said().count("Got job") == 3


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run of a real model; the model lies in the home beside it."""
    return record(tmp_path_factory.mktemp("recording"))


@pytest.fixture(scope="module")
def models(recording: Path) -> Iterator[str]:
    """The address of that model."""
    place = next(recording.parent.joinpath("home").rglob("*.onnx"))
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(place.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{place.name}"
        server.shutdown()


def test_a_worker_that_really_runs_a_model_reports_what_it_measured(sark: House, models: str) -> None:
    pytest.importorskip("onnxruntime")
    sark.worker(mode="real")
    campaign_id = sark.campaign(model=models)
    check_all_once(sark, campaign_id, 1)
    row = sark.rows(campaign_id)[0]
    assert float(row["InferenceMsMedian"]) > 0
    assert float(row["PeakLoadRamUsage"]) > 1
    assert row["FileName"] == models.rpartition("/")[2]


# Workers that die, hang and come back


@pytest.mark.parametrize("death", [*only_slowly("die-after-pop", "die-after-fetch"), "die-before-result"])
def test_the_job_of_a_worker_that_is_killed_is_run_by_another(sark: House, death: str) -> None:
    first = sark.worker(f"{death}:1")
    campaign_id = sark.campaign(2)
    assert first.ended() == -9
    sark.worker()
    check_all_once(sark, campaign_id, 2)


@pytest.mark.slow
def test_a_job_popped_from_the_servers_own_lists_is_lent_and_comes_back(own: House) -> None:
    first = own.worker("die-after-pop:1")
    campaign_id = own.campaign(2)
    assert first.ended() == -9
    own.worker()
    check_all_once(own, campaign_id, 2)
    own.dismiss()


def test_a_worker_killed_right_after_its_result_has_delivered_it(sark: House) -> None:
    first = sark.worker("die-after-result")
    campaign_id = sark.campaign()
    assert first.ended() == -9
    sark.worker()
    check_all_once(sark, campaign_id, 1)


@pytest.mark.slow
def test_a_worker_that_lives_and_hangs_loses_the_job_when_its_time_is_over(sark: House) -> None:
    hung = sark.worker("hang")
    campaign_id = sark.campaign(timeout_seconds=8)
    hung.wait_said("Executing job")
    sark.worker()
    check_all_once(sark, campaign_id, 1)


@pytest.mark.slow
def test_a_worker_that_is_free_again_and_brought_no_result_loses_the_job(either: House) -> None:
    worker = either.worker("lost:1")
    campaign_id = either.campaign()
    check_all_once(either, campaign_id, 1)
    assert worker.said().count("Got job") == 2


@pytest.mark.slow
def test_a_worker_that_registers_anew_gives_back_what_its_earlier_life_held(sark: House) -> None:
    device = sark.device()
    first = sark.worker("held", device=device)
    campaign_id = sark.campaign(2)
    first.wait_said("Executing job")
    first.kill()
    second = sark.worker(device=device)
    assert second.worker_id() == first.worker_id()
    check_all_once(sark, campaign_id, 2)


def test_two_workers_of_one_name_run_every_job_once(either: House) -> None:
    device = either.device()
    first, second = either.worker("held:1", device=device), either.worker("held:1", device=device)
    assert first.worker_id() == second.worker_id()
    campaign_id = either.campaign(6)
    first.wait_said("Executing job")
    second.wait_said("Executing job")
    first.open_gate()
    second.open_gate()
    check_all_once(either, campaign_id, 6)
    assert (first.said() + second.said()).count("Published result") == 6


@pytest.mark.slow
def test_a_worker_that_is_slow_but_alive_keeps_its_job(sark: House) -> None:
    slow = sark.worker("held")
    campaign_id = sark.campaign()
    slow.wait_said("Executing job")
    other = sark.worker()

    def is_old() -> bool:
        """Has it been heard of for longer than a silent worker would keep its job?"""
        job = sark.ask("GET", f"/api/jobs/{campaign_id}-job-0")["job"]
        worker = sark.ask("GET", f"/api/workers/{slow.worker_id()}")
        return bool(worker["last_seen"] - job.get("started_at", worker["last_seen"]) > 8)

    sark.wait(is_old, "the slow worker to be slow", campaign_id)
    slow.open_gate()
    check_all_once(sark, campaign_id, 1)
    assert f"{campaign_id}-job-0" not in other.said()


# Results that come twice, late, for nobody, or torn


def test_a_result_that_comes_twice_counts_once(sark: House) -> None:
    before = sark.dropped().get("duplicate", 0)
    sark.worker("twice")
    campaign_id = sark.campaign(3)
    check_all_once(sark, campaign_id, 3)
    sark.wait(lambda: sark.dropped().get("duplicate", 0) == before + 3, "the second results to be dropped")
    check_all_once(sark, campaign_id, 3)


def test_a_result_for_a_job_that_nobody_knows_counts_for_nothing(sark: House) -> None:
    before = sark.dropped().get("unknown_job", 0)
    sark.worker("unknown:1")
    check_all_once(sark, sark.campaign(2), 2)
    assert sark.dropped()["unknown_job"] == before + 1


@pytest.mark.slow
def test_results_that_cannot_be_read_do_no_harm_and_their_job_is_run_again(sark: House) -> None:
    before = sark.dropped().get("malformed", 0)
    sark.worker("malformed:1")
    campaign_id = sark.campaign(2)
    check_all_once(sark, campaign_id, 2)
    assert sark.dropped()["malformed"] == before + 4


@pytest.mark.slow
def test_a_late_result_of_a_job_that_another_has_done_counts_for_nothing(sark: House) -> None:
    late = sark.worker("late:1")
    campaign_id = sark.campaign()
    late.wait_said("Executing job")
    sark.worker()
    check_all_once(sark, campaign_id, 1)
    late.open_gate()
    late.wait_said("Published result")
    sark.wait(lambda: sark.ask("GET", "/api/queue/status")["results_queue_size"] == 0, "the late result to be seen")
    check_all_once(sark, campaign_id, 1)


@pytest.mark.slow
def test_a_late_result_of_a_job_that_still_waits_is_taken(sark: House) -> None:
    late = sark.worker("late:1")
    campaign_id = sark.campaign()
    for state in ("running", "pending"):  # lent, and waiting again because its worker is silent
        sark.wait(functools.partial(is_all, sark, campaign_id, state), f"the job to be {state}", campaign_id)
    late.open_gate()
    check_all_once(sark, campaign_id, 1)


# What is behind it dies


class Restartable:
    """A Redis that keeps nothing when it ends, always on one port."""

    def __init__(self) -> None:
        self._block = ExitStack()
        self.url = self._block.enter_context(redis_server())

    def stop(self) -> None:
        self._block.close()

    def start(self) -> None:
        self._block.enter_context(redis_server(port=int(self.url.rpartition(":")[2].partition("/")[0])))


@pytest.fixture
def kept() -> Iterator[Restartable]:
    try:
        made = Restartable()
    except AbsentError as exc:
        lack("redis", str(exc))
    yield made
    made.stop()


@pytest.mark.slow
def test_jobs_that_redis_lost_are_put_there_again(tmp_path: Path, kept: Restartable) -> None:
    with house(tmp_path, redis_url=kept.url) as sark:
        worker = sark.worker("held:1")
        campaign_id = sark.campaign(4)
        worker.wait_said("Executing job")
        kept.stop()
        kept.start()
        worker.open_gate()
        check_all_once(sark, campaign_id, 4)


def test_a_campaign_that_is_made_while_redis_is_away_is_run_when_it_is_back(tmp_path: Path, kept: Restartable) -> None:
    with house(tmp_path, redis_url=kept.url) as sark:
        sark.worker()
        kept.stop()
        campaign_id = sark.campaign(2)
        kept.start()
        check_all_once(sark, campaign_id, 2)


def test_a_server_killed_in_the_middle_goes_on_where_it_was(private: House) -> None:
    worker = private.worker("held:1")
    campaign_id = private.campaign(4)
    worker.wait_said("Executing job")
    private.kill()
    worker.open_gate()
    worker.wait_said("Failed to update status")
    if private.has_redis:
        worker.wait_said("Published result")  # nobody is there to take it; without a Redis it is lost with the server
        worker.wait_said("Could not fetch job details")  # it pops on, and drops what it cannot look up
    private.start()
    check_all_once(private, campaign_id, 4)


def test_after_a_reset_the_workers_go_on(sark: House) -> None:
    sark.worker()
    check_all_once(sark, sark.campaign(), 1)
    assert sark.ask("POST", "/api/reset")["status"] == "reset"
    assert sark.ask("GET", "/api/campaigns")["count"] == 0
    check_all_once(sark, sark.campaign(2), 2)


# All at once


def test_a_campaign_that_is_cancelled_ends_and_its_worker_goes_on(sark: House) -> None:
    worker = sark.worker("held:1")
    campaign_id = sark.campaign(3)
    worker.wait_said("Executing job")
    sark.prony(f"experiments/{campaign_id}/cancel", method="POST")
    view = sark.ended(campaign_id)
    assert view["job_breakdown"]["pending"] == view["job_breakdown"]["running"] == 0
    worker.open_gate()
    check_all_once(sark, sark.campaign(2), 2)
    assert sark.view(campaign_id)["completed_jobs"] == view["completed_jobs"]


@pytest.mark.slow
def test_in_a_storm_of_faults_every_job_ends_once(sark: House) -> None:
    device = sark.device()
    late = sark.worker("late:1")
    for fault in ("twice", "unknown:2", "malformed:1", "lost:1", "die-before-result:1"):
        sark.worker(fault)
    campaign_id = sark.campaign(40)
    sark.worker("die-after-pop:1", device=device)
    sark.worker(device=device)
    sark.wait(lambda: sark.view(campaign_id)["completed_jobs"] >= 20, "half of the campaign", campaign_id)
    late.open_gate()
    check_all_once(sark, campaign_id, 40)


# What it costs

JOBS, MOST_CPU_S = 50, 2.0


def cpu_s(process: subprocess.Popen[bytes] | None) -> float:
    """Return the processor seconds of a server and of the processes in which it opens results."""
    assert process is not None
    server = psutil.Process(process.pid)
    return sum(float(sum(one.cpu_times()[:2])) for one in (server, *server.children(recursive=True)))


@pytest.mark.slow
def test_fifty_jobs_of_one_worker_cost_the_server_little(tmp_path: Path) -> None:
    """The bound of `benchmarks/sark_jobs.py`. On two busy cores of an x86-64 machine the jobs cost 0.7 s, so there is
    room for a processor of a third of its speed. What the server spends anyway in that time does not count."""
    with house(tmp_path, has_redis=False) as sark:
        worker = sark.worker(options=["--heartbeat", "10", "--idle", "1", "--work", "0.2"])
        check_all_once(sark, sark.campaign(), 1)  # what only the first job costs: modules, and the process that unpacks
        begun_s, begun_cpu_s = time.monotonic(), cpu_s(sark.process)
        campaign_id = sark.campaign(JOBS)
        # Its own words tell when it is done: to ask the server costs the server something.
        wait_for(lambda: worker.said().count("Published result") == 1 + JOBS, "the jobs to be done", within_s=WITHIN_S)
        sark.ended(campaign_id)
        lasted_s, spent_s = time.monotonic() - begun_s, cpu_s(sark.process) - begun_cpu_s
        idle_from_s = cpu_s(sark.process)
        time.sleep(lasted_s)
        idle_s = cpu_s(sark.process) - idle_from_s
        check_all_once(sark, campaign_id, JOBS)
    assert spent_s - idle_s < MOST_CPU_S, f"{spent_s:.2f} s in {lasted_s:.1f} s, {idle_s:.2f} s of it for nothing"


# Prony's own agent in a Dumont's place


def start_agent(sark: House, folder: Path, recording: Path, *, seconds: float = 0.0) -> subprocess.Popen[bytes]:
    program = str(Path(__file__).parents[1] / "chaos" / "recorded_agent.py")
    command = [sys.executable, program, "start", "--sark", sark.url, "--redis-port", str(sark.redis_port)]
    told = {"FLEET_ENGINE": "onnxruntime", "FLEET_RECORDING": str(recording), "FLEET_SECONDS": str(seconds)}
    with (folder / "agent.log").open("ab") as log:
        return subprocess.Popen(command, env=os.environ | told, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def agents_of(sark: House) -> list[str]:
    """Return the workers that have an identity of their own, as no Dumont has; those that were there before are not."""
    workers = sark.ask("GET", "/api/workers")["workers"]
    return [one["worker_id"] for one in workers if one["udid"] and one["status"] != "faulty"]


def test_an_agent_and_a_dumont_share_a_campaign(either: House, tmp_path: Path, recording: Path) -> None:
    agent = start_agent(either, tmp_path, recording)
    try:
        either.worker()
        campaign_id = either.campaign(6)
        check_all_once(either, campaign_id, 6)
        # However quick the other one is: what is for the agent alone is run by the agent.
        either.wait(lambda: len(agents_of(either)) == 1, "the agent to register")
        check_all_once(either, either.campaign(2, worker_id=agents_of(either)[0]), 2)
    finally:
        agent.kill()
        agent.wait()


@pytest.mark.slow
def test_an_agent_killed_in_the_middle_of_a_campaign_goes_on_with_it(
    sark: House, tmp_path: Path, recording: Path
) -> None:
    campaign_id = sark.campaign(2)
    agent = start_agent(sark, tmp_path, recording, seconds=60)
    try:
        sark.wait(lambda: sark.view(campaign_id)["job_breakdown"]["running"] == 1, "the agent to work", campaign_id)
        agent.kill()
        agent.wait()
        agent = start_agent(sark, tmp_path, recording)
        check_all_once(sark, campaign_id, 2)
    finally:
        agent.kill()
        agent.wait()
