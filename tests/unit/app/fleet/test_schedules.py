from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from prony.app.fleet import schedules
from prony.errors import ConflictError, InputError, NotFoundError, RecipeError, StoreError
from prony.model.cron import Timing
from prony.model.queue import Submission
from prony.model.schedule import NewSchedule, Schedule
from prony.store.home import Home

from .fleet_fixture import ME, FleetFixture, open_fleet, recipe

pytestmark = pytest.mark.anyio

HOURLY = "0 * * * *"
# The clock of a ground begins here.
NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


async def scheduled(fleet_fixture: FleetFixture, cron: str = HOURLY, **more: object) -> Schedule:
    text = str(more.pop("text", recipe(1)))
    asked = {"submission": Submission(text=text), "cron": cron, **more}
    return await fleet_fixture.fleet.schedules.add(NewSchedule.model_validate(asked), who=ME)


async def fires(fleet_fixture: FleetFixture) -> list[tuple[str, str, int]]:
    """Return when each was due, why it fired and how many it stands for, the oldest first."""
    page = await fleet_fixture.fleet.schedules.fires("small", limit=500)
    told: list[tuple[str, str, int]] = [(f"{one.due_at:%d %H:%M}", one.cause, one.missed) for one in page.items]
    return told[::-1]


async def made(fleet_fixture: FleetFixture) -> int:
    return len((await fleet_fixture.fleet.experiments.page(schedule="small", limit=500)).items)


async def pass_to(fleet_fixture: FleetFixture, **delta: float) -> None:
    """Let the wall clock go on, and look once."""
    fleet_fixture.clock.step(**delta)
    fleet_fixture.seconds += timedelta(**delta).total_seconds()
    await fleet_fixture.look()


async def test_a_schedule_makes_an_experiment_at_each_of_its_times_and_at_no_other(fleet_fixture: FleetFixture) -> None:
    found = await scheduled(fleet_fixture)
    assert found.next_at == NOON + timedelta(hours=1)
    for _ in range(3):
        await pass_to(fleet_fixture, minutes=59)
        await pass_to(fleet_fixture, minutes=1)
        await fleet_fixture.look()
    assert await fires(fleet_fixture) == [("01 13:00", "due", 0), ("01 14:00", "due", 0), ("01 15:00", "due", 0)]
    views = (await fleet_fixture.fleet.experiments.page(schedule=found.id)).items
    assert [view.experiment.schedule_id for view in views] == [found.id] * 3
    assert views[0].submitted_by == ME.name
    shown = await fleet_fixture.fleet.schedules.get("small")
    assert (shown.fires, shown.missed, shown.last_at) == (3, 0, NOON + timedelta(hours=3))
    fake_agent = await fleet_fixture.agent()
    assert (await fake_agent.lease()).job.experiment_id == views[-1].experiment.id


async def test_its_history_comes_in_pages(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture, "* * * * *")
    for _ in range(5):
        await pass_to(fleet_fixture, minutes=1)
    first = await fleet_fixture.fleet.schedules.fires("small", limit=2)
    rest = await fleet_fixture.fleet.schedules.fires("small", limit=5, cursor=first.next)
    dues = [one.due_at for one in (*first.items, *rest.items)]
    assert len(dues) == 5
    assert dues == sorted(dues, reverse=True)
    with pytest.raises(InputError, match="not a valid cursor"):
        await fleet_fixture.fleet.schedules.fires("small", cursor="x")


async def test_its_history_is_kept_for_90_days_and_its_last_fire_for_longer(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture, missed="skip")
    await pass_to(fleet_fixture, hours=1)
    await pass_to(fleet_fixture, hours=1)
    await pass_to(fleet_fixture, days=89)
    assert [cause for _, cause, _ in await fires(fleet_fixture)] == ["due", "due", "skipped", "due"]
    await pass_to(fleet_fixture, days=2)
    assert [cause for _, cause, _ in await fires(fleet_fixture)] == ["skipped", "due", "skipped", "due"]
    await fleet_fixture.fleet.schedules.pause("small", who=ME)
    await pass_to(fleet_fixture, days=200)
    assert len(await fires(fleet_fixture)) == 1
    assert (await fleet_fixture.fleet.schedules.get("small")).last_at == NOON + timedelta(days=91, hours=2)


