"""Jobs that failed: which are tried again, when, by whom, and what is left when no try is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prony.errors import ConflictError
from prony.model.queue import JobBatch
from prony.model.result import Failure, Repetition

from .fleet_fixture import ME, SILENCE_S, FakeAgent, FleetFixture, recipe
from .parcels import AT, OURS, SUT

pytestmark = pytest.mark.anyio


async def failing(fleet_fixture: FleetFixture, fake_agent: FakeAgent, failure: Failure = OURS) -> str:
    """Have an agent fail at the next job; return which one it was."""
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, "failed", failure=failure)
    return lease.job.id


@pytest.mark.parametrize("whose", ["prony", "capacity"])
async def test_what_failed_around_the_model_is_tried_again_after_a_pause(
    fleet_fixture: FleetFixture, whose: str
) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    job_id = await failing(fleet_fixture, fake_agent, OURS.model_copy(update={"whose": whose}))
    job = await fleet_fixture.job(job_id)
    assert (job.state, job.reason, job.failure) == ("waiting", OURS.message, None)
    assert job.not_before == fleet_fixture.clock.now() + timedelta(seconds=2)
    assert await fake_agent.poll() is None
    await fleet_fixture.pass_time(2)
    lease = await fake_agent.lease()
    assert (lease.job.id, lease.attempt) == (job_id, 2)
    await fake_agent.finish(lease)
    assert await fleet_fixture.tried(job_id) == [(1, "a", "failed"), (2, "a", "complete")]
    assert (await fleet_fixture.job(job_id)).reason == ""


@pytest.mark.parametrize("whose", ["sut", "input"])
async def test_a_failing_model_or_a_wrong_recipe_is_the_result(fleet_fixture: FleetFixture, whose: str) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    job_id = await failing(fleet_fixture, fake_agent, SUT.model_copy(update={"whose": whose}))
    job = await fleet_fixture.job(job_id)
    assert (job.state, job.reason) == ("failed", SUT.message)
    assert job.failure is not None
    assert job.failure.code == "sut"
    assert await fleet_fixture.state(view.experiment.id) == "failed"


async def test_a_failure_of_the_last_repetition_is_the_jobs(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    bad = Repetition(index=0, started_at=AT, state="failed", failure=SUT)
    await fake_agent.finish(lease, "failed", repetitions=(bad,))
    assert (await fleet_fixture.job(lease.job.id)).reason == SUT.message


async def test_pauses_grow_with_failures_and_not_with_what_was_handed_back(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, attempts=5))
    fake_agent = await fleet_fixture.agent()
    pauses = []
    for _ in range(4):
        for _ in range(3):
            await fake_agent.hand_back(await fake_agent.lease())
        job_id = await failing(fleet_fixture, fake_agent)
        due = (await fleet_fixture.job(job_id)).not_before
        pauses.append((due or datetime.max.replace(tzinfo=UTC)) - fleet_fixture.clock.now())
        await fleet_fixture.pass_time(pauses[-1].total_seconds())
    assert [pause.total_seconds() for pause in pauses] == [2, 4, 8, 16]
    await failing(fleet_fixture, fake_agent)
    assert await fleet_fixture.job_state(job_id) == "failed"
    assert len(await fleet_fixture.tried(job_id)) == 17


async def test_a_job_that_was_handed_back_for_ever_can_still_be_lost(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.fleet.context.write(
        lambda transaction: transaction.connection.exec_driver_sql("UPDATE queue SET attempt = 5000")
    )
    await fleet_fixture.pass_time(SILENCE_S)
    assert await fleet_fixture.job_state(lease.job.id) == "waiting"


async def test_another_agent_is_preferred_to_the_one_that_failed(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    job_id = await failing(fleet_fixture, one)
    await fleet_fixture.pass_time(10)
    assert await one.poll() is None
    await fleet_fixture.look()
    assert (await two.lease()).job.id == job_id


@pytest.mark.parametrize("how", ["drained", "other", "lost"])
async def test_the_one_that_failed_tries_again_where_no_other_could(fleet_fixture: FleetFixture, how: str) -> None:
    await fleet_fixture.submit(recipe(1))
    one = await fleet_fixture.agent("one")
    two = await fleet_fixture.agent("two", facts={"os": "linux"} if how == "other" else None)
    job_id = await failing(fleet_fixture, one)
    if how == "drained":
        await fleet_fixture.fleet.agents.drain(two.id, who=ME)
    if how == "lost":
        for _ in range(12):
            await one.beat()
            await fleet_fixture.pass_time(10)
        assert (await two.shown()).state == "lost"
    await fleet_fixture.pass_time(10)
    assert (await one.lease()).job.id == job_id


async def test_a_job_that_one_agent_failed_wakes_the_other_that_waits(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    job_id = await failing(fleet_fixture, one)
    async with fleet_fixture.waiting(one, two) as (_, poll):
        await fleet_fixture.pass_time(20)
        await fleet_fixture.until(poll.done)
        lease = await poll
    assert lease is not None
    assert lease.job.id == job_id


async def test_a_job_whose_every_try_was_lost_has_failed(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1, attempts=2))
    fake_agent = await fleet_fixture.agent()
    for _ in range(2):
        lease = await fake_agent.lease()
        await fleet_fixture.pass_time(SILENCE_S + 10)
    job = await fleet_fixture.job(lease.job.id)
    assert job.state == "failed"
    assert job.failure is not None
    assert (job.failure.code, job.failure.whose) == ("lease_lost", "prony")
    assert await fleet_fixture.state(view.experiment.id) == "failed"
    assert await fake_agent.poll() is None


async def test_part_of_a_result_is_tried_again_and_stands_if_nothing_better_comes(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, attempts=2))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, "partial")
    assert await fleet_fixture.job_state(lease.job.id) == "waiting"
    await fleet_fixture.pass_time(10)
    again = await fake_agent.lease()
    await fake_agent.finish(again, "failed", failure=OURS)
    job = await fleet_fixture.job(lease.job.id)
    assert (job.state, job.reason) == ("failed", OURS.message)
    assert (await fleet_fixture.fleet.results.get(job.id)).result.state == "partial"


# By a person


async def test_retrying_lets_a_job_wait_again_with_all_its_tries(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1, attempts=2))
    fake_agent = await fleet_fixture.agent()
    job_id = await failing(fleet_fixture, fake_agent, SUT)
    assert await fleet_fixture.state(view.experiment.id) == "failed"
    job = await fleet_fixture.fleet.jobs.retry(job_id, who=ME)
    assert (job.state, job.failure, job.ended_at) == ("waiting", None, None)
    shown = (await fleet_fixture.fleet.experiments.get(view.experiment.id)).experiment
    assert (shown.state, shown.ended_at) == ("running", None)
    assert await failing(fleet_fixture, fake_agent) == job_id
    assert await fleet_fixture.job_state(job_id) == "waiting"
    await fleet_fixture.pass_time(10)
    lease = await fake_agent.lease()
    assert lease.attempt == 3
    await fake_agent.finish(lease)
    assert await fleet_fixture.state(view.experiment.id) == "complete"


async def test_only_what_ended_without_a_whole_result_is_tried_again(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(3))
    fake_agent = await fleet_fixture.agent()
    done = await fake_agent.lease()
    await fake_agent.finish(done)
    running = await fake_agent.lease()
    waiting = next(job.id for job in await fleet_fixture.jobs(view.experiment.id) if job.state == "waiting")
    for job_id in (done.job.id, running.job.id, waiting):
        with pytest.raises(ConflictError):
            await fleet_fixture.fleet.jobs.retry(job_id, who=ME)


async def test_an_experiment_is_retried_where_it_failed_and_nowhere_else(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(4, attempts=1))
    fake_agent = await fleet_fixture.agent()
    experiment_id = view.experiment.id
    await fake_agent.finish(await fake_agent.lease())
    await failing(fleet_fixture, fake_agent, SUT)
    await fake_agent.finish(await fake_agent.lease(), "partial")
    await fleet_fixture.fleet.experiments.cancel(experiment_id, who=ME)
    assert await fleet_fixture.counts(experiment_id) == {"complete": 1, "failed": 1, "partial": 1, "cancelled": 1}
    again = await fleet_fixture.fleet.experiments.retry(experiment_id, who=ME)
    assert again.experiment.state == "running"
    assert await fleet_fixture.counts(experiment_id) == {"complete": 1, "waiting": 3}
    for _ in range(3):
        await fake_agent.finish(await fake_agent.lease())
    assert await fleet_fixture.state(experiment_id) == "complete"
    with pytest.raises(ConflictError):
        await fleet_fixture.fleet.experiments.retry(experiment_id, who=ME)


async def test_a_batch_changes_what_it_can_and_says_why_it_left_the_rest(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(4))
    fake_agent = await fleet_fixture.agent()
    done = await fake_agent.lease()
    await fake_agent.finish(done)
    running = await fake_agent.lease()
    ids = (*(job.id for job in await fleet_fixture.jobs(view.experiment.id)), "nothing")
    answer = await fleet_fixture.fleet.jobs.batch(JobBatch(action="cancel", ids=ids), who=ME)
    assert set(answer.skipped) == {done.job.id, "nothing"}
    assert len(answer.changed) == 3
    assert await fleet_fixture.counts(view.experiment.id) == {"complete": 1, "leased": 1, "cancelled": 2}
    assert (await fake_agent.beat(running.id)).cancel == (running.id,)
    wanted = JobBatch(action="retry", experiment=view.experiment.id, state="cancelled")
    assert len((await fleet_fixture.fleet.jobs.batch(wanted, who=ME)).changed) == 2
    with pytest.raises(Exception, match="no jobs were named"):
        await fleet_fixture.fleet.jobs.batch(JobBatch(action="retry"), who=ME)
