"""A load for several agents: lent to all at once or to nobody, ended by the first that fails, settled by the last."""

from __future__ import annotations

import asyncio

import pytest

from prony.errors import ConflictError, InputError
from prony.model.gang import Meeting
from prony.model.lease import Lease

from .fleet_fixture import FACTS, ME, SILENCE_S, FakeAgent, FleetFixture, recipe
from .parcels import OURS, SUT

pytestmark = pytest.mark.anyio

ABLE = {**FACTS, "kinds": ("model", "service")}
LOAD = """
name: together
workload: {kind: service, endpoint: "http://127.0.0.1:9", driver: http}
load: {closed: {concurrency: 8}, requests: 10, repeats: 1, clients: {agents: AGENTS}}
"""


def load(agents: int = 2) -> str:
    return LOAD.replace("AGENTS", str(agents))


async def staff(fleet_fixture: FleetFixture, count: int) -> list[FakeAgent]:
    return [await fleet_fixture.agent(f"a{number}", facts=ABLE) for number in range(count)]


async def lent(fleet_fixture: FleetFixture, fake_agents: list[FakeAgent]) -> dict[str, tuple[FakeAgent, Lease]]:
    """Have all of them wait; return who was lent which part, by its place."""
    async with fleet_fixture.waiting(*fake_agents[:-1]) as polls:
        last = await fake_agents[-1].poll()
        first = [await asyncio.wait_for(poll, 120) for poll in polls]
    pairs = zip(fake_agents, [*first, last], strict=True)
    found = {lease.job.id.rpartition(".")[2]: (fake_agent, lease) for fake_agent, lease in pairs if lease is not None}
    assert len(found) == len(fake_agents)
    return found


