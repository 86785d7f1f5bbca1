"""An alarm that is aimed by labels or an owner hears only of what is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from prony.model.access import Principal, Role
from prony.model.agent import Capabilities
from prony.model.queue import ExperimentView, Submission
from prony.model.schedule import NewSchedule
from servers.receiver import Receiver

from .alarming import alarmed, pass_to, report, told
from .fleet_fixture import ME, FakeAgent, FleetFixture, recipe
from .parcels import SUT

pytestmark = pytest.mark.anyio
ANA, BOB = (Principal(name=name, role=Role.SUBMITTER) for name in ("ana", "bob"))
VISION = {"team": "vision"}


async def submit(fleet_fixture: FleetFixture, who: Principal = ANA, labels: str = "", **more: str) -> ExperimentView:
    text = (
        recipe(1) + (f"labels: {labels}\n" if labels else "") + "".join(f"{key}: {one}\n" for key, one in more.items())
    )
    view, _ = await fleet_fixture.fleet.experiments.submit(Submission(text=text), who=who)
    return view


async def run(
    fleet_fixture: FleetFixture,
    fake_agent: FakeAgent,
    state: str = "failed",
    *,
    who: Principal = ANA,
    labels: str = "",
    **more: str,
) -> str:
    """Let an experiment of one job end; return its id."""
    view = await submit(fleet_fixture, who, labels, **more)
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, state, failure=SUT if state == "failed" else None)
    return view.experiment.id


async def subjects(fleet_fixture: FleetFixture, name: str = "ops") -> list[tuple[str, bool]]:
    """Return what the alarm found, each with whether it is open."""
    found = (await fleet_fixture.fleet.alarms.incidents(name)).items
    return [(one.subject, one.closed_at is None) for one in found]


@pytest.mark.parametrize(
    ("aim", "hears"),
    [
        ({"labels": VISION}, True),
        ({"labels": {"team": "vision", "stage": "nightly"}}, True),
        ({"labels": {"team": "audio"}}, False),
        ({"labels": {"team": "vision", "room": "lab2"}}, False),
        ({"owner": "ana"}, True),
        ({"owner": "bob"}, False),
        ({"labels": VISION, "owner": "bob"}, False),
        ({"labels": VISION, "owner": "ana", "recipe": "small"}, True),
        ({"labels": VISION, "owner": "ana", "recipe": "other"}, False),
    ],
)
async def test_a_failed_experiment_is_heard_of_by_whose_it_is(
    fleet_fixture: FleetFixture, there: Receiver, aim: dict[str, Any], hears: bool
) -> None:
    made = await alarmed(fleet_fixture, there, **aim)
    assert (made.alarm.labels, made.alarm.owner) == (aim.get("labels", {}), aim.get("owner"))
    await run(fleet_fixture, await fleet_fixture.agent(), labels="{team: vision, stage: nightly}")
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == ([("firing", 1)] if hears else [])


async def test_what_was_found_in_ones_own_run_does_not_end_with_somebody_elses(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None, owner="ana")
    fake_agent = await fleet_fixture.agent()
    await run(fleet_fixture, fake_agent, who=ANA)
    await run(fleet_fixture, fake_agent, "complete", who=BOB)
    assert await subjects(fleet_fixture) == [("small", True)]
    await run(fleet_fixture, fake_agent, "complete", who=ANA)
    assert await subjects(fleet_fixture) == [("small", False)]


@pytest.mark.parametrize(("labels", "hears"), [(VISION, True), ({"team": "audio"}, False), ({"size": "1"}, True)])
async def test_what_is_about_a_job_has_the_labels_of_the_job(
    fleet_fixture: FleetFixture, labels: dict[str, str], hears: bool
) -> None:
    await alarmed(fleet_fixture, None, "regression", labels=labels)
    fake_agent = await fleet_fixture.agent()
    experiment = await run(fleet_fixture, fake_agent, labels="{team: vision}")
    jobs = (await fleet_fixture.fleet.jobs.page(experiment=experiment)).items
    if "size" in labels:
        text = recipe(1).replace("matrix: {", "matrix: {labels.size: ['1'], ")
        view, _ = await fleet_fixture.fleet.experiments.submit(Submission(text=text), who=ANA)
        jobs = (await fleet_fixture.fleet.jobs.page(experiment=view.experiment.id)).items
    await report(fleet_fixture, "regression", "slower", facts={"job": jobs[0].id})
    assert await subjects(fleet_fixture) == ([("slower", True)] if hears else [])


async def test_a_lost_agent_has_its_labels_and_its_owner_is_one_of_them(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None, "agent lost", name="room", labels={"room": "lab2"})
    await alarmed(fleet_fixture, None, "agent lost", name="anas", owner="ana")
    await alarmed(fleet_fixture, None, "agent lost", name="bobs", owner="bob")
    fake_agent = await fleet_fixture.agent("rack")
    offered = Capabilities(facts=fake_agent.facts, labels={"room": "lab2", "owner": "ana"})
    await fleet_fixture.fleet.agents.set_capabilities(fake_agent.id, offered, who=ME)
    await fleet_fixture.pass_time(150)
    assert [await subjects(fleet_fixture, name) for name in ("room", "anas", "bobs")] == [
        [(fake_agent.id, True)]
    ] * 2 + [[]]
    # It comes back with other labels, and is back all the same.
    await fleet_fixture.fleet.agents.set_capabilities(fake_agent.id, Capabilities(facts=fake_agent.facts), who=ME)
    await fake_agent.beat()
    assert await subjects(fleet_fixture, "room") == [(fake_agent.id, False)]


async def test_a_missed_schedule_is_its_makers(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None, "schedule missed", name="anas", owner="ana", labels=VISION)
    await alarmed(fleet_fixture, None, "schedule missed", name="bobs", owner="bob")
    submission = Submission(text=recipe(1) + "labels: {team: vision}\n")
    await fleet_fixture.fleet.schedules.add(
        NewSchedule(submission=submission, cron="0 * * * *", missed="skip"), who=ANA
    )
    await pass_to(fleet_fixture, hours=1)
    await pass_to(fleet_fixture, hours=3, minutes=30)
    assert (await subjects(fleet_fixture, "anas"), await subjects(fleet_fixture, "bobs")) == ([("small", True)], [])


async def test_a_recipe_aims_its_own_alarms(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None)
    alarms = "[{name: mine, when: experiment failed, to: [ops], labels: {team: vision}, owner: ana}]"
    fake_agent = await fleet_fixture.agent()
    await run(fleet_fixture, fake_agent, who=BOB, labels="{team: vision}", alarms=alarms)
    await fleet_fixture.fleet.alarms.load()
    await run(fleet_fixture, fake_agent, who=BOB, labels="{team: vision}")
    assert await subjects(fleet_fixture, "small.mine") == []
    await run(fleet_fixture, fake_agent, who=ANA, labels="{team: vision}")
    assert await subjects(fleet_fixture, "small.mine") == [("small", True)]


async def test_what_was_deleted_is_nobodys(fleet_fixture: FleetFixture) -> None:
    await alarmed(fleet_fixture, None, "gate failed", owner="ana")
    await report(fleet_fixture, facts={"experiment": "gone"})
    await report(fleet_fixture, facts={"job": "gone-001"})
    await report(fleet_fixture)
    assert await subjects(fleet_fixture) == []
