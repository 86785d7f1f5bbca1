"""Whoever watches a job hears of it at once, and all of it, although calls are lost and the server is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from prony.agent import reporter as module
from prony.agent.logs import AgentLog
from prony.agent.reporter import MOST_CHARACTERS, Reporter, open_log
from prony.agent.server_client import ServerClient
from prony.agent.spool import Spool, Work
from prony.client.wire import delays
from prony.model.event import Event

from .conftest import MakeLease
from .small_server import CUT, DROP, SmallServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "delays", lambda first, most: delays(first / 100, most / 1000))


@pytest.fixture
def work(spool: Spool, a_lease: MakeLease) -> Work:
    return spool.begin(a_lease())


def event(number: int, **changes: str) -> Event:
    return Event.read({"kind": "phase", "job_id": "e1-001", "phase": f"p{number}"} | changes)


class Session:
    """Reports one job of the small server until a condition holds; `stops` is what was said about stopping it."""

    def __init__(self, server: SmallServer, work: Work, log: AgentLog) -> None:
        self.server, self.work, self.log = server, work, log
        self.stops: list[bool] = []

    def __call__(self, act: Callable[[Reporter], None], *, until: Callable[[], bool]) -> None:
        asyncio.run(self._run(act, until))

    async def _run(self, act: Callable[[Reporter], None], until: Callable[[], bool]) -> None:
        async with ServerClient(self.server.url, answer_s=5.0) as link:
            reporter = Reporter(link, "lease-1-1", open_log(self.work), on_cancel=self.stops.append, log=self.log)
            running = asyncio.create_task(reporter.run())
            act(reporter)
            async with asyncio.timeout(120):
                while not until():
                    await asyncio.sleep(0.002)
            running.cancel()


@pytest.fixture
def session(server: SmallServer, work: Work, log: AgentLog) -> Session:
    return Session(server, work, log)


def heard(server: SmallServer) -> list[str]:
    return [one.phase for progress in server.progress["lease-1-1"] for one in progress.events]


def log_of(server: SmallServer) -> bytes:
    """Return the log as a server keeps it: every piece at its place."""
    kept = bytearray()
    for progress in server.progress["lease-1-1"]:
        piece = progress.log.encode()
        assert progress.log_offset <= len(kept)
        kept[progress.log_offset : progress.log_offset + len(piece)] = piece
    return bytes(kept)


def test_events_arrive_in_order_and_the_log_with_them(server: SmallServer, work: Work, session: Session) -> None:
    def act(reporter: Reporter) -> None:
        for number in range(20):
            reporter.event(event(number))

    session(act, until=lambda: len(heard(server)) >= 20)
    assert heard(server) == [f"p{number}" for number in range(20)]
    assert log_of(server).count(b"phase p") == 20
    assert len(server.progress["lease-1-1"]) < 5


@pytest.mark.parametrize("fault", [DROP, CUT, 500, 503, 429])
def test_nothing_is_missing_after_calls_that_were_lost(
    server: SmallServer, work: Work, session: Session, fault: str | int
) -> None:
    server.faults["POST leases/progress"] = [fault, fault]

    def act(reporter: Reporter) -> None:
        for number in range(5):
            reporter.event(event(number))

    def done() -> bool:
        return "p4" in heard(server)[-5:] and not server.faults["POST leases/progress"]

    session(act, until=done)
    assert list(dict.fromkeys(heard(server))) == [f"p{number}" for number in range(5)]
    assert log_of(server) == work.log.read_bytes()


def test_what_the_runner_prints_is_in_the_log(server: SmallServer, work: Work, session: Session) -> None:
    (work.folder / "logs").mkdir(parents=True)
    (work.folder / "logs" / "repetition-0000.log").write_text("the engine said ünïcode\n")
    work.stderr.write_bytes(b"a warning\nand \xff bytes")

    def act(reporter: Reporter) -> None:
        reporter.event(Event(kind="repetition", job_id="e1-001", done=1, total=3, state="ok"))

    session(act, until=lambda: b"bytes" in log_of(server))
    text = log_of(server).decode()
    assert "repetition 1/3 ok" in text
    assert "the engine said ünïcode" in text
    assert "a warning" in text


def test_a_long_log_comes_in_pieces_that_fit(server: SmallServer, work: Work, session: Session) -> None:
    words = "ä€𝄞" * MOST_CHARACTERS
    work.stderr.write_text(words)
    session(lambda one: one.say("begin"), until=lambda: len(log_of(server)) > len(words.encode()) + 60)
    assert log_of(server).decode().endswith(f" runner {words}\n")
    assert all(len(one.log) <= 256 * 1024 for one in server.progress["lease-1-1"])


def test_a_cancelled_job_is_told_to_stop(server: SmallServer, session: Session) -> None:
    server.cancelled.add("lease-1-1")
    session(lambda one: one.event(event(0)), until=lambda: bool(session.stops))
    assert session.stops == [False]


@pytest.mark.parametrize("status", [404, 409, 410])
def test_a_lease_that_is_not_ours_any_more_is_told_as_lost(server: SmallServer, session: Session, status: int) -> None:
    server.faults["POST leases/progress"] = [status]
    session(lambda one: one.event(event(0)), until=lambda: bool(session.stops))
    assert session.stops == [True]


def test_a_reporter_ends_when_it_is_told_to_though_something_comes_in_the_same_instant(
    server: SmallServer, work: Work, log: AgentLog
) -> None:
    async def race() -> None:
        async with ServerClient(server.url, answer_s=5.0) as link:
            reporter = Reporter(link, "lease-1-1", open_log(work), on_cancel=lambda _: None, log=log)
            running = asyncio.create_task(reporter.run())
            await asyncio.sleep(0)  # it waits for something to report
            reporter.event(event(1))
            await asyncio.sleep(0)  # what it waited for has come, and it has not been woken yet
            running.cancel()
            done, _ = await asyncio.wait({running}, timeout=60)
            assert done == {running}
            assert running.cancelled()

    asyncio.run(race())
