"""Agents: enrolled, lost and found, drained, faulty by what others could do, trusted again, sent away."""

from __future__ import annotations

import asyncio

import pytest

from prony.cli.columns import agent_cells
from prony.errors import AccessError, ConflictError, NotFoundError
from prony.model.access import NewToken, Principal, Role
from prony.model.agent import Capabilities, DiskShortage, Enrolment, Heartbeat

from .ground import FACTS, ME, TTL_S, Ground, Hand, opened, recipe
from .parcels import OURS, SUT

pytestmark = pytest.mark.anyio

LONG_S = 3 * TTL_S + 30


async def fail(ground: Ground, hand: Hand) -> None:
    lease = await hand.lease()
    await hand.finish(lease, "failed", failure=OURS)


async def succeed(hand: Hand) -> None:
    await hand.finish(await hand.lease())


# States


async def test_an_agent_is_busy_with_a_lease_and_cleans_up_after_it(ground: Ground) -> None:
    await ground.submit(recipe(1))
    hand = await ground.agent()
    states = [(await hand.shown()).state]
    lease = await hand.lease()
    shown = await hand.shown()
    states.append(shown.state)
    assert shown.job_id == lease.job.id
    await hand.finish(lease)
    await ground.fleet.agents.heartbeat(hand.id, Heartbeat(incarnation=hand.incarnation, cleaning=True), who=ME)
    states.append((await hand.shown()).state)
    await hand.beat()
    states.append((await hand.shown()).state)
    assert states == ["active", "busy", "cleanup", "active"]


FULL = DiskShortage(path="/srv/prony/spool", free_bytes=12 * 2**20, needed_bytes=256 * 2**20)


async def test_an_agent_whose_disk_is_full_is_shown_as_such_and_lent_nothing_until_it_has_room(ground: Ground) -> None:
    hand = await ground.agent("narrow")
    full = Heartbeat(incarnation=hand.incarnation, disk=FULL)
    for _ in range(2):
        await ground.fleet.agents.heartbeat(hand.id, full, who=ME)
    shown = await hand.shown()
    assert shown.state == "disk_full"
    assert shown.reason == "disk full: 12 MiB are free at /srv/prony/spool, 256 MiB are needed"
    assert [cell for cell in agent_cells(shown) if "disk" in cell] == ["disk_full", shown.reason]
    await ground.submit(recipe(2))
    assert await hand.poll() is None
    [lot] = (await ground.fleet.queries.queue()).lots
    assert lot.reason == "no agent that fits is there: 1 out of disk space"
    assert [(one.name, one.state) for one in (await ground.fleet.queries.overview()).troubles] == [
        ("narrow", "disk_full")
    ]
    other = await ground.agent("wide", device="d2")
    await other.lease()
    [lot] = (await ground.fleet.queries.queue()).lots
    assert lot.reason == "1 of 1 agents that fit are busy, 1 more out of disk space"
    await hand.beat()
    assert ((await hand.shown()).state, (await hand.shown()).reason) == ("active", "")
    assert await hand.lease()


async def test_a_full_disk_changes_nothing_of_what_people_said_of_an_agent(ground: Ground) -> None:
    hand = await ground.agent()
    full = Heartbeat(incarnation=hand.incarnation, disk=FULL)
    await ground.fleet.agents.drain(hand.id, who=ME)
    assert (await ground.fleet.agents.heartbeat(hand.id, full, who=ME)).drain
    assert (await hand.shown()).state == "draining"
    await ground.fleet.agents.reset(hand.id, who=ME)
    await ground.fleet.agents.heartbeat(hand.id, full, who=ME)
    assert (await hand.shown()).state == "disk_full"
    await ground.pass_time(LONG_S)
    assert (await hand.shown()).state == "lost"
    await ground.fleet.agents.heartbeat(hand.id, full, who=ME)
    assert (await hand.shown()).state == "disk_full"


async def test_two_agents_of_one_name_stay_two_and_one_that_comes_back_stays_one(ground: Ground) -> None:
    one, two = await ground.agent("same", device="d1"), await ground.agent("same", device="d2")
    assert one.id != two.id
    await one.restart()
    assert len((await ground.fleet.agents.page()).items) == 2


