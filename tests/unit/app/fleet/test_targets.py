"""Stand-in agents: many leases at once, kept over a restart, and what they tell of their target."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from prony.dispatch.outcomes import after_result
from prony.errors import InputError
from prony.model.lease import Lease
from prony.model.queue import JobState
from prony.model.result import Failure, ResultState
from prony.model.target import PlacementNote, PlacePhase

from .fleet_fixture import SILENCE_S, FakeAgent, FleetFixture, recipe

pytestmark = pytest.mark.anyio


def note(phase: PlacePhase, reason: str = "", **times: object) -> PlacementNote:
    return PlacementNote.model_validate(
        {"target": "far", "kind": "slurm", "key": "prony-x-1-0", "phase": phase, "reason": reason, "native_id": "17"}
        | times
    )


async def take_two(fake_agent: FakeAgent) -> tuple[Lease, Lease]:
    first = await fake_agent.lease()
    second = await fake_agent.poll(holding=[first.id])
    assert second is not None
    return first, second


async def test_a_stand_in_has_as_many_leases_as_slots_and_is_told_again_of_one_it_missed(
    fleet_fixture: FleetFixture,
) -> None:
    await fleet_fixture.submit(recipe(4))
    fake_agent = await fleet_fixture.stand_in(slots=2)
    first, second = await take_two(fake_agent)
    held = [first.id, second.id]
    assert first.job.id != second.job.id
    assert await fake_agent.poll(holding=held) is None
    again = await fake_agent.poll(holding=[first.id])
    assert again is not None
    assert again.id == second.id
    assert (await fleet_fixture.fleet.agents.get(fake_agent.id)).state == "busy"
    async with asyncio.timeout(120):
        waiting = asyncio.create_task(fake_agent.poll(wait_s=30, holding=held))
        await fleet_fixture.until(lambda: fake_agent.id in fleet_fixture.fleet.state.waiters)
        await fake_agent.finish(first)
        third = await waiting
    assert third is not None
    assert third.id not in held


async def test_an_ordinary_agent_beside_a_stand_in_gets_jobs_and_a_gang_is_not_for_a_target(
    fleet_fixture: FleetFixture,
) -> None:
    view = await fleet_fixture.submit(recipe(3))
    far, near = await fleet_fixture.stand_in(slots=5), await fleet_fixture.agent("near")
    first = await far.lease()
    assert (await near.lease()).job.id != first.job.id
    (lot,) = (await fleet_fixture.fleet.queries.queue()).lots
    assert set(lot.fitting) == {far.id, near.id}
    pending = next(iter(fleet_fixture.fleet.state.lots.values()))
    gang = pending.lot.model_copy(update={"demand": pending.lot.demand.model_copy(update={"agents": 2})})
    pending.lot, pending.demand_id = gang, gang.demand.id
    known = fleet_fixture.fleet.state.agents
    assert not fleet_fixture.fleet.state.could(known[far.id], pending)
    assert fleet_fixture.fleet.state.could(known[near.id], pending)
    assert await fleet_fixture.state(view.experiment.id) == "running"


async def test_a_restarted_stand_in_keeps_the_leases_that_it_names_and_no_other(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.stand_in()
    kept, dropped = await take_two(fake_agent)
    await fake_agent.restart(kept.id)
    assert [one.id for one in await fleet_fixture.fleet.leases.list_leases()] == [kept.id]
    assert (await fake_agent.beat(kept.id)).cancel == ()
    assert (await fleet_fixture.job(dropped.job.id)).state is JobState.WAITING


async def test_a_lease_that_ran_out_is_taken_up_unless_another_agent_has_the_job(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    far = await fleet_fixture.stand_in()
    first, second = await take_two(far)
    await fleet_fixture.pass_time(SILENCE_S + 10)  # and the pause before the next try
    assert await fleet_fixture.job_state(first.job.id) is JobState.WAITING
    near = await fleet_fixture.agent("near")
    taken = await near.lease()
    assert taken.job.id == first.job.id
    await far.restart(first.id, second.id, "unknown-lease")
    assert (await far.beat(first.id, second.id)).cancel == (first.id,)
    detail = await fleet_fixture.detail(second.job.id)
    assert (detail.queued.state, detail.queued.attempt) == (JobState.LEASED, 1)
    assert [one.state for one in detail.attempts] == ["leased"]
    assert (await far.finish(second)).accepted
    assert [one[2] for one in await fleet_fixture.tried(second.job.id)] == ["complete"]


async def test_a_server_shows_targets_and_how_placements_fare(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    await fleet_fixture.agent("near", facts={})
    fake_agent = await fleet_fixture.stand_in()
    first, second = await take_two(fake_agent)
    await fake_agent.progress(first, placement=note(PlacePhase.SUBMITTED))
    await fake_agent.progress(first, placement=note(PlacePhase.QUEUED, "no node is free (Resources)"))
    assert (await fleet_fixture.job(first.job.id)).reason == "queued at far: no node is free (Resources)"
    now = fleet_fixture.clock.now()
    running = note(PlacePhase.RUNNING, submitted_at=now, started_at=now + timedelta(seconds=90), nodes=("n1",))
    await fake_agent.progress(second, placement=running)
    (target,) = (await fleet_fixture.fleet.targets.page()).items
    assert (target.name, target.slots, target.agent_id) == ("far", 2, fake_agent.id)
    assert target.placed == {PlacePhase.QUEUED: 1, PlacePhase.RUNNING: 1}
    page = await fleet_fixture.fleet.targets.placements("far", limit=1)
    assert [one.job_id for one in page.items] == [second.job.id]
    assert page.items[0].note.waits_s == 90
    rest = await fleet_fixture.fleet.targets.placements("far", cursor=page.next)
    assert [(one.job_id, one.note.phase) for one in rest.items] == [(first.job.id, PlacePhase.QUEUED)]
    await fake_agent.finish(first)
    (target,) = (await fleet_fixture.fleet.targets.page()).items
    assert target.placed == {PlacePhase.RUNNING: 1}
    assert (await fleet_fixture.job(first.job.id)).reason == ""
    assert (await fleet_fixture.fleet.targets.placements("other")).items == ()
    with pytest.raises(InputError):
        await fleet_fixture.fleet.targets.placements("far", cursor="x")


def test_a_part_that_its_wall_time_cut_is_not_tried_again() -> None:
    cut = Failure(code="stopped_at_target", message="", whose="input")
    assert after_result(ResultState.PARTIAL, cut, tries_left=2, is_cancelled=False) is JobState.PARTIAL
    assert after_result(ResultState.PARTIAL, None, tries_left=2, is_cancelled=False) is JobState.WAITING
