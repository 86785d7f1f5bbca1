"""Which job goes to whom: by what a device has, by priority, by fair share; and why one waits."""

from __future__ import annotations

from collections import Counter

import pytest

from prony.model.agent import Capabilities
from prony.model.queue import JobBatch, Modification, Submission

from .ground import FACTS, ME, SILENCE_S, Ground, Hand, recipe

pytestmark = pytest.mark.anyio

WINDOWS = {**FACTS, "os": "windows"}


async def take(hand: Hand) -> str:
    """Do the next job; return which experiment's it was."""
    lease = await hand.lease()
    await hand.finish(lease)
    return lease.job.name


async def reasons(ground: Ground, experiment_id: str) -> set[str]:
    """Return why jobs wait, as it is told by job; by lot it must be the same."""
    await ground.settle()
    told = {job.reason for job in await ground.jobs(experiment_id) if job.state == "waiting"}
    lots = {
        view.reason for view in (await ground.fleet.queries.queue()).lots if view.lot.experiment_id == experiment_id
    }
    assert told == lots
    return told


# Whose turn


async def test_the_higher_priority_goes_first_and_may_be_changed_while_it_waits(ground: Ground) -> None:
    hand = await ground.agent()
    low = await ground.submit(recipe(2, "low", priority=-5))
    await ground.submit(recipe(2, "middle"))
    await ground.submit(recipe(2, "high"), priority=5)
    assert [await take(hand) for _ in range(3)] == ["high", "high", "middle"]
    await ground.fleet.experiments.modify(low.experiment.id, Modification(priority=9), who=ME)
    assert [await take(hand) for _ in range(3)] == ["low", "low", "middle"]


async def test_equals_share_the_devices_whatever_their_sizes(ground: Ground) -> None:
    await ground.submit(recipe(20, "large"))
    ground.clock.step(seconds=1)
    await ground.submit(recipe(4, "small"))
    hands = [await ground.agent(f"a{number}") for number in range(4)]
    leases = [await hand.lease() for hand in hands]
    assert Counter(lease.job.name for lease in leases) == {"large": 2, "small": 2}
    for hand, lease in zip(hands, leases, strict=True):
        await hand.finish(lease)
    leases = [await hand.lease() for hand in hands]
    assert Counter(lease.job.name for lease in leases) == {"large": 2, "small": 2}


async def test_on_a_single_device_they_take_turns(ground: Ground) -> None:
    hand = await ground.agent()
    await ground.submit(recipe(6, "large"))
    ground.clock.step(seconds=1)
    await ground.submit(recipe(2, "small"))
    assert [await take(hand) for _ in range(6)] == ["large", "small", "large", "small", "large", "large"]


async def test_jobs_of_one_lot_go_in_the_order_of_the_matrix(ground: Ground) -> None:
    hand = await ground.agent()
    view = await ground.submit(recipe(5))
    order = [job.id for job in await ground.jobs(view.experiment.id)]
    taken = []
    for _ in order:
        lease = await hand.lease()
        taken.append(lease.job.id)
        await hand.finish(lease)
    assert taken == order


# Who fits


async def test_a_job_goes_only_to_a_device_that_has_what_it_wants(ground: Ground) -> None:
    await ground.submit(recipe(1, where="{os: windows}"))
    linux = await ground.agent("linux")
    assert await linux.poll() is None
    windows = await ground.agent("windows", facts=WINDOWS)
    assert await windows.lease()


async def test_an_agent_that_comes_to_fit_while_it_waits_is_given_the_job(ground: Ground) -> None:
    await ground.submit(recipe(1, where="{os: windows}"))
    hand = await ground.agent()
    async with ground.waiting(hand) as (poll,):
        await ground.fleet.agents.set_capabilities(hand.id, Capabilities(facts=WINDOWS), who=ME)
        assert await poll is not None


async def test_each_device_runs_every_job(ground: Ground) -> None:
    fitting = [await ground.agent(name) for name in ("one", "two", "three")]
    await ground.agent("windows", facts={"os": "windows"})
    twin = await ground.agent("twin", device="device-one")
    view = await ground.submit(recipe(2, devices="each"))
    assert view.experiment.job_count == 6
    assert await twin.poll() is None
    for hand in fitting:
        cells = []
        for _ in range(2):
            lease = await hand.lease()
            cells.append(lease.job.cell["workload.batch_size"])
            await hand.finish(lease)
        assert cells == [1, 2]
        assert await hand.poll() is None
    assert await ground.state(view.experiment.id) == "complete"


async def test_each_means_the_devices_that_could_be_given_work(ground: Ground) -> None:
    draining, lost = await ground.agent("draining"), await ground.agent("lost")
    await ground.fleet.agents.drain(draining.id, who=ME)
    for _ in range(12):
        await draining.beat()
        await ground.pass_time(10)
    assert (await lost.shown()).state == "lost"
    await ground.agent("good")
    view = await ground.submit(recipe(2, devices="each"))
    assert view.experiment.job_count == 2


async def test_each_without_any_device_waits_for_the_first_who_fits_and_says_why(ground: Ground) -> None:
    await ground.agent("linux")
    view = await ground.submit(recipe(2, devices="each", where="{os: windows}"))
    assert view.experiment.job_count == 2
    assert await reasons(ground, view.experiment.id) == {"no agent fits: linux lacks os windows (has linux)"}
    windows = await ground.agent("windows", facts=WINDOWS)
    assert await windows.lease()