async def test_an_agent_that_is_silent_is_lost_and_found_when_it_is_heard(ground: Ground) -> None:
    hand, other = await ground.agent("silent"), await ground.agent("other")
    for _ in range(12):
        await other.beat()
        await ground.pass_time(10)
    shown = await hand.shown()
    assert (shown.state, shown.reason) == ("lost", "not heard of for 90 s")
    assert (await other.shown()).state == "active"
    await hand.beat()
    assert ((await hand.shown()).state, (await hand.shown()).reason) == ("active", "")


async def test_a_lost_agent_that_asks_for_work_gets_it_at_once(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.pass_time(LONG_S)
    assert (await hand.shown()).state == "lost"
    await ground.submit(recipe(1))
    assert await hand.lease()


async def test_one_that_was_draining_when_it_was_lost_is_draining_when_it_is_found(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.fleet.agents.drain(hand.id, who=ME)
    await ground.pass_time(LONG_S)
    assert (await hand.shown()).state == "lost"
    assert (await hand.beat()).drain
    assert ((await hand.shown()).state, (await hand.shown()).reason.split(";")[0]) == ("draining", "drained by tester")
    await hand.enrol()  # the same life is told to end still
    assert (await hand.shown()).state == "draining"
    await hand.restart()
    assert (await hand.shown()).state == "active"


async def test_a_server_that_starts_does_not_find_agents_that_nobody_heard(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.pass_time(LONG_S)
    async with opened(ground.fleet.context.home, _url(ground)) as later:
        await later.pass_time(60)
        assert (await later.fleet.agents.get(hand.id)).state == "lost"
        await hand.at(later).beat()
        assert (await later.fleet.agents.get(hand.id)).state == "active"


async def test_a_server_that_did_not_look_has_lost_nobody(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.look()
    ground.seconds += 10_000
    await ground.look()
    assert (await hand.shown()).state == "active"


# Drained, reset, removed


async def test_only_a_person_makes_a_faulty_agent_active_again(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.fleet.context.write(
        lambda transaction: transaction.connection.exec_driver_sql("UPDATE agent SET state = 'faulty'")
    )
    await ground.look()
    with pytest.raises(ConflictError):
        await ground.fleet.agents.drain(hand.id, who=ME)
    await hand.restart()
    assert (await hand.shown()).state == "faulty"
    assert (await ground.fleet.agents.reset(hand.id, who=ME)).state == "active"


async def test_who_is_not_there_cannot_be_drained_reset_or_removed(ground: Ground) -> None:
    for act in (ground.fleet.agents.drain, ground.fleet.agents.reset, ground.fleet.agents.remove):
        with pytest.raises(NotFoundError):
            await act("nobody", who=ME)
    with pytest.raises(NotFoundError):
        await ground.fleet.agents.set_capabilities("nobody", Capabilities(), who=ME)


async def test_an_agent_may_drain_itself_and_no_other(ground: Ground) -> None:
    hand, other = await ground.agent("one"), await ground.agent("two")
    itself = Principal(name="one", role=Role.AGENT, agent_id=hand.id)
    assert (await ground.fleet.agents.drain(hand.id, who=itself)).state == "draining"
    with pytest.raises(AccessError):
        await ground.fleet.agents.drain(other.id, who=itself)


async def test_a_one_time_token_makes_one_agent(ground: Ground) -> None:
    made = await asyncio.to_thread(ground.fleet.access.add_token, NewToken(name="rack", role=Role.AGENT, once=True))
    who = await asyncio.to_thread(ground.fleet.access.authenticate, made.secret, "here")
    other = await ground.agent("other")
    asked = Enrolment(id=other.id, name="rack", device_key="d", incarnation="x", capabilities=Capabilities(facts=FACTS))
    enrolled = await ground.fleet.agents.enroll(asked, who=who)
    assert enrolled.token is not None
    assert enrolled.agent.id != other.id  # whose name it would take is not its to say
    with pytest.raises(AccessError):
        await ground.fleet.agents.enroll(asked, who=who)
    assert len((await ground.fleet.agents.page()).items) == 2
    itself = await asyncio.to_thread(ground.fleet.access.authenticate, enrolled.token, "here")
    assert itself.agent_id == enrolled.agent.id
    with pytest.raises(AccessError):
        await ground.fleet.agents.enroll(asked, who=itself)


# Faulty


async def test_an_agent_that_fails_what_others_can_do_becomes_faulty_after_three(ground: Ground) -> None:
    await ground.submit(recipe(4))
    bad, good = await ground.agent("bad"), await ground.agent("good")
    for number in range(3):
        assert (await bad.shown()).strikes == number
        await fail(ground, bad)
        await ground.pass_time(10)
        await ground.fleet.agents.drain(bad.id, who=ME)  # so that the good one takes what the bad one failed
        await succeed(good)
        if number < 2:
            await ground.fleet.context.write(
                lambda transaction: transaction.connection.exec_driver_sql("UPDATE agent SET state = 'active'")
            )
            await ground.look()
    shown = await bad.shown()
    assert (shown.state, shown.strikes) == ("faulty", 3)
    assert shown.reason == "3 jobs in a row failed here and were done elsewhere"
    await ground.settle()
    assert await bad.poll() is None
    trusted = await ground.fleet.agents.reset(bad.id, who=ME)
    assert (trusted.state, trusted.strikes, trusted.reason) == ("active", 0, "")
    assert await bad.lease()


async def test_a_success_between_failures_makes_an_agent_trusted_again(ground: Ground) -> None:
    await ground.submit(recipe(5))
    shaky, good = await ground.agent("shaky"), await ground.agent("good")
    for _ in range(2):
        await fail(ground, shaky)
        await ground.pass_time(10)
        await succeed(good)
        await ground.settle()
    assert (await shaky.shown()).strikes == 2
    await ground.look()
    await succeed(shaky)
    assert (await shaky.shown()).strikes == 0


async def test_a_job_that_fails_everywhere_counts_against_nobody(ground: Ground) -> None:
    await ground.submit(recipe(3, attempts=2))
    hands = [await ground.agent("one"), await ground.agent("two")]
    for _ in range(3):
        for hand in hands:
            await fail(ground, hand)
            await ground.pass_time(10)
    assert [(await hand.shown()).strikes for hand in hands] == [0, 0]
    assert {agent.state for agent in (await ground.fleet.agents.page()).items} == {"active"}


async def test_one_job_counts_once_against_an_agent_however_often_it_failed_there(ground: Ground) -> None:
    await ground.submit(recipe(1, attempts=5))
    bad = await ground.agent("bad")
    for _ in range(3):
        await fail(ground, bad)
        await ground.pass_time(20)
    good = await ground.agent("good")
    await ground.look()
    await succeed(good)
    assert (await bad.shown()).strikes == 1


async def test_a_model_that_fails_here_and_runs_on_others_counts_too(ground: Ground) -> None:
    await ground.submit(recipe(5))
    bad, good = await ground.agent("bad"), await ground.agent("good")
    lease = await bad.lease()
    await bad.finish(lease, "failed", failure=SUT)
    assert (await bad.shown()).strikes == 0  # nobody has shown yet that it can be done
    await succeed(good)
    for _ in range(3):
        await bad.finish(await bad.lease(), "failed", failure=SUT)
        await ground.settle()
    assert (await bad.shown()).state == "faulty"


async def test_draining_does_not_forget_what_counts_against_an_agent(ground: Ground) -> None:
    await ground.submit(recipe(2))
    bad, good = await ground.agent("bad"), await ground.agent("good")
    await fail(ground, bad)
    await ground.pass_time(10)
    await succeed(good)
    await ground.fleet.agents.drain(bad.id, who=ME)
    await bad.restart()
    assert (await bad.shown()).strikes == 1


def _url(ground: Ground) -> str:
    engine = ground.fleet.context.engine
    return engine.url.render_as_string(hide_password=False) if engine.dialect.name == "postgresql" else ""
