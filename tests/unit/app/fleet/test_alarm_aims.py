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
from .ground import ME, Ground, Hand, recipe
from .parcels import SUT

pytestmark = pytest.mark.anyio
ANA, BOB = (Principal(name=name, role=Role.SUBMITTER) for name in ("ana", "bob"))
VISION = {"team": "vision"}


async def submit(ground: Ground, who: Principal = ANA, labels: str = "", **more: str) -> ExperimentView:
    text = (
        recipe(1) + (f"labels: {labels}\n" if labels else "") + "".join(f"{key}: {one}\n" for key, one in more.items())
    )
    view, _ = await ground.fleet.experiments.submit(Submission(text=text), who=who)
    return view


async def run(
    ground: Ground, hand: Hand, state: str = "failed", *, who: Principal = ANA, labels: str = "", **more: str
) -> str:
    """Let an experiment of one job end; return its id."""
    view = await submit(ground, who, labels, **more)
    lease = await hand.lease()
    await hand.finish(lease, state, failure=SUT if state == "failed" else None)
    return view.experiment.id


async def subjects(ground: Ground, name: str = "ops") -> list[tuple[str, bool]]:
    """Return what the alarm found, each with whether it is open."""
    found = (await ground.fleet.alarms.incidents(name)).items
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
    ground: Ground, there: Receiver, aim: dict[str, Any], hears: bool
) -> None:
    made = await alarmed(ground, there, **aim)
    assert (made.alarm.labels, made.alarm.owner) == (aim.get("labels", {}), aim.get("owner"))
    await run(ground, await ground.agent(), labels="{team: vision, stage: nightly}")
    await pass_to(ground, seconds=11)
    assert told(there) == ([("firing", 1)] if hears else [])


async def test_what_was_found_in_ones_own_run_does_not_end_with_somebody_elses(ground: Ground) -> None:
    await alarmed(ground, None, owner="ana")
    hand = await ground.agent()
    await run(ground, hand, who=ANA)
    await run(ground, hand, "complete", who=BOB)
    assert await subjects(ground) == [("small", True)]
    await run(ground, hand, "complete", who=ANA)
    assert await subjects(ground) == [("small", False)]


@pytest.mark.parametrize(("labels", "hears"), [(VISION, True), ({"team": "audio"}, False), ({"size": "1"}, True)])
async def test_what_is_about_a_job_has_the_labels_of_the_job(
    ground: Ground, labels: dict[str, str], hears: bool
) -> None:
    await alarmed(ground, None, "regression", labels=labels)
    hand = await ground.agent()
    experiment = await run(ground, hand, labels="{team: vision}")
    jobs = (await ground.fleet.jobs.page(experiment=experiment)).items
    if "size" in labels:
        text = recipe(1).replace("matrix: {", "matrix: {labels.size: ['1'], ")
        view, _ = await ground.fleet.experiments.submit(Submission(text=text), who=ANA)
        jobs = (await ground.fleet.jobs.page(experiment=view.experiment.id)).items
    await report(ground, "regression", "slower", facts={"job": jobs[0].id})
    assert await subjects(ground) == ([("slower", True)] if hears else [])


async def test_a_lost_agent_has_its_labels_and_its_owner_is_one_of_them(ground: Ground) -> None:
    await alarmed(ground, None, "agent lost", name="room", labels={"room": "lab2"})
    await alarmed(ground, None, "agent lost", name="anas", owner="ana")
    await alarmed(ground, None, "agent lost", name="bobs", owner="bob")
    hand = await ground.agent("rack")
    offered = Capabilities(facts=hand.facts, labels={"room": "lab2", "owner": "ana"})
    await ground.fleet.agents.set_capabilities(hand.id, offered, who=ME)
    await ground.pass_time(150)
    assert [await subjects(ground, name) for name in ("room", "anas", "bobs")] == [[(hand.id, True)]] * 2 + [[]]
    # It comes back with other labels, and is back all the same.
    await ground.fleet.agents.set_capabilities(hand.id, Capabilities(facts=hand.facts), who=ME)
    await hand.beat()
    assert await subjects(ground, "room") == [(hand.id, False)]


async def test_a_missed_schedule_is_its_makers(ground: Ground) -> None:
    await alarmed(ground, None, "schedule missed", name="anas", owner="ana", labels=VISION)
    await alarmed(ground, None, "schedule missed", name="bobs", owner="bob")
    submission = Submission(text=recipe(1) + "labels: {team: vision}\n")
    await ground.fleet.schedules.add(NewSchedule(submission=submission, cron="0 * * * *", missed="skip"), who=ANA)
    await pass_to(ground, hours=1)
    await pass_to(ground, hours=3, minutes=30)
    assert (await subjects(ground, "anas"), await subjects(ground, "bobs")) == ([("small", True)], [])


async def test_a_recipe_aims_its_own_alarms(ground: Ground) -> None:
    await alarmed(ground, None)
    alarms = "[{name: mine, when: experiment failed, to: [ops], labels: {team: vision}, owner: ana}]"
    hand = await ground.agent()
    await run(ground, hand, who=BOB, labels="{team: vision}", alarms=alarms)
    await ground.fleet.alarms.load()
    await run(ground, hand, who=BOB, labels="{team: vision}")
    assert await subjects(ground, "small.mine") == []
    await run(ground, hand, who=ANA, labels="{team: vision}")
    assert await subjects(ground, "small.mine") == [("small", True)]


async def test_what_was_deleted_is_nobodys(ground: Ground) -> None:
    await alarmed(ground, None, "gate failed", owner="ana")
    await report(ground, facts={"experiment": "gone"})
    await report(ground, facts={"job": "gone-001"})
    await report(ground)
    assert await subjects(ground) == []
