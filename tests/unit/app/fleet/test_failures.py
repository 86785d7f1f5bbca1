"""What failed in a fleet, by cause."""

from __future__ import annotations

import pytest

from .fleet_fixture import SILENCE_S, FleetFixture, recipe
from .parcels import SUT

pytestmark = pytest.mark.anyio


async def test_failed_results_and_lost_leases_are_causes_with_their_agents(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(4, attempts=1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    await one.finish(await one.lease(), "failed", failure=SUT)
    await one.finish(await one.lease(), "failed", failure=SUT)
    await two.finish(await two.lease())
    lost = await two.lease()
    await fleet_fixture.pass_time(SILENCE_S + 10)
    report = await fleet_fixture.fleet.jobs.failures(days=1)
    assert [(group.code, group.failures, group.agents) for group in report.groups] == [
        ("sut", 2, {"one": 2}), ("lease_lost", 1, {"two": 1}),
    ]  # fmt: skip
    assert report.groups[1].newest_job == lost.job.id
    assert all(group.recipes == {"small": group.failures} for group in report.groups)
    fleet_fixture.clock.step(days=2)
    assert (await fleet_fixture.fleet.jobs.failures(days=1)).groups == ()


async def test_a_cancelled_job_did_not_fail(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    agent = await fleet_fixture.agent()
    cancelled = SUT.model_copy(update={"code": "cancelled"})
    await agent.finish(await agent.lease(), "partial", failure=cancelled)
    assert (await fleet_fixture.fleet.jobs.failures(days=1)).failures == 0
