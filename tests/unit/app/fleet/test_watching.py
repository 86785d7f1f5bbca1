"""Experiments watched: how one stands, then what changes, then the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from prony.app.fleet import events
from prony.app.fleet.events import ChangeNotice
from prony.errors import NotFoundError, StoreError
from prony.model.event import Event
from prony.model.queue import Modification, Submission
from prony.store.home import Home

from .fleet_fixture import ME, FleetFixture, open_fleet, recipe

pytestmark = pytest.mark.anyio


class Seen:
    """What one watcher was told, read as it comes."""

    def __init__(self, source: AsyncIterator[ChangeNotice]) -> None:
        self._source = source

    async def next(self) -> tuple[str, dict[str, Any]]:
        async with asyncio.timeout(120):
            notice = await anext(self._source)
        return notice.event, json.loads(notice.data)

    async def jobs_until(self, state: str) -> list[tuple[str, str]]:
        """Return the states of jobs in the order in which they were told, until the experiment is in a state."""
        told: list[tuple[str, str]] = []
        while True:
            event, data = await self.next()
            if event == "experiment" and data["experiment"]["state"] == state:
                return told
            if event == "job":
                told.append((data["id"], data["state"]))

    async def has_ended(self) -> bool:
        async with asyncio.timeout(120):
            return await anext(self._source, None) is None


@asynccontextmanager
async def watching(fleet_fixture: FleetFixture, experiment_id: str) -> AsyncIterator[tuple[Seen, dict[str, Any]]]:
    source = fleet_fixture.fleet.events.watch(experiment_id)
    seen = Seen(source)
    event, snapshot = await seen.next()
    assert event == "snapshot"
    try:
        yield seen, snapshot
    finally:
        await source.aclose()  # type: ignore[attr-defined]


async def test_a_watcher_sees_how_it_stands_then_every_change_then_the_end(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    first = await fake_agent.lease()
    async with watching(fleet_fixture, view.experiment.id) as (seen, snapshot):
        assert snapshot["experiment"]["experiment"]["state"] == "running"
        assert [job["state"] for job in snapshot["jobs"]] == ["leased", "waiting"]
        done = await fake_agent.finish(first, go_on=True)
        assert done.lease is not None
        await fake_agent.finish(done.lease)
        told = await seen.jobs_until("complete")
        for job_id in (first.job.id, done.lease.job.id):
            assert [state for one, state in told if one == job_id][-1] == "complete"
        assert await seen.has_ended()
    assert fleet_fixture.fleet.events.watchers == {}


async def test_an_experiment_that_begins_to_run_is_told(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    async with watching(fleet_fixture, view.experiment.id) as (seen, snapshot):
        assert snapshot["jobs"][0]["reason"] == "an agent is about to get it"
        await fake_agent.lease()
        assert await seen.jobs_until("running") in ([], [(view.experiment.id + "-001", "leased")])


async def test_progress_reaches_who_watches(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        await fake_agent.progress(lease, events=(Event(kind="phase", job_id="whatever", phase="measure", done=3),))
        while (told := await seen.next())[0] != "progress":
            pass
        assert told[1] == {"kind": "phase", "job_id": lease.job.id, "phase": "measure", "done": 3}


async def test_what_has_ended_is_shown_and_that_is_all(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    async with watching(fleet_fixture, view.experiment.id) as (seen, snapshot):
        assert snapshot["experiment"]["experiment"]["state"] == "cancelled"
        assert await seen.has_ended()


async def test_what_is_retried_can_be_watched_again(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    await fleet_fixture.fleet.experiments.retry(view.experiment.id, who=ME)
    async with watching(fleet_fixture, view.experiment.id) as (seen, snapshot):
        assert snapshot["experiment"]["experiment"]["state"] == "running"
        await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
        await seen.jobs_until("cancelled")
        assert await seen.has_ended()


async def test_nothing_can_be_watched_that_is_not_there(fleet_fixture: FleetFixture) -> None:
    with pytest.raises(NotFoundError):
        await anext(fleet_fixture.fleet.events.watch("nothing"))
    assert fleet_fixture.fleet.events.watchers == {}


async def test_who_watches_what_is_deleted_sees_it_end(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        await fleet_fixture.fleet.experiments.delete(view.experiment.id, who=ME)
        assert await seen.has_ended()


async def test_who_watches_what_gets_another_recipe_goes_on(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(3))
    job = (await fleet_fixture.jobs(view.experiment.id))[2]
    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        await fleet_fixture.fleet.jobs.cancel(job.id, who=ME)
        await fleet_fixture.fleet.experiments.modify(
            view.experiment.id, Modification(submission=Submission(text=recipe(1))), who=ME
        )
        await fleet_fixture.settle()
        await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
        await seen.jobs_until("cancelled")
        assert await seen.has_ended()


async def test_a_watcher_that_does_not_read_is_cut_off_and_the_others_are_not(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_MOST_NOTICES", 5)
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    async with (
        watching(fleet_fixture, view.experiment.id) as (slow, _),
        watching(fleet_fixture, view.experiment.id) as (quick, _),
    ):
        for number in range(12):
            await fake_agent.progress(lease, events=(Event(kind="phase", job_id="x", done=number),))
            await fleet_fixture.fleet.health.check()  # on PostgreSQL it travels through the database
            await fleet_fixture.settle()
            while (told := await quick.next())[0] != "progress":
                pass
            assert told[1].get("done", 0) == number
        told_late = 0
        while not await slow.has_ended():
            told_late += 1
        assert told_late == 5
        await fake_agent.finish(lease)
        await quick.jobs_until("complete")
        assert await quick.has_ended()


async def test_the_newest_state_of_a_job_is_told_last(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        for _ in range(6):
            await fake_agent.hand_back(await fake_agent.lease())
        lease = await fake_agent.lease()
        await fake_agent.finish(lease)
        told = await seen.jobs_until("complete")
        assert told[-1] == (lease.job.id, "complete")
        assert [state for _, state in told].count("complete") <= 2


async def test_a_look_that_takes_long_is_not_told_after_a_later_one(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2))
    fake_agent, ask, may_return = await fleet_fixture.agent(), fleet_fixture.fleet.context.read, asyncio.Event()
    looks: list[object] = []

    async def slow(question: Any) -> Any:
        looks.append(question)
        is_first = len(looks) == 1
        found = await ask(question)
        if is_first:
            await may_return.wait()
        return found

    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        fleet_fixture.fleet.context.read = slow  # type: ignore[method-assign]
        lease = await fake_agent.poll(wait_s=30)
        await fleet_fixture.until(lambda: bool(looks))
        assert lease is not None
        await fake_agent.finish(lease)
        fleet_fixture.fleet.context.read = ask  # type: ignore[method-assign]
        may_return.set()
        await fleet_fixture.settle()
        await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
        told = [state for job_id, state in await seen.jobs_until("partial") if job_id == lease.job.id]
    assert told[-1] == "complete"


async def test_where_it_cannot_be_read_what_changed_the_watcher_is_to_ask_anew(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await fleet_fixture.submit(recipe(1))

    async def away(question: object) -> None:
        raise StoreError("the database is away")

    async with watching(fleet_fixture, view.experiment.id) as (seen, _):
        with monkeypatch.context() as patched:
            patched.setattr(fleet_fixture.fleet.context, "read", away)
            await fleet_fixture.fleet.context.write(
                lambda transaction: transaction.publish("job", f"{view.experiment.id}/")
            )
            assert await seen.has_ended()
            await fleet_fixture.settle()
    async with watching(fleet_fixture, view.experiment.id) as (_, snapshot):
        assert snapshot["experiment"]["experiment"]["state"] == "pending"


async def test_stopping_ends_every_watch_and_every_wait(home: Home, url: str) -> None:
    async with open_fleet(home, url) as fleet_fixture:
        view = await fleet_fixture.submit(recipe(1, where="{os: windows}"))
        fake_agent = await fleet_fixture.agent()
        source = fleet_fixture.fleet.events.watch(view.experiment.id)
        await anext(source)
        poll = asyncio.create_task(fake_agent.poll(wait_s=30))
        await fleet_fixture.until(lambda: fake_agent.id in fleet_fixture.fleet.state.waiters)
    assert await poll is None
    assert await Seen(source).has_ended()