async def test_a_job_that_is_for_one_device_waits_for_it_and_says_so(ground: Ground) -> None:
    hand = await ground.agent("one")
    await ground.agent("two")
    view = await ground.submit(recipe(2, devices="each"))
    mine = {lot.lot.id: lot.lot.agent_id for lot in (await ground.fleet.queries.queue()).lots}
    assert set(mine.values()) == {hand.id, *(set(mine.values()) - {hand.id})}
    lease = await hand.lease()
    told = {view.lot.agent_id: view.reason for view in (await ground.fleet.queries.queue()).lots}
    assert told[hand.id] == "agent one is busy"
    await hand.finish(lease)
    await ground.fleet.agents.drain(hand.id, who=ME)
    assert "agent one is draining" in await reasons(ground, view.experiment.id)
    await ground.fleet.agents.reset(hand.id, who=ME)
    await ground.fleet.agents.set_capabilities(hand.id, Capabilities(facts={**FACTS, "kinds": ("script",)}), who=ME)
    assert "agent one fits no longer: kinds model (has script)" in await reasons(ground, view.experiment.id)
    await ground.fleet.agents.remove(hand.id, who=ME)
    removed = f"agent {hand.id} was removed: cancel it, or submit again"
    assert removed in await reasons(ground, view.experiment.id)


# Why it waits


async def test_a_job_says_at_once_why_it_waits(ground: Ground) -> None:
    view = await ground.submit(recipe(2))
    assert await reasons(ground, view.experiment.id) == {"no agent is enrolled: `prony agent start`"}
    windows = await ground.agent("windows", facts={"os": "windows"})
    (told,) = await reasons(ground, view.experiment.id)
    assert told.startswith("no agent fits: windows lacks ")
    assert "engine null (has none)" in told
    await ground.fleet.agents.remove(windows.id, who=ME)
    hand = await ground.agent()
    assert await reasons(ground, view.experiment.id) == {"about to be leased"}
    await hand.lease()
    assert await reasons(ground, view.experiment.id) == {"1 of 1 agents that fit are busy"}
    await ground.fleet.agents.drain(hand.id, who=ME)
    assert await reasons(ground, view.experiment.id) == {"no agent that fits is there: 1 draining"}


async def test_of_many_that_do_not_fit_a_few_are_named(local: Ground) -> None:
    for number in range(5):
        await local.agent(f"w{number}", facts={**FACTS, "os": "windows"})
    view = await local.submit(recipe(1, where="{os: linux}"))
    (told,) = await reasons(local, view.experiment.id)
    assert told.count(" lacks ") == 3
    assert told.endswith("and 2 more agents")


async def test_a_job_in_a_pause_says_what_happened_and_its_lot_when_it_goes_on(ground: Ground) -> None:
    view = await ground.submit(recipe(1))
    hand = await ground.agent()
    await hand.lease()
    await ground.pass_time(SILENCE_S)
    (job,) = await ground.jobs(view.experiment.id)
    assert job.reason == f"nothing was heard of agent {hand.id} for 30 s"
    assert job.not_before is not None
    (lot,) = (await ground.fleet.queries.queue()).lots
    assert lot.reason == "failed before, and is tried again in 2 s"
    await ground.fleet.agents.remove(hand.id, who=ME)
    await ground.pass_time(10)
    (job,) = await ground.jobs(view.experiment.id)
    assert job.reason == f"nothing was heard of agent {hand.id} for 30 s; no agent is enrolled: `prony agent start`"


async def test_the_queue_counts_what_has_not_ended(ground: Ground) -> None:
    await ground.submit(recipe(3, "one"))
    await ground.submit(recipe(2, "two", priority=3))
    hand = await ground.agent()
    await take(hand)
    await hand.lease()
    queue = await ground.fleet.queries.queue()
    assert [(lot.experiment_name, lot.waiting, lot.leased) for lot in queue.lots] == [("two", 0, 1), ("one", 3, 0)]
    assert (queue.waiting, queue.leased) == (3, 1)
    assert [lot.fitting for lot in queue.lots] == [(hand.id,)] * 2
    await ground.fleet.jobs.batch(JobBatch(action="cancel", state="waiting"), who=ME)
    assert (await ground.fleet.queries.queue()).waiting == 0


async def test_compatibility_tells_of_every_agent_what_it_lacks_and_stores_nothing(ground: Ground) -> None:
    good = await ground.agent("good")
    bad = await ground.agent("bad", facts={**FACTS, "os": "windows", "engine": ("other",)})
    answer = await ground.fleet.recipes.compatibility(Submission(text=recipe(3, where="{os: linux}")))
    (lot,) = answer.lots
    assert (answer.runnable, lot.jobs) == (True, 3)
    fits = {fit.agent_id: (fit.fits, [lack.fact for lack in fit.lacks]) for fit in lot.agents}
    assert fits == {good.id: (True, []), bad.id: (False, ["os", "engine"])}
    assert (await ground.fleet.experiments.page()).items == ()
    await ground.fleet.agents.remove(good.id, who=ME)
    assert not (await ground.fleet.recipes.compatibility(Submission(text=recipe(3, where="{os: linux}")))).runnable


async def test_stats_count_everything_and_health_tries_every_part(ground: Ground) -> None:
    await ground.submit(recipe(3))
    hand = await ground.agent()
    await ground.agent("idle")
    await take(hand)
    await hand.lease()
    ground.clock.step(seconds=50)
    stats = await ground.fleet.queries.stats()
    assert {state.value: count for state, count in stats.jobs.items()} == {"complete": 1, "leased": 1, "waiting": 1}
    assert {state.value: count for state, count in stats.agents.items()} == {"busy": 1, "active": 1}
    assert (stats.experiments, stats.ended_last_hour) == (1, 1)
    assert (stats.oldest_waiting_s, stats.oldest_lease_s) == (50, 50)
    health = await ground.fleet.health.check()
    assert health.ok
    assert {part.name for part in health.parts} == {"database", "writer", "disk", "round"}
    ground.seconds += 3600
    assert not (await ground.fleet.health.check()).ok