async def test_paused_it_fires_nothing_and_resumed_it_does_not_make_up_for_it(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture, missed="all")
    assert (await fleet_fixture.fleet.schedules.pause("small", who=ME)).next_at is None
    with pytest.raises(ConflictError, match="paused already"):
        await fleet_fixture.fleet.schedules.pause("small", who=ME)
    await pass_to(fleet_fixture, hours=5, minutes=30)
    resumed = await fleet_fixture.fleet.schedules.resume("small", who=ME)
    assert resumed.next_at == NOON + timedelta(hours=6)
    await pass_to(fleet_fixture, minutes=30)
    assert await fires(fleet_fixture) == [("01 18:00", "due", 0)]


async def test_run_now_is_beside_its_times(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture)
    await fleet_fixture.fleet.schedules.pause("small", who=ME)
    one, two = [await fleet_fixture.fleet.schedules.run_now("small", who=ME) for _ in range(2)]
    assert one.experiment_id != two.experiment_id
    assert {one.cause, two.cause} == {"now"}
    await fleet_fixture.fleet.schedules.resume("small", who=ME)
    await pass_to(fleet_fixture, hours=1)
    assert await made(fleet_fixture) == 3


async def test_removed_it_leaves_its_experiments(fleet_fixture: FleetFixture) -> None:
    found = await scheduled(fleet_fixture)
    await pass_to(fleet_fixture, hours=1)
    await fleet_fixture.fleet.schedules.remove("small", who=ME)
    await pass_to(fleet_fixture, hours=1)
    assert len((await fleet_fixture.fleet.experiments.page(schedule=found.id)).items) == 1
    for ask in (fleet_fixture.fleet.schedules.get, fleet_fixture.fleet.schedules.fires):
        with pytest.raises(NotFoundError, match="no schedule 'small'"):
            await ask("small")


# What nobody was there for


@pytest.mark.parametrize(
    ("policy", "expected", "count"),
    [
        ("skip", [("01 16:00", "skipped", 3)], 0),
        ("once", [("01 16:00", "late", 3)], 1),
        ("all", [(f"01 {hour}:00", "late", 0) for hour in (13, 14, 15, 16)], 4),
    ],
)
async def test_what_was_due_while_no_server_was_up_follows_the_policy(
    fleet_fixture: FleetFixture, policy: str, expected: list[tuple[str, str, int]], count: int
) -> None:
    await scheduled(fleet_fixture, missed=policy)
    await pass_to(fleet_fixture, hours=4, minutes=30)
    assert await fires(fleet_fixture) == expected
    assert await made(fleet_fixture) == count
    assert (await fleet_fixture.fleet.schedules.get("small")).missed == 4 - count
    await pass_to(fleet_fixture, minutes=30)
    assert (await fires(fleet_fixture))[-1] == ("01 17:00", "due", 0)


async def test_a_server_that_comes_up_just_in_time_still_counts_as_in_time(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture, missed="skip")
    await pass_to(fleet_fixture, hours=1, seconds=50)
    assert await fires(fleet_fixture) == [("01 13:00", "due", 0)]


def test_of_a_year_of_missed_minutes_a_hundred_are_made_up_for() -> None:
    timing = Timing(cron="* * * * *", missed="all")
    found = schedules.list_turns(timing, NOON, NOON + timedelta(days=365))
    assert len(found) == schedules.MOST_MADE_UP
    assert found[0].missed == schedules.MOST_COUNTED - schedules.MOST_MADE_UP
    assert [one.next_at for one in found[:-1]] == [two.due_at for two in found[1:]]
    assert found[-1].next_at == NOON + timedelta(days=365, minutes=1)


async def test_a_clock_that_is_set_back_doubles_nothing_and_drops_nothing(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture)
    await pass_to(fleet_fixture, hours=2)
    await pass_to(fleet_fixture, hours=-1, minutes=-30)
    await pass_to(fleet_fixture, hours=1)
    assert await made(fleet_fixture) == 1
    await fleet_fixture.fleet.schedules.pause("small", who=ME)
    resumed = await fleet_fixture.fleet.schedules.resume("small", who=ME)
    assert resumed.next_at == NOON + timedelta(hours=2)  # which has fired
    await pass_to(fleet_fixture, hours=3)
    due = [one[0] for one in await fires(fleet_fixture)]
    assert len(due) == len(set(due))


async def test_a_clock_that_is_set_forward_is_as_if_no_server_had_been_up(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture)
    await pass_to(fleet_fixture, days=1)
    assert await fires(fleet_fixture) == [("02 12:00", "late", 23)]


# Once


