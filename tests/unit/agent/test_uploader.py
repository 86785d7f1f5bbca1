"""Every result reaches the server once, through cuts, refusals and restarts; and what it refuses for good is kept."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from prony.agent import uploader as module
from prony.agent.logs import AgentLog
from prony.agent.metrics import AgentMetrics
from prony.agent.server_client import ServerClient
from prony.agent.spool import Meta, Spool, Work
from prony.agent.uploader import Uploader
from prony.client.wire import delays
from prony.model.lease import FinishAnswer, Lease

from .conftest import MakeLease
from .small_server import CUT, DROP, Fault, SmallServer, lines_of

T = TypeVar("T")
SMALL, LARGE = 1000, 3 * 2**20


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses as they are, but a thousand times shorter; pieces of which a large result has several."""
    monkeypatch.setattr(module, "delays", lambda first, most: delays(first / 1000, most / 1000))
    monkeypatch.setattr(module, "PIECE_BYTES", 2**20)


def packed(spool: Spool, lease: Lease, size: int = SMALL) -> tuple[Work, Meta]:
    work = spool.begin(lease)
    work.folder.mkdir()
    (work.folder / "samples.parquet").write_bytes(os.urandom(size))
    return work, spool.keep(work)


class Sender:
    """Runs something against the small server with an uploader of a fresh process."""

    def __init__(self, server: SmallServer, spool: Spool, log: AgentLog) -> None:
        self.server, self.spool, self.log = server, spool, log
        self.metrics = AgentMetrics()

    def __call__(self, work: Callable[[Uploader], Awaitable[T]]) -> T:
        async def run() -> T:
            async with ServerClient(self.server.url, answer_s=5.0) as link:
                uploader = Uploader(link, self.spool, metrics=self.metrics, log=self.log)
                return await work(uploader)

        return asyncio.run(run())

    def all(self) -> None:
        """Send until nothing waits, as the agent's own task does."""

        async def run(uploader: Uploader) -> None:
            await uploader.load()
            running = asyncio.create_task(uploader.run())
            async with asyncio.timeout(120):
                while self.spool.waiting():
                    await asyncio.sleep(0.005)
            running.cancel()

        self(run)


@pytest.fixture
def sender(server: SmallServer, spool: Spool, log: AgentLog) -> Sender:
    return Sender(server, spool, log)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_result_arrives_whole(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease, size: int
) -> None:
    work, meta = packed(spool, a_lease(), size)
    content = work.tar.read_bytes()
    sender.all()
    assert server.results == {meta.lease_id: content}
    assert spool.waiting() == []
    assert not work.path.exists()
    pieces = server.calls.count("PATCH leases/upload")
    assert pieces == (0 if size == SMALL else 4)


FAULTS: list[tuple[str, list[Fault]]] = [
    ("PUT leases/result", [DROP, DROP]),
    ("PUT leases/result", [CUT, CUT]),
    ("PUT leases/result", [500, 503, 429, 401, 403]),
    ("PATCH leases/upload", [DROP, CUT, 500]),
    ("GET leases/upload", [CUT, 503]),
]


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("wrong", FAULTS, ids=str)
def test_it_arrives_once_through_every_fault(
    server: SmallServer, sender: Sender, a_lease: MakeLease, size: int, wrong: tuple[str, list[Fault]]
) -> None:
    operation, faults = wrong
    spool = sender.spool
    server.faults[operation] = list(faults)
    work, meta = packed(spool, a_lease(), size)
    content = work.tar.read_bytes()
    sender.all()
    assert server.results == {meta.lease_id: content}
    assert spool.waiting() == []


