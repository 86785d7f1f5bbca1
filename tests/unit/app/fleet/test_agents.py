"""Agents: enrolled, lost and found, drained, faulty by what others could do, trusted again, sent away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from prony.cli.columns import agent_cells
from prony.errors import AccessError, ConflictError, NotFoundError
from prony.model.access import NewToken, Principal, Role
from prony.model.agent import Capabilities, DiskShortage, Enrolment, Heartbeat

from .fleet_fixture import FACTS, ME, TTL_S, FakeAgent, FleetFixture, open_fleet, recipe
from .parcels import OURS, SUT

pytestmark = pytest.mark.anyio

LONG_S = 3 * TTL_S + 30


async def fail(fleet_fixture: FleetFixture, fake_agent: FakeAgent) -> None:
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, "failed", failure=OURS)


async def succeed(fake_agent: FakeAgent) -> None:
    await fake_agent.finish(await fake_agent.lease())


# States


async def test_an_agent_is_busy_with_a_lease_and_cleans_up_after_it(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    states = [(await fake_agent.shown()).state]
    lease = await fake_agent.lease()
    shown = await fake_agent.shown()
    states.append(shown.state)
    assert shown.job_id == lease.job.id
    await fake_agent.finish(lease)
    await fleet_fixture.fleet.agents.heartbeat(
        fake_agent.id, Heartbeat(incarnation=fake_agent.incarnation, cleaning=True), who=ME
    )
    states.append((await fake_agent.shown()).state)
    await fake_agent.beat()
    states.append((await fake_agent.shown()).state)
    assert states == ["active", "busy", "cleanup", "active"]


FULL = DiskShortage(path="/srv/prony/spool", free_bytes=12 * 2**20, needed_bytes=256 * 2**20)


async def test_an_agent_whose_disk_is_full_is_shown_as_such_and_lent_nothing_until_it_has_room(
    fleet_fixture: FleetFixture,
) -> None:
    fake_agent = await fleet_fixture.agent("narrow")
    full = Heartbeat(incarnation=fake_agent.incarnation, disk=FULL)
    for _ in range(2):
        await fleet_fixture.fleet.agents.heartbeat(fake_agent.id, full, who=ME)
    shown = await fake_agent.shown()
    assert shown.state == "disk_full"
    assert shown.reason == "disk full: 12 MiB are free at /srv/prony/spool, 256 MiB are needed"
    assert [cell for cell in agent_cells(shown) if "disk" in cell] == ["disk_full", shown.reason]
    await fleet_fixture.submit(recipe(2))
    assert await fake_agent.poll() is None
    [lot] = (await fleet_fixture.fleet.queries.queue()).lots
    assert lot.reason == "no agent that fits is available: 1 out of disk space"
    assert [(one.name, one.state) for one in (await fleet_fixture.fleet.queries.overview()).troubles] == [
        ("narrow", "disk_full")
    ]
    other = await fleet_fixture.agent("wide", device="d2")
    await other.lease()
    [lot] = (await fleet_fixture.fleet.queries.queue()).lots
    assert lot.reason == "1 of 1 agents that fit are busy, 1 more out of disk space"
    await fake_agent.beat()
    assert ((await fake_agent.shown()).state, (await fake_agent.shown()).reason) == ("active", "")
    assert await fake_agent.lease()


async def test_a_full_disk_changes_nothing_of_what_people_said_of_an_agent(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    full = Heartbeat(incarnation=fake_agent.incarnation, disk=FULL)
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    assert (await fleet_fixture.fleet.agents.heartbeat(fake_agent.id, full, who=ME)).drain
    assert (await fake_agent.shown()).state == "draining"
    await fleet_fixture.fleet.agents.reset(fake_agent.id, who=ME)
    await fleet_fixture.fleet.agents.heartbeat(fake_agent.id, full, who=ME)
    assert (await fake_agent.shown()).state == "disk_full"
    await fleet_fixture.pass_time(LONG_S)
    assert (await fake_agent.shown()).state == "lost"
    await fleet_fixture.fleet.agents.heartbeat(fake_agent.id, full, who=ME)
    assert (await fake_agent.shown()).state == "disk_full"


async def test_two_agents_of_one_name_stay_two_and_one_that_comes_back_stays_one(fleet_fixture: FleetFixture) -> None:
    one, two = await fleet_fixture.agent("same", device="d1"), await fleet_fixture.agent("same", device="d2")
    assert one.id != two.id
    await one.restart()
    assert len((await fleet_fixture.fleet.agents.page()).items) == 2


async def test_an_agent_that_is_silent_is_lost_and_found_when_it_is_heard(fleet_fixture: FleetFixture) -> None:
    fake_agent, other = await fleet_fixture.agent("silent"), await fleet_fixture.agent("other")
    for _ in range(12):
        await other.beat()
        await fleet_fixture.pass_time(10)
    shown = await fake_agent.shown()
    assert (shown.state, shown.reason) == ("lost", "it sent nothing for 90 s")
    assert (await other.shown()).state == "active"
    await fake_agent.beat()
    assert ((await fake_agent.shown()).state, (await fake_agent.shown()).reason) == ("active", "")


async def test_a_lost_agent_that_asks_for_work_gets_it_at_once(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.pass_time(LONG_S)
    assert (await fake_agent.shown()).state == "lost"
    await fleet_fixture.submit(recipe(1))
    assert await fake_agent.lease()


async def test_one_that_drains_and_falls_silent_is_stopped_and_no_trouble(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    await fleet_fixture.pass_time(LONG_S)
    assert ((await fake_agent.shown()).state, (await fake_agent.shown()).reason) == ("stopped", "drained by tester")
    assert (await fleet_fixture.fleet.queries.overview()).troubles == ()
    await fleet_fixture.submit(recipe(1))
    assert await fake_agent.poll() is None
    await fake_agent.restart()
    assert (await fake_agent.shown()).state == "active"


async def test_one_that_drains_and_falls_silent_with_a_job_is_lost(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.submit(recipe(1))
    await fake_agent.lease()
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    await fleet_fixture.pass_time(LONG_S)
    assert (await fake_agent.shown()).state == "lost"


async def test_one_that_was_draining_when_it_stopped_is_draining_when_it_is_found(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    await fleet_fixture.pass_time(LONG_S)
    assert (await fake_agent.shown()).state == "stopped"
    assert (await fake_agent.beat()).drain
    assert ((await fake_agent.shown()).state, (await fake_agent.shown()).reason.split(";")[0]) == (
        "draining",
        "drained by tester",
    )
    await fake_agent.enrol()  # the same life is told to end still
    assert (await fake_agent.shown()).state == "draining"
    await fake_agent.restart()
    assert (await fake_agent.shown()).state == "active"


async def test_a_server_that_starts_does_not_find_agents_that_nobody_heard(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.pass_time(LONG_S)
    async with open_fleet(fleet_fixture.fleet.context.home, _url(fleet_fixture)) as later:
        await later.pass_time(60)
        assert (await later.fleet.agents.get(fake_agent.id)).state == "lost"
        await fake_agent.at(later).beat()
        assert (await later.fleet.agents.get(fake_agent.id)).state == "active"


async def test_a_server_that_did_not_look_has_lost_nobody(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.look()
    fleet_fixture.seconds += 10_000
    await fleet_fixture.look()
    assert (await fake_agent.shown()).state == "active"


# Drained, reset, removed


async def test_only_a_person_makes_a_faulty_agent_active_again(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.fleet.context.write(
        lambda transaction: transaction.connection.exec_driver_sql("UPDATE agent SET state = 'faulty'")
    )
    await fleet_fixture.look()
    with pytest.raises(ConflictError):
        await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    await fake_agent.restart()
    assert (await fake_agent.shown()).state == "faulty"
    assert (await fleet_fixture.fleet.agents.reset(fake_agent.id, who=ME)).state == "active"


async def test_who_is_not_there_cannot_be_drained_reset_or_removed(fleet_fixture: FleetFixture) -> None:
    for act in (fleet_fixture.fleet.agents.drain, fleet_fixture.fleet.agents.reset, fleet_fixture.fleet.agents.remove):
        with pytest.raises(NotFoundError):
            await act("nobody", who=ME)
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.agents.set_capabilities("nobody", Capabilities(), who=ME)


async def test_an_agent_may_drain_itself_and_no_other(fleet_fixture: FleetFixture) -> None:
    fake_agent, other = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    itself = Principal(name="one", role=Role.AGENT, agent_id=fake_agent.id)
    assert (await fleet_fixture.fleet.agents.drain(fake_agent.id, who=itself)).state == "draining"
    with pytest.raises(AccessError):
        await fleet_fixture.fleet.agents.drain(other.id, who=itself)


async def test_a_one_time_token_makes_one_agent(fleet_fixture: FleetFixture) -> None:
    made = await asyncio.to_thread(
        fleet_fixture.fleet.access.add_token, NewToken(name="rack", role=Role.AGENT, once=True)
    )
    who = await asyncio.to_thread(fleet_fixture.fleet.access.authenticate, made.secret, "here")
    other = await fleet_fixture.agent("other")
    asked = Enrolment(id=other.id, name="rack", device_key="d", incarnation="x", capabilities=Capabilities(facts=FACTS))
    enrolled = await fleet_fixture.fleet.agents.enroll(asked, who=who)
    assert enrolled.token is not None
    assert enrolled.agent.id != other.id  # whose name it would take is not its to say
    with pytest.raises(AccessError):
        await fleet_fixture.fleet.agents.enroll(asked, who=who)
    assert len((await fleet_fixture.fleet.agents.page()).items) == 2
    itself = await asyncio.to_thread(fleet_fixture.fleet.access.authenticate, enrolled.token, "here")
    assert itself.agent_id == enrolled.agent.id
    with pytest.raises(AccessError):
        await fleet_fixture.fleet.agents.enroll(asked, who=itself)


# Faulty


async def test_an_agent_that_fails_what_others_can_do_becomes_faulty_after_three(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(4))
    bad, good = await fleet_fixture.agent("bad"), await fleet_fixture.agent("good")
    for number in range(3):
        assert (await bad.shown()).strikes == number
        await fail(fleet_fixture, bad)
        await fleet_fixture.pass_time(10)
        await fleet_fixture.fleet.agents.drain(bad.id, who=ME)  # so that the good one takes what the bad one failed
        await succeed(good)
        if number < 2:
            await fleet_fixture.fleet.context.write(
                lambda transaction: transaction.connection.exec_driver_sql("UPDATE agent SET state = 'active'")
            )
            await fleet_fixture.look()
    shown = await bad.shown()
    assert (shown.state, shown.strikes) == ("faulty", 3)
    assert shown.reason == "3 jobs in a row failed here and succeeded on other agents"
    await fleet_fixture.settle()
    assert await bad.poll() is None
    trusted = await fleet_fixture.fleet.agents.reset(bad.id, who=ME)
    assert (trusted.state, trusted.strikes, trusted.reason) == ("active", 0, "")
    assert await bad.lease()


async def test_a_success_between_failures_makes_an_agent_trusted_again(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(5))
    shaky, good = await fleet_fixture.agent("shaky"), await fleet_fixture.agent("good")
    for _ in range(2):
        await fail(fleet_fixture, shaky)
        await fleet_fixture.pass_time(10)
        await succeed(good)
        await fleet_fixture.settle()
    assert (await shaky.shown()).strikes == 2
    await fleet_fixture.look()
    await succeed(shaky)
    assert (await shaky.shown()).strikes == 0


async def test_a_job_that_fails_everywhere_counts_against_nobody(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(3, attempts=2))
    fake_agents = [await fleet_fixture.agent("one"), await fleet_fixture.agent("two")]
    for _ in range(3):
        for fake_agent in fake_agents:
            await fail(fleet_fixture, fake_agent)
            await fleet_fixture.pass_time(10)
    assert [(await fake_agent.shown()).strikes for fake_agent in fake_agents] == [0, 0]
    assert {agent.state for agent in (await fleet_fixture.fleet.agents.page()).items} == {"active"}


async def test_one_job_counts_once_against_an_agent_however_often_it_failed_there(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, attempts=5))
    bad = await fleet_fixture.agent("bad")
    for _ in range(3):
        await fail(fleet_fixture, bad)
        await fleet_fixture.pass_time(20)
    good = await fleet_fixture.agent("good")
    await fleet_fixture.look()
    await succeed(good)
    assert (await bad.shown()).strikes == 1


async def test_a_model_that_fails_here_and_runs_on_others_counts_too(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(5))
    bad, good = await fleet_fixture.agent("bad"), await fleet_fixture.agent("good")
    lease = await bad.lease()
    await bad.finish(lease, "failed", failure=SUT)
    assert (await bad.shown()).strikes == 0  # nobody has shown yet that it can be done
    await succeed(good)
    for _ in range(3):
        await bad.finish(await bad.lease(), "failed", failure=SUT)
        await fleet_fixture.settle()
    assert (await bad.shown()).state == "faulty"


async def test_draining_does_not_forget_what_counts_against_an_agent(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    bad, good = await fleet_fixture.agent("bad"), await fleet_fixture.agent("good")
    await fail(fleet_fixture, bad)
    await fleet_fixture.pass_time(10)
    await succeed(good)
    await fleet_fixture.fleet.agents.drain(bad.id, who=ME)
    await bad.restart()
    assert (await bad.shown()).strikes == 1


async def test_news_of_an_agent_that_come_late_do_not_undo_newer_ones(
    local: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_agent = await local.agent()
    await local.settle()
    context, late = local.fleet.context, asyncio.Event()
    read = context.read

    async def read_and_wait(ask: Any) -> Any:
        found = await read(ask)
        await late.wait()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(context, "read", read_and_wait)
        old = asyncio.create_task(local.fleet.agents.load(fake_agent.id))
        await asyncio.sleep(0.05)  # it has read, on any machine that is not very busy; if not, there is nothing to see
    told = Capabilities(facts={**FACTS, "rack": "7"})
    await local.fleet.agents.set_capabilities(fake_agent.id, told, who=ME)
    await local.settle()
    late.set()
    await old
    assert local.fleet.state.agents[fake_agent.id].capabilities.facts["rack"] == "7"


def _url(fleet_fixture: FleetFixture) -> str:
    engine = fleet_fixture.fleet.context.engine
    return engine.url.render_as_string(hide_password=False) if engine.dialect.name == "postgresql" else ""
