"""Jobs that failed: which are tried again, when, by whom, and what is left when no try is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prony.errors import ConflictError
from prony.model.queue import JobBatch
from prony.model.result import Failure, Repetition

from .ground import ME, SILENCE_S, Ground, Hand, recipe
from .parcels import AT, OURS, SUT

pytestmark = pytest.mark.anyio


async def failing(ground: Ground, hand: Hand, failure: Failure = OURS) -> str:
    """Have an agent fail at the next job; return which one it was."""
    lease = await hand.lease()
    await hand.finish(lease, "failed", failure=failure)
    return lease.job.id


@pytest.mark.parametrize("whose", ["prony", "capacity"])
async def test_what_failed_around_the_model_is_tried_again_after_a_pause(ground: Ground, whose: str) -> None:
    await ground.submit(recipe(1))
    hand = await ground.agent()
    job_id = await failing(ground, hand, OURS.model_copy(update={"whose": whose}))
    job = await ground.job(job_id)
    assert (job.state, job.reason, job.failure) == ("waiting", OURS.message, None)
    assert job.not_before == ground.clock.now() + timedelta(seconds=2)
    assert await hand.poll() is None
    await ground.pass_time(2)
    lease = await hand.lease()
    assert (lease.job.id, lease.attempt) == (job_id, 2)
    await hand.finish(lease)
    assert await ground.tried(job_id) == [(1, "a", "failed"), (2, "a", "complete")]
    assert (await ground.job(job_id)).reason == ""


@pytest.mark.parametrize("whose", ["sut", "input"])
async def test_a_failing_model_or_a_wrong_recipe_is_the_result(ground: Ground, whose: str) -> None:
    view = await ground.submit(recipe(1))
    hand = await ground.agent()
    job_id = await failing(ground, hand, SUT.model_copy(update={"whose": whose}))
    job = await ground.job(job_id)
    assert (job.state, job.reason) == ("failed", SUT.message)
    assert job.failure is not None
    assert job.failure.code == "sut"
    assert await ground.state(view.experiment.id) == "failed"


async def test_a_failure_of_the_last_repetition_is_the_jobs(ground: Ground) -> None:
    await ground.submit(recipe(1))
    hand = await ground.agent()
    lease = await hand.lease()
    bad = Repetition(index=0, started_at=AT, state="failed", failure=SUT)
    await hand.finish(lease, "failed", repetitions=(bad,))
    assert (await ground.job(lease.job.id)).reason == SUT.message


async def test_pauses_grow_with_failures_and_not_with_what_was_handed_back(ground: Ground) -> None:
    await ground.submit(recipe(1, attempts=5))
    hand = await ground.agent()
    pauses = []
    for _ in range(4):
        for _ in range(3):
            await hand.hand_back(await hand.lease())
        job_id = await failing(ground, hand)
        due = (await ground.job(job_id)).not_before
        pauses.append((due or datetime.max.replace(tzinfo=UTC)) - ground.clock.now())
        await ground.pass_time(pauses[-1].total_seconds())
    assert [pause.total_seconds() for pause in pauses] == [2, 4, 8, 16]
    await failing(ground, hand)
    assert await ground.job_state(job_id) == "failed"
    assert len(await ground.tried(job_id)) == 17


async def test_a_job_that_was_handed_back_for_ever_can_still_be_lost(ground: Ground) -> None:
    await ground.submit(recipe(1))
    hand = await ground.agent()
    lease = await hand.lease()
    await ground.fleet.context.write(
        lambda transaction: transaction.connection.exec_driver_sql("UPDATE queue SET attempt = 5000")
    )
    await ground.pass_time(SILENCE_S)
    assert await ground.job_state(lease.job.id) == "waiting"


async def test_another_agent_is_preferred_to_the_one_that_failed(ground: Ground) -> None:
    await ground.submit(recipe(1))
    one, two = await ground.agent("one"), await ground.agent("two")
    job_id = await failing(ground, one)
    await ground.pass_time(10)
    assert await one.poll() is None
    await ground.look()
    assert (await two.lease()).job.id == job_id


@pytest.mark.parametrize("how", ["drained", "other", "lost"])
async def test_the_one_that_failed_tries_again_where_no_other_could(ground: Ground, how: str) -> None:
    await ground.submit(recipe(1))
    one = await ground.agent("one")
    two = await ground.agent("two", facts={"os": "linux"} if how == "other" else None)
    job_id = await failing(ground, one)
    if how == "drained":
        await ground.fleet.agents.drain(two.id, who=ME)
    if how == "lost":
        for _ in range(12):
            await one.beat()
            await ground.pass_time(10)
        assert (await two.shown()).state == "lost"
    await ground.pass_time(10)
    assert (await one.lease()).job.id == job_id


async def test_a_job_that_one_agent_failed_wakes_the_other_that_waits(ground: Ground) -> None:
    await ground.submit(recipe(1))
    one, two = await ground.agent("one"), await ground.agent("two")
    job_id = await failing(ground, one)
    async with ground.waiting(one, two) as (_, poll):
        await ground.pass_time(20)
        await ground.until(poll.done)
        lease = await poll
    assert lease is not None
    assert lease.job.id == job_id


async def test_a_job_whose_every_try_was_lost_has_failed(ground: Ground) -> None:
    view = await ground.submit(recipe(1, attempts=2))
    hand = await ground.agent()
    for _ in range(2):
        lease = await hand.lease()
        await ground.pass_time(SILENCE_S + 10)
    job = await ground.job(lease.job.id)
    assert job.state == "failed"
    assert job.failure is not None
    assert (job.failure.code, job.failure.whose) == ("lease_lost", "prony")
    assert await ground.state(view.experiment.id) == "failed"
    assert await hand.poll() is None


async def test_part_of_a_result_is_tried_again_and_stands_if_nothing_better_comes(ground: Ground) -> None:
    await ground.submit(recipe(1, attempts=2))
    hand = await ground.agent()
    lease = await hand.lease()
    await hand.finish(lease, "partial")
    assert await ground.job_state(lease.job.id) == "waiting"
    await ground.pass_time(10)
    again = await hand.lease()
    await hand.finish(again, "failed", failure=OURS)
    job = await ground.job(lease.job.id)
    assert (job.state, job.reason) == ("failed", OURS.message)
    assert (await ground.fleet.results.get(job.id)).result.state == "partial"


# By a person


async def test_retrying_lets_a_job_wait_again_with_all_its_tries(ground: Ground) -> None:
    view = await ground.submit(recipe(1, attempts=2))
    hand = await ground.agent()
    job_id = await failing(ground, hand, SUT)
    assert await ground.state(view.experiment.id) == "failed"
    job = await ground.fleet.jobs.retry(job_id, who=ME)
    assert (job.state, job.failure, job.ended_at) == ("waiting", None, None)
    shown = (await ground.fleet.experiments.get(view.experiment.id)).experiment
    assert (shown.state, shown.ended_at) == ("running", None)
    assert await failing(ground, hand) == job_id
    assert await ground.job_state(job_id) == "waiting"
    await ground.pass_time(10)
    lease = await hand.lease()
    assert lease.attempt == 3
    await hand.finish(lease)
    assert await ground.state(view.experiment.id) == "complete"


async def test_only_what_ended_without_a_whole_result_is_tried_again(ground: Ground) -> None:
    view = await ground.submit(recipe(3))
    hand = await ground.agent()
    done = await hand.lease()
    await hand.finish(done)
    running = await hand.lease()
    waiting = next(job.id for job in await ground.jobs(view.experiment.id) if job.state == "waiting")
    for job_id in (done.job.id, running.job.id, waiting):
        with pytest.raises(ConflictError):
            await ground.fleet.jobs.retry(job_id, who=ME)


async def test_an_experiment_is_retried_where_it_failed_and_nowhere_else(ground: Ground) -> None:
    view = await ground.submit(recipe(4, attempts=1))
    hand = await ground.agent()
    experiment_id = view.experiment.id
    await hand.finish(await hand.lease())
    await failing(ground, hand, SUT)
    await hand.finish(await hand.lease(), "partial")
    await ground.fleet.experiments.cancel(experiment_id, who=ME)
    assert await ground.counts(experiment_id) == {"complete": 1, "failed": 1, "partial": 1, "cancelled": 1}
    again = await ground.fleet.experiments.retry(experiment_id, who=ME)
    assert again.experiment.state == "running"
    assert await ground.counts(experiment_id) == {"complete": 1, "waiting": 3}
    for _ in range(3):
        await hand.finish(await hand.lease())
    assert await ground.state(experiment_id) == "complete"
    with pytest.raises(ConflictError):
        await ground.fleet.experiments.retry(experiment_id, who=ME)


async def test_a_batch_changes_what_it_can_and_says_why_it_left_the_rest(ground: Ground) -> None:
    view = await ground.submit(recipe(4))
    hand = await ground.agent()
    done = await hand.lease()
    await hand.finish(done)
    running = await hand.lease()
    ids = (*(job.id for job in await ground.jobs(view.experiment.id)), "nothing")
    answer = await ground.fleet.jobs.batch(JobBatch(action="cancel", ids=ids), who=ME)
    assert set(answer.skipped) == {done.job.id, "nothing"}
    assert len(answer.changed) == 3
    assert await ground.counts(view.experiment.id) == {"complete": 1, "leased": 1, "cancelled": 2}
    assert (await hand.beat(running.id)).cancel == (running.id,)
    wanted = JobBatch(action="retry", experiment=view.experiment.id, state="cancelled")
    assert len((await ground.fleet.jobs.batch(wanted, who=ME)).changed) == 2
    with pytest.raises(Exception, match="which jobs"):
        await ground.fleet.jobs.batch(JobBatch(action="retry"), who=ME)
