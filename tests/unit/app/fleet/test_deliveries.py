from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from prony.store.home import Home
from servers.receiver import Received, Receiver

from .alarming import alarmed, pass_to, report, sent, told
from .fleet_fixture import FleetFixture, open_fleet

pytestmark = pytest.mark.anyio


async def test_what_is_not_taken_is_sent_again_later_under_the_same_key(
    fleet_fixture: FleetFixture, there: Receiver
) -> None:
    there.statuses = [500, 503]
    await alarmed(fleet_fixture, there, "gate failed")
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    (waiting,) = await sent(fleet_fixture)
    assert (waiting.state, [one.said for one in waiting.tries]) == ("waiting", ["it answered 500"])
    assert waiting.next_at == fleet_fixture.clock.now() + timedelta(seconds=5)
    await pass_to(fleet_fixture, seconds=4)
    assert len(there.received) == 1
    await pass_to(fleet_fixture, seconds=1)
    await pass_to(fleet_fixture, seconds=9)
    assert len(there.received) == 2
    await pass_to(fleet_fixture, seconds=1)
    (done,) = await sent(fleet_fixture)
    assert done.state == "delivered"
    assert [one.ok for one in done.tries] == [False, False, True]
    assert {one.headers["prony-delivery"] for one in there.received} == {done.id}
    assert len({one.body for one in there.received}) == 1


async def test_what_nobody_takes_is_given_up_and_says_so(fleet_fixture: FleetFixture, there: Receiver) -> None:
    there.statuses = [500] * 50
    await alarmed(fleet_fixture, there, "gate failed")
    await report(fleet_fixture)
    for _ in range(15):
        await pass_to(fleet_fixture, hours=1)
    (done,) = await sent(fleet_fixture)
    assert (done.state, len(done.tries)) == ("failed", 12)
    assert len(there.received) == 12


async def test_a_receiver_that_refuses_is_not_asked_again(fleet_fixture: FleetFixture, there: Receiver) -> None:
    there.statuses = [410]
    await alarmed(fleet_fixture, there, "gate failed")
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    await pass_to(fleet_fixture, hours=1)
    assert [one.state for one in await sent(fleet_fixture)] == ["failed"]


async def test_every_address_is_told_whatever_the_others_do(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(
        fleet_fixture, None, "gate failed", to=["webhook+http://127.0.0.1:1/x", there.url("json"), there.url()]
    )
    await report(fleet_fixture)
    await pass_to(fleet_fixture, seconds=11)
    assert sorted(one.state for one in await sent(fleet_fixture)) == ["delivered", "delivered", "waiting"]


async def test_of_two_servers_one_sends(pair: tuple[FleetFixture, FleetFixture], there: Receiver) -> None:
    one, two = pair
    await alarmed(one, there, "gate failed", quiet="1s")
    await two.fleet.alarms.load()
    for number in range(10):
        await asyncio.gather(report(one, subject=f"a{number}"), report(two, subject=f"b{number}"))
        one.clock.step(seconds=11)  # which is the clock of both
        for _ in range(2):
            await asyncio.gather(one.look(), two.look())
    assert told(there) == [("firing", 2)] * 10
    assert len({came.headers["prony-delivery"] for came in there.received}) == 10


async def test_a_server_that_is_killed_between_claim_and_delivery_is_followed_by_one_that_sends(
    home: Home, url: str, there: Receiver
) -> None:
    async with _killed_while_sending(home, url, there) as dead:
        async with open_fleet(home, url, clock=dead.clock) as fleet_fixture:
            if url:  # others may be sending on this database, so the claim must run out
                await pass_to(fleet_fixture, seconds=59)
                assert len(there.received) == 1
                await pass_to(fleet_fixture, seconds=2)
            await fleet_fixture.look()
            await fleet_fixture.settle()
            (done,) = await sent(fleet_fixture)
            assert done.state == "delivered"
            assert [one.said for one in done.tries] == [
                "the server stopped before the answer came",
                "it answered 200",
            ]
        assert len(there.received) == 2
        assert _keys(there.received) == {done.id}


@asynccontextmanager
async def _killed_while_sending(home: Home, url: str, there: Receiver) -> AsyncIterator[FleetFixture]:
    """Yield a server that will never know what came of its message."""
    killed = open_fleet(home, url)
    dead = await killed.__aenter__()
    await alarmed(dead, there, "gate failed")
    await report(dead)
    dead.clock.step(seconds=11)
    there.gate.clear()
    there.statuses = [200]
    await dead.fleet.maintenance.look_around()
    await dead.fleet.maintenance.look_around()
    await asyncio.to_thread(there.wait)

    async def silent(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    vars(dead.fleet.context)["write"] = silent  # as one that is killed writes nothing more
    there.gate.set()
    yield dead
    for task in dead.fleet.context.tasks:
        task.cancel()
    await killed.__aexit__(None, None, None)


def _keys(received: list[Received]) -> set[str]:
    return {one.headers["prony-delivery"] for one in received}
