"""Long polls and event streams: answered when there is something, ended when nobody listens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from starlette.types import Message

from prony.app.fleet.closing import ClosingError
from prony.app.fleet.events import ChangeNotice
from prony.server.events import EventStream, encode_event
from prony.server.long_poll import Waits
from prony.server.problems import ClientGoneError
from servers.waiting import wait_for

from .house import House

Receive = Callable[[], Awaitable[Message]]


def connection() -> tuple[Receive, asyncio.Event]:
    """Return what tells of a client, and what makes it go."""
    gone = asyncio.Event()

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive, gone


async def forever(begun: asyncio.Event, ended: list[str]) -> None:
    try:
        begun.set()
        await asyncio.Event().wait()
    finally:
        ended.append("cancelled")


def test_work_that_ends_is_answered() -> None:
    async def scenario() -> None:
        receive, _ = connection()
        waits = Waits()
        assert await waits.attend(receive, asyncio.sleep(0, "done")) == "done"
        assert len(waits) == 0

    asyncio.run(scenario())


@pytest.mark.parametrize(("who", "error"), [("client", ClientGoneError), ("server", ClosingError)])
def test_work_is_cancelled_when_nobody_waits_for_it(who: str, error: type[Exception]) -> None:
    async def scenario() -> None:
        receive, gone = connection()
        waits, begun, ended = Waits(), asyncio.Event(), list[str]()
        work = asyncio.create_task(waits.attend(receive, forever(begun, ended)))
        await begun.wait()
        gone.set() if who == "client" else waits.close()
        with pytest.raises(error):
            await work
        assert ended == ["cancelled"]
        assert not work.cancelled()
        assert len(waits) == 0

    asyncio.run(scenario())


def test_somebody_elses_cancellation_stays_one() -> None:
    async def scenario() -> None:
        receive, _ = connection()
        begun = asyncio.Event()
        work = asyncio.create_task(Waits().attend(receive, forever(begun, [])))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(scenario())


def test_who_comes_when_the_server_goes_does_not_wait() -> None:
    async def scenario() -> None:
        receive, _ = connection()
        waits = Waits()
        waits.close()
        with pytest.raises(ClosingError):
            await waits.attend(receive, forever(asyncio.Event(), []))

    asyncio.run(scenario())


def test_the_client_is_not_watched_before_its_body_was_read() -> None:
    async def scenario() -> None:
        receive, gone = connection()
        gone.set()
        read, begun = asyncio.Event(), asyncio.Event()
        work = asyncio.create_task(Waits().attend(receive, forever(begun, []), after=read))
        await begun.wait()
        await asyncio.sleep(0)
        assert not work.done()
        read.set()
        with pytest.raises(ClientGoneError):
            await work

    asyncio.run(scenario())


# Event streams


def test_an_event_is_written_as_browsers_read_it() -> None:
    assert encode_event(ChangeNotice("job", '{"a":"\u2028"}')) == 'event: job\ndata: {"a":"\u2028"}\n\n'.encode()
    assert encode_event(ChangeNotice("x", "a", "b-1")) == b"id: b-1\nevent: x\ndata: a\n\n"
    assert encode_event(ChangeNotice("x", "a\nb")) == b"event: x\ndata: a\ndata: b\n\n"


def test_a_stream_beats_while_there_is_nothing_to_tell_and_ends_with_its_source() -> None:
    async def scenario() -> list[bytes]:
        receive, _ = connection()
        beaten = asyncio.Event()
        sent: list[bytes] = []

        async def source() -> AsyncIterator[ChangeNotice]:
            await beaten.wait()
            yield ChangeNotice("job", "2")

        async def send(message: Message) -> None:
            sent.append(message.get("body", b""))
            if sent[-1] == b": beat\n\n":
                beaten.set()

        await EventStream(ChangeNotice("snapshot", "1"), source(), Waits(), beat_s=0.01)(
            {"type": "http"}, receive, send
        )
        return sent

    sent = asyncio.run(scenario())
    assert sent[:3] == [b"", b"event: snapshot\ndata: 1\n\n", b": beat\n\n"]
    assert sent[-2:] == [b"event: job\ndata: 2\n\n", b""]


def test_a_stream_that_nobody_reads_closes_its_source() -> None:
    async def scenario() -> None:
        receive, gone = connection()
        closed = list[str]()

        async def source() -> AsyncIterator[ChangeNotice]:
            try:
                yield ChangeNotice("job", "1")
                await asyncio.Event().wait()
            finally:
                closed.append("closed")

        async def send(message: Message) -> None:
            if b"job" in message.get("body", b""):
                gone.set()

        await EventStream(ChangeNotice("snapshot", "0"), source(), Waits())({"type": "http"}, receive, send)
        assert closed == ["closed"]

    asyncio.run(scenario())


def test_a_watcher_sees_the_snapshot_the_changes_and_the_end(house: House) -> None:
    experiment_id = house.experiment()
    with house.client.stream("GET", f"/api/v1/experiments/{experiment_id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        lines = stream.iter_lines()
        assert next(lines) == "event: snapshot"
        snapshot = json.loads(next(lines).removeprefix("data: "))
        assert [job["state"] for job in snapshot["jobs"]] == ["waiting"]
        httpx.post(f"{house.url}/api/v1/experiments/{experiment_id}/cancel").raise_for_status()
        told = list(lines)  # to the stream's own end
    assert "event: job" in told
    assert "event: experiment" in told
    assert any('"cancelled"' in line for line in told)


def test_nothing_can_be_watched_that_is_not_there(house: House) -> None:
    response = house.client.get("/api/v1/experiments/zzz/events")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")


def test_a_watcher_that_goes_is_forgotten(house: House) -> None:
    experiment_id = house.experiment()
    with house.client.stream("GET", f"/api/v1/experiments/{experiment_id}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: snapshot"
        assert experiment_id in house.fleet.events.watchers
    wait_for(lambda: experiment_id not in house.fleet.events.watchers)


# Leases


def test_an_agent_that_waits_gets_the_job_as_soon_as_there_is_one(house: House) -> None:
    drain_queue(house)
    agent_id = house.enrol("waiting")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(house.lease, agent_id, 50)
        wait_for(lambda: agent_id in house.fleet.state.waiters)
        experiment_id = house.experiment()
        lease = waiting.result(60)
    assert lease.status_code == 200
    assert lease.json()["job"]["experiment_id"] == experiment_id


def test_a_wait_that_ends_without_a_job_has_no_content(house: House) -> None:
    drain_queue(house)
    response = house.lease(house.enrol("idle"), 0.05)
    assert (response.status_code, response.content) == (204, b"")


def test_an_agent_that_went_away_swallows_no_job(house: House) -> None:
    drain_queue(house)
    gone, there = house.enrol("gone"), house.enrol("there")
    asked = {"agent_id": gone, "incarnation": "i1", "wait_s": 30}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{house.url}/api/v1/leases", json=asked, timeout=httpx.Timeout(60, read=2))
    wait_for(lambda: gone not in house.fleet.state.waiters)
    house.experiment()
    assert house.lease(there, 50).status_code == 200
    listed = house.client.get("/api/v1/leases").json()
    assert gone not in [one["agent_id"] for one in listed]


def drain_queue(house: House) -> None:
    """End whatever earlier tests left."""
    house.client.post("/api/v1/jobs/batch", json={"action": "cancel", "state": "waiting"}).raise_for_status()


def test_logs_can_be_waited_for_and_tell_where_they_go_on(house: House) -> None:
    drain_queue(house)
    agent_id = house.enrol("logging")
    house.experiment()
    lease = house.lease(agent_id, 50).json()
    job = f"/api/v1/jobs/{lease['job']['id']}/logs"
    first = house.client.get(job)
    assert (first.text, first.headers["prony-next-offset"], first.headers["prony-ended"]) == ("", "0", "false")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(house.client.get, f"{job}?wait_s=50")
        told = httpx.post(f"{house.url}/api/v1/leases/{lease['id']}/progress", json={"log": "hello\n"}, timeout=60)
        assert told.json() == {"cancel": False}
        found = waiting.result(60)
    assert (found.text, found.headers["prony-next-offset"]) == ("hello\n", "6")
    assert found.headers["content-type"] == "text/plain; charset=utf-8"