async def test_all_are_lent_their_parts_when_the_last_of_them_asks(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(load(3))
    fake_agents = await staff(fleet_fixture, 3)
    assert await fake_agents[0].poll() is None
    parts = await lent(fleet_fixture, fake_agents)
    jobs = [lease.job for _, lease in parts.values()]
    assert sorted(job.part.index for job in jobs if job.part) == [0, 1, 2]
    assert {job.part.of for job in jobs if job.part} == {3}
    assert await fleet_fixture.counts(view.experiment.id) == {"leased": 1}
    assert [job.state for job in await fleet_fixture.jobs(view.experiment.id)] == ["leased"]


async def test_too_few_agents_are_told_with_their_number(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(load(3))
    fake_agents = await staff(fleet_fixture, 2)
    assert await fake_agents[0].poll() is None
    (lot,) = (await fleet_fixture.fleet.queries.queue()).lots
    assert lot.reason == "needs 3 agents at once, each on its own device; 2 that fit are available"


async def test_one_device_is_one_member_however_many_agents_it_has(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(load(2))
    one, twin = [await fleet_fixture.agent(name, device="d", facts=ABLE) for name in ("a", "b")]
    async with fleet_fixture.waiting(one):
        assert await twin.poll() is None


async def test_an_agent_is_kept_free_for_a_load_that_could_have_it_soon(fleet_fixture: FleetFixture) -> None:
    busy, free = await staff(fleet_fixture, 2)
    view = await fleet_fixture.submit(recipe(1, priority=1))
    lease = await busy.lease()
    await fleet_fixture.submit(load(2))
    fleet_fixture.clock.step(seconds=1)
    await fleet_fixture.submit(recipe(1, name="later"))
    assert await free.poll() is None
    async with fleet_fixture.waiting(free) as (poll,):
        await busy.finish(lease)
        assert await fleet_fixture.state(view.experiment.id) == "complete"
        mine = await busy.lease()
        assert mine.job.part is not None
        other = await asyncio.wait_for(poll, 120)
        assert other is not None
        assert other.job.part is not None


async def test_a_load_that_can_never_be_had_keeps_nobody_from_other_work(fleet_fixture: FleetFixture) -> None:
    (fake_agent,) = await staff(fleet_fixture, 1)
    await fleet_fixture.submit(load(2))
    await fleet_fixture.submit(recipe(1))
    assert (await fake_agent.lease()).job.part is None


async def test_of_two_loads_one_gets_all_agents_and_then_the_other(fleet_fixture: FleetFixture) -> None:
    views = [await fleet_fixture.submit(load(2))]
    fleet_fixture.clock.step(seconds=1)
    views.append(await fleet_fixture.submit(load(2)))
    fake_agents = await staff(fleet_fixture, 2)
    first = await lent(fleet_fixture, fake_agents)
    assert {lease.job.experiment_id for _, lease in first.values()} == {views[0].experiment.id}
    for fake_agent, lease in first.values():
        await fake_agent.finish(lease)
    await fleet_fixture.settle()
    second = await lent(fleet_fixture, fake_agents)
    assert {lease.job.experiment_id for _, lease in second.values()} == {views[1].experiment.id}


async def test_the_load_is_recorded_when_its_last_part_is_here_and_once(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(load(2))
    parts = await lent(fleet_fixture, await staff(fleet_fixture, 2))
    (first, lease), (second, other) = parts["0"], parts["1"]
    assert (await first.finish(lease)).accepted
    await fleet_fixture.settle()
    assert await fleet_fixture.counts(view.experiment.id) == {"leased": 1}
    assert not (await first.finish(lease)).accepted
    assert (await second.finish(other)).accepted
    await fleet_fixture.settle()
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert (job.state, await fleet_fixture.state(view.experiment.id)) == ("complete", "complete")
    assert (await fleet_fixture.fleet.results.get(job.id)).job.part is None
    await fleet_fixture.look()
    assert [state for _, _, state in await fleet_fixture.tried(job.id)] == ["complete"]


async def test_when_one_is_lost_the_others_are_stopped_and_all_of_it_is_tried_again(
    fleet_fixture: FleetFixture,
) -> None:
    view = await fleet_fixture.submit(load(2))
    fake_agents = await staff(fleet_fixture, 3)
    parts = await lent(fleet_fixture, fake_agents[:2])
    (survivor, kept), _ = parts["0"], parts["1"]
    await fleet_fixture.pass_time(SILENCE_S, beating=[(survivor, kept)])
    assert (await survivor.beat(kept.id)).cancel == (kept.id,)
    await survivor.finish(kept, "partial")
    await fleet_fixture.settle()
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert job.state == "waiting"
    assert "sent nothing for" in job.reason
    await fleet_fixture.pass_time(3)
    again = await lent(fleet_fixture, [fake_agents[2], survivor])
    assert {lease.job.id for _, lease in again.values()} == {f"{job.id}.2.0", f"{job.id}.2.1"}


async def test_a_part_that_is_handed_back_gives_all_of_it_back_and_costs_no_try(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(load(2))
    parts = await lent(fleet_fixture, await staff(fleet_fixture, 2))
    (first, lease), (second, other) = parts["0"], parts["1"]
    await second.hand_back(other, "going home")
    await first.finish(lease, "partial")
    await fleet_fixture.settle()
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert (job.state, job.not_before) == ("waiting", None)
    assert "going home" in job.reason


@pytest.mark.parametrize(("failure", "state"), [(SUT, "failed"), (OURS, "waiting")])
async def test_a_member_that_fails_tells_why_the_load_failed(
    fleet_fixture: FleetFixture, failure: object, state: str
) -> None:
    view = await fleet_fixture.submit(load(2))
    parts = await lent(fleet_fixture, await staff(fleet_fixture, 2))
    (first, lease), (second, other) = parts["0"], parts["1"]
    await second.finish(other, "failed", failure=failure)
    await first.finish(lease, "partial")
    await fleet_fixture.settle()
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert (job.state, job.reason) == (state, getattr(failure, "message"))  # noqa: B009 - either of two failures


async def test_a_member_that_vanished_is_the_reason_before_one_that_failed_because_of_it(
    fleet_fixture: FleetFixture,
) -> None:
    view = await fleet_fixture.submit(load(2))
    fake_agents = await staff(fleet_fixture, 2)
    parts = await lent(fleet_fixture, fake_agents)
    (first, lease), _ = parts["0"], parts["1"]
    await first.finish(lease, "failed", failure=SUT)
    await fleet_fixture.pass_time(SILENCE_S)
    await fleet_fixture.settle()
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert job.state == "waiting"
    assert "sent nothing for" in job.reason


async def test_a_script_on_several_nodes_is_lent_to_as_many_agents(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit("name: x\nworkload: {kind: script, command: 'true', launch: {nodes: 2}}\n")
    facts = {**FACTS, "kinds": ("script",)}
    one, two = [await fleet_fixture.agent(name, facts=facts) for name in ("a", "b")]
    assert await one.poll() is None
    parts = await lent(fleet_fixture, [one, two])
    assert sorted(lease.job.part.index for _, lease in parts.values() if lease.job.part) == [0, 1]


async def test_a_server_beside_several_nodes_is_refused_with_the_recipe(fleet_fixture: FleetFixture) -> None:
    server = "server: {command: 'true', ports: [9]}"
    with pytest.raises(InputError, match=r"workload\.server needs workload\.launch\.nodes: 1"):
        await fleet_fixture.submit(
            f"name: x\nworkload: {{kind: script, command: 'true', {server}, launch: {{nodes: 2}}}}\n"
        )


async def test_a_load_that_is_cancelled_is_cancelled_for_all(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(load(2))
    parts = await lent(fleet_fixture, await staff(fleet_fixture, 2))
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    for fake_agent, lease in parts.values():
        assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)
        await fake_agent.finish(lease, "partial")
    await fleet_fixture.settle()
    assert await fleet_fixture.state(view.experiment.id) == "cancelled"


async def test_members_meet_when_all_have_come_and_hear_what_each_says(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(load(2))
    parts = await lent(fleet_fixture, await staff(fleet_fixture, 2))
    ids = [parts[place][1].id for place in ("0", "1")]
    assert await fleet_fixture.fleet.gangs.meet(ids[1], Meeting(name="scene", says="one", wait_s=0), who=ME) is None
    first = await fleet_fixture.fleet.gangs.meet(ids[0], Meeting(name="scene", says="zero"), who=ME)
    again = await fleet_fixture.fleet.gangs.meet(ids[1], Meeting(name="scene", says="one"), who=ME)
    assert first is not None
    assert first == again
    assert first.said == ("zero", "one")


async def test_who_has_an_ordinary_job_meets_nobody(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    (fake_agent,) = await staff(fleet_fixture, 1)
    lease = await fake_agent.lease()
    with pytest.raises(ConflictError, match="not part of a running job"):
        await fleet_fixture.fleet.gangs.meet(lease.id, Meeting(name="scene"), who=ME)