async def test_of_two_servers_that_see_it_due_one_makes_the_experiment(pair: tuple[FleetFixture, FleetFixture]) -> None:
    one, two = pair
    await scheduled(one, "* * * * *")
    for _ in range(10):
        one.clock.step(minutes=1)  # which is the clock of both
        await asyncio.gather(one.look(), two.look())
    assert await made(one) == 10
    assert [cause for _, cause, _ in await fires(two)] == ["due"] * 10


async def test_what_fails_between_the_fire_and_its_experiment_is_undone_and_done_again(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scheduled(fleet_fixture)

    def fail(*_: object) -> None:
        raise StoreError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr(schedules, "store_plan", fail)
        with pytest.raises(StoreError, match="the power went"):
            await pass_to(fleet_fixture, hours=1)
    assert await fires(fleet_fixture) == []
    await fleet_fixture.look()
    assert await fires(fleet_fixture) == [("01 13:00", "due", 0)]
    assert await made(fleet_fixture) == 1


async def test_a_server_that_was_killed_is_followed_by_one_that_fires(home: Home, url: str) -> None:
    killed = open_fleet(home, url)
    dead = await killed.__aenter__()
    await scheduled(dead)
    async with open_fleet(home, url) as fleet_fixture:
        await pass_to(fleet_fixture, hours=1)
        assert await fires(fleet_fixture) == [("01 13:00", "due", 0)]
    await killed.__aexit__(None, None, None)


# With a recipe


OWN = recipe(1) + "schedule: {cron: '30 3 * * *', zone: Europe/Paris, missed: skip}\n"


async def test_a_recipe_that_brings_its_schedule_runs_now_and_then_by_it(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(OWN)
    found = await fleet_fixture.fleet.schedules.get("small")
    assert view.experiment.schedule_id == found.id
    assert found.timing == Timing(cron="30 3 * * *", zone="Europe/Paris", missed="skip")
    assert found.next_at == datetime(2025, 6, 2, 1, 30, tzinfo=UTC)
    await pass_to(fleet_fixture, hours=13, minutes=30)
    assert await made(fleet_fixture) == 2
    assert (await fleet_fixture.fleet.schedules.get("small")).id == found.id


async def test_submitted_again_it_takes_the_place_of_its_schedule(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(OWN)
    await fleet_fixture.submit(OWN.replace("30 3", "45 4"))
    (found,) = (await fleet_fixture.fleet.schedules.page()).items
    assert found.timing.cron == "45 4 * * *"
    assert await made(fleet_fixture) == 2


async def test_a_rerun_makes_no_schedule(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(OWN)
    await fleet_fixture.fleet.schedules.remove("small", who=ME)
    again, _ = await fleet_fixture.fleet.experiments.rerun(view.experiment.id, who=ME)
    assert again.experiment.schedule_id is None
    assert (await fleet_fixture.fleet.schedules.page()).items == ()


async def test_options_beat_what_the_recipe_says(fleet_fixture: FleetFixture) -> None:
    found = await scheduled(fleet_fixture, "@daily", text=OWN, name="other")
    assert found.name == "other"
    assert found.timing == Timing(cron="@daily", zone="Europe/Paris", missed="skip")


# What is refused


async def test_a_name_is_taken_once(fleet_fixture: FleetFixture) -> None:
    await scheduled(fleet_fixture)
    with pytest.raises(ConflictError, match="'small' exists already"):
        await scheduled(fleet_fixture)


async def test_without_a_time_it_is_refused(local: FleetFixture) -> None:
    with pytest.raises(InputError, match="no time is given"):
        await local.fleet.schedules.add(NewSchedule(submission=Submission(text=recipe(1))), who=ME)


async def test_a_recipe_that_is_wrong_is_refused_when_it_is_scheduled(local: FleetFixture) -> None:
    with pytest.raises(RecipeError):
        await scheduled(local, text="name: x\n")


async def test_a_recipe_that_has_become_wrong_is_told_in_the_history(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scheduled(fleet_fixture)

    def fail(*_: object, **__: object) -> None:
        raise InputError("no engine is called 'null'")

    with monkeypatch.context() as patched:
        patched.setattr(schedules, "plan_experiment", fail)
        await pass_to(fleet_fixture, hours=1)
    (fire,) = (await fleet_fixture.fleet.schedules.fires("small")).items
    assert (fire.cause, fire.reason, fire.experiment_id) == ("failed", "no engine is called 'null'", None)
    assert (await fleet_fixture.fleet.schedules.get("small")).missed == 1
    await pass_to(fleet_fixture, hours=1)
    assert await made(fleet_fixture) == 1