def test_an_upload_goes_on_where_it_was_cut(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    work, meta = packed(spool, a_lease(), LARGE)
    content = work.tar.read_bytes()
    server.uploads[meta.lease_id] = content[: 2 * 2**20]
    sender.all()
    assert server.results == {meta.lease_id: content}
    assert server.calls.count("PATCH leases/upload") == 2


def test_an_answer_that_was_lost_costs_no_second_copy(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.faults["PATCH leases/upload"] = [CUT]  # the piece arrived, and the agent does not know it
    work, meta = packed(spool, a_lease(), LARGE)
    content = work.tar.read_bytes()
    sender.all()
    assert server.results[meta.lease_id] == content
    assert server.calls.count("PATCH leases/upload") == 4


@pytest.mark.parametrize("status", [400, 404, 409, 410, 413, 422])
def test_what_is_refused_for_good_is_set_aside_with_the_reason(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease, status: int, said: io.StringIO
) -> None:
    server.faults["PUT leases/result"] = [status]
    refused, _ = packed(spool, a_lease(1))
    _, meta = packed(spool, a_lease(2))
    sender.all()
    assert list(server.results) == [meta.lease_id]
    place = spool.refused / refused.path.name
    assert "refused on order" in (place / "reason").read_text()
    assert (place / "result.tar").exists()
    told = [line for line in lines_of(said.getvalue()) if line["level"] == "error"]
    assert [(line["job_id"], line["experiment_id"]) for line in told] == [("e1-001", "e1")]


def test_a_result_that_cannot_be_read_here_was_not_refused_by_the_server(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease, said: io.StringIO
) -> None:
    work, meta = packed(spool, a_lease(1))
    work.tar.unlink()
    work.tar.mkdir()

    async def run(uploader: Uploader) -> None:
        assert await uploader.deliver(work, meta, ask_next=False) is None

    sender(run)
    assert server.results == {}
    (told,) = [line for line in lines_of(said.getvalue()) if line["level"] == "error"]
    assert told["event"] == "the result cannot be read from this disk and is set aside"


def test_one_that_cannot_be_taken_now_does_not_keep_the_others(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.faults["PUT leases/result"] = [403]
    packed(spool, a_lease(1))
    packed(spool, a_lease(2))
    pause_s = sender(lambda uploader: uploader.send_waiting())
    assert pause_s is not None  # it is to be tried again, on a slow machine at once
    assert list(server.results) == ["lease-2-1"]
    sender.all()
    assert set(server.results) == {"lease-1-1", "lease-2-1"}


def test_the_oldest_goes_first(server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease) -> None:
    for number in (5, 2, 9):
        packed(spool, a_lease(number))
    sender.all()
    assert list(server.results) == ["lease-5-1", "lease-2-1", "lease-9-1"]


def test_damage_on_this_disk_is_told_from_damage_on_the_way(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.codes[502] = "checksum_mismatch"
    rotten, _ = packed(spool, a_lease(1))
    block = bytearray(rotten.tar.read_bytes())
    block[700] ^= 1
    rotten.tar.write_bytes(block)
    sender.all()
    assert server.results == {}
    assert (spool.refused / "e1-001.1" / "reason").exists()
    server.faults["PUT leases/result"] = [502]  # the next one was damaged on its way, and is sent again
    packed(spool, a_lease(2))
    sender.all()
    assert list(server.results) == ["lease-2-1"]


def test_the_next_lease_comes_with_the_answer(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.leases = [a_lease(2)]
    work, meta = packed(spool, a_lease(1))

    async def deliver(uploader: Uploader) -> FinishAnswer | None:
        return await uploader.deliver(work, meta, ask_next=True)

    answer = sender(deliver)
    assert answer is not None
    assert answer.accepted
    assert answer.lease == a_lease(2)


def test_what_is_newer_waits_for_what_is_older(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    older = packed(spool, a_lease(1))
    newer = packed(spool, a_lease(2))

    async def deliver(uploader: Uploader) -> None:
        await uploader.load()
        assert await uploader.deliver(*newer, ask_next=True) is None
        assert set(uploader.unsent) == {"lease-1-1", "lease-2-1"}
        assert server.results == {}

    sender(deliver)
    assert older[0].is_packed


def test_nobody_waits_for_a_server_that_is_away(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.faults["PUT leases/result"] = [503] * 5
    packed(spool, a_lease(1))

    async def settle(uploader: Uploader) -> int:
        await uploader.load()
        assert not uploader.settled.is_set()
        running = asyncio.create_task(uploader.run())
        async with asyncio.timeout(120):
            await uploader.settled.wait()
        waiting = len(uploader.unsent)
        running.cancel()
        return waiting

    assert sender(settle) == 1
    assert "prony_agent_spool_results 1" in sender.metrics.text()


def test_a_lease_whose_result_is_refused_again_and_again_is_not_held_for_ever(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.faults["PUT leases/result"] = [500] * 5
    packed(spool, a_lease(1))

    async def send(uploader: Uploader) -> list[tuple[str, ...]]:
        held = []
        for _ in range(5):
            await uploader.send_waiting(at_once=True)
            held.append(uploader.answered_for)
        assert uploader.waiting_lease_ids == ("lease-1-1",)  # else the server would lend it again and again
        await uploader.send_waiting(at_once=True)
        return held

    assert sender(send) == [("lease-1-1",)] * 4 + [()]
    assert list(server.results) == ["lease-1-1"]


FULL = [507, 503]


@pytest.mark.parametrize("status", FULL)
def test_what_comes_in_while_the_server_is_full_does_not_shorten_its_pauses(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "delays", lambda *_: delays(3600.0, 3600.0))
    server.codes[status] = "disk_full"
    server.faults["PUT leases/result"] = [status] * 1000

    async def offer(uploader: Uploader) -> None:
        running = asyncio.create_task(uploader.run())
        for number in range(1, 21):
            await uploader.deliver(*packed(spool, a_lease(number)), ask_next=True)
            await asyncio.sleep(0.01)
        assert not uploader.settled.is_set(), "a job more is a result more that the server cannot take"
        assert len(uploader.answered_for) == 20, "its trouble is not theirs: their leases are renewed"
        running.cancel()

    sender(offer)
    assert server.calls.count("PUT leases/result") == 1


def test_pauses_grow_and_a_success_ends_them(
    server: SmallServer, spool: Spool, sender: Sender, a_lease: MakeLease
) -> None:
    server.faults["PUT leases/result"] = [503] * 6
    packed(spool, a_lease(1))
    packed(spool, a_lease(2))

    async def send(uploader: Uploader) -> list[float]:
        pauses = [await uploader.send_waiting(at_once=True) or 0.0 for _ in range(6)]
        assert await uploader.send_waiting(at_once=True) is None
        packed(spool, a_lease(3))
        server.faults["PUT leases/result"] = [503]
        return [*pauses, await uploader.send_waiting(at_once=True) or 0.0]

    *grown, fresh = sender(send)
    assert grown[5] > 8 * grown[0]  # doubled five times, scattered by half
    assert fresh < grown[2]
    # One try a round: a server that has no room for the first has none for the second.
    assert server.calls.count("PUT leases/result") == 6 + 2 + 1
