"""Which job goes to whom: by what a device has, by priority, by fair share; and why one waits."""

from __future__ import annotations

from collections import Counter

import pytest

from prony.model.agent import Capabilities
from prony.model.queue import JobBatch, Modification, Submission

from .fleet_fixture import FACTS, ME, SILENCE_S, FakeAgent, FleetFixture, recipe

pytestmark = pytest.mark.anyio

WINDOWS = {**FACTS, "os": "windows"}

NO_AGENT = "no agent is enrolled: `prony agent start --server URL`"


async def take(fake_agent: FakeAgent) -> str:
    """Do the next job; return which experiment's it was."""
    lease = await fake_agent.lease()
    await fake_agent.finish(lease)
    return lease.job.name


async def reasons(fleet_fixture: FleetFixture, experiment_id: str) -> set[str]:
    """Return why jobs wait, as it is told by job; by lot it must be the same."""
    await fleet_fixture.settle()
    told = {job.reason for job in await fleet_fixture.jobs(experiment_id) if job.state == "waiting"}
    lots = {
        view.reason
        for view in (await fleet_fixture.fleet.queries.queue()).lots
        if view.lot.experiment_id == experiment_id
    }
    assert told == lots
    return told


# Whose turn


async def test_the_higher_priority_goes_first_and_may_be_changed_while_it_waits(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    low = await fleet_fixture.submit(recipe(2, "low", priority=-5))
    await fleet_fixture.submit(recipe(2, "middle"))
    await fleet_fixture.submit(recipe(2, "high"), priority=5)
    assert [await take(fake_agent) for _ in range(3)] == ["high", "high", "middle"]
    await fleet_fixture.fleet.experiments.modify(low.experiment.id, Modification(priority=9), who=ME)
    assert [await take(fake_agent) for _ in range(3)] == ["low", "low", "middle"]


async def test_equals_share_the_devices_whatever_their_sizes(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(20, "large"))
    fleet_fixture.clock.step(seconds=1)
    await fleet_fixture.submit(recipe(4, "small"))
    fake_agents = [await fleet_fixture.agent(f"a{number}") for number in range(4)]
    leases = [await fake_agent.lease() for fake_agent in fake_agents]
    assert Counter(lease.job.name for lease in leases) == {"large": 2, "small": 2}
    for fake_agent, lease in zip(fake_agents, leases, strict=True):
        await fake_agent.finish(lease)
    leases = [await fake_agent.lease() for fake_agent in fake_agents]
    assert Counter(lease.job.name for lease in leases) == {"large": 2, "small": 2}


async def test_on_a_single_device_they_take_turns(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.submit(recipe(6, "large"))
    fleet_fixture.clock.step(seconds=1)
    await fleet_fixture.submit(recipe(2, "small"))
    assert [await take(fake_agent) for _ in range(6)] == ["large", "small", "large", "small", "large", "large"]


async def test_jobs_of_one_lot_go_in_the_order_of_the_matrix(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    view = await fleet_fixture.submit(recipe(5))
    order = [job.id for job in await fleet_fixture.jobs(view.experiment.id)]
    taken = []
    for _ in order:
        lease = await fake_agent.lease()
        taken.append(lease.job.id)
        await fake_agent.finish(lease)
    assert taken == order


# Who fits


async def test_a_job_goes_only_to_a_device_that_has_what_it_wants(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, where="{os: windows}"))
    linux = await fleet_fixture.agent("linux")
    assert await linux.poll() is None
    windows = await fleet_fixture.agent("windows", facts=WINDOWS)
    assert await windows.lease()


async def test_an_agent_that_comes_to_fit_while_it_waits_is_given_the_job(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, where="{os: windows}"))
    fake_agent = await fleet_fixture.agent()
    async with fleet_fixture.waiting(fake_agent) as (poll,):
        await fleet_fixture.fleet.agents.set_capabilities(fake_agent.id, Capabilities(facts=WINDOWS), who=ME)
        assert await poll is not None


async def test_each_device_runs_every_job(fleet_fixture: FleetFixture) -> None:
    fitting = [await fleet_fixture.agent(name) for name in ("one", "two", "three")]
    await fleet_fixture.agent("windows", facts={"os": "windows"})
    twin = await fleet_fixture.agent("twin", device="device-one")
    view = await fleet_fixture.submit(recipe(2, devices="each"))
    assert view.experiment.job_count == 6
    assert await twin.poll() is None
    for fake_agent in fitting:
        cells = []
        for _ in range(2):
            lease = await fake_agent.lease()
            cells.append(lease.job.cell["workload.batch_size"])
            await fake_agent.finish(lease)
        assert cells == [1, 2]
        assert await fake_agent.poll() is None
    assert await fleet_fixture.state(view.experiment.id) == "complete"


async def test_each_means_the_devices_that_could_be_given_work(fleet_fixture: FleetFixture) -> None:
    draining, lost = await fleet_fixture.agent("draining"), await fleet_fixture.agent("lost")
    await fleet_fixture.fleet.agents.drain(draining.id, who=ME)
    for _ in range(12):
        await draining.beat()
        await fleet_fixture.pass_time(10)
    assert (await lost.shown()).state == "lost"
    await fleet_fixture.agent("good")
    view = await fleet_fixture.submit(recipe(2, devices="each"))
    assert view.experiment.job_count == 2


CARD = {
    **FACTS, "engine": "torch", "engine.torch": "2.11", "engine.torch.unit": ("cpu", "cuda"), "gpu.count": 1,
}  # fmt: skip


def units_recipe(*units: str) -> str:
    return f'name: cards\nworkload: {{kind: model, model: "zoo:noop", engine: torch}}\nunits: [{", ".join(units)}]\n'


async def test_a_card_named_by_its_uuid_gets_its_job(fleet_fixture: FleetFixture) -> None:
    old = await fleet_fixture.agent("old", facts=CARD)
    other = await fleet_fixture.agent("other", facts={**CARD, "gpu.uuid": ("GPU-0000",)})
    mine = await fleet_fixture.agent("mine", facts={**CARD, "gpu.uuid": ("GPU-9292ab31-1111",)})
    await fleet_fixture.submit(units_recipe('"cuda:GPU-9292ab31"'))
    assert await old.poll() is None
    assert await other.poll() is None
    assert (await mine.lease()).job.cell == {"workload.unit": "cuda:GPU-9292ab31"}


async def test_a_second_card_that_nobody_has_is_told_and_the_first_is_measured(fleet_fixture: FleetFixture) -> None:
    fake_agents = [await fleet_fixture.agent(name, facts=CARD) for name in ("one", "two")]
    view = await fleet_fixture.submit(units_recipe("cuda-0", "cuda-1"))
    assert (await fake_agents[0].lease()).job.cell == {"workload.unit": "cuda-0"}
    assert await fake_agents[1].poll() is None
    (reason,) = {job.reason for job in await fleet_fixture.jobs(view.experiment.id) if job.state == "waiting"}
    assert reason.startswith("no agent fits: one lacks engine.torch.unit cuda-1 (has cpu, cuda): that is another card")


async def test_each_without_any_device_waits_for_the_first_who_fits_and_says_why(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.agent("linux")
    view = await fleet_fixture.submit(recipe(2, devices="each", where="{os: windows}"))
    assert view.experiment.job_count == 2
    assert await reasons(fleet_fixture, view.experiment.id) == {"no agent fits: linux lacks os windows (has linux)"}
    windows = await fleet_fixture.agent("windows", facts=WINDOWS)
    assert await windows.lease()


async def test_a_job_that_is_for_one_device_waits_for_it_and_says_so(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent("one")
    await fleet_fixture.agent("two")
    view = await fleet_fixture.submit(recipe(2, devices="each"))
    mine = {lot.lot.id: lot.lot.agent_id for lot in (await fleet_fixture.fleet.queries.queue()).lots}
    assert set(mine.values()) == {fake_agent.id, *(set(mine.values()) - {fake_agent.id})}
    lease = await fake_agent.lease()
    told = {view.lot.agent_id: view.reason for view in (await fleet_fixture.fleet.queries.queue()).lots}
    assert told[fake_agent.id] == "agent one is busy"
    await fake_agent.finish(lease)
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    assert "agent one is draining" in await reasons(fleet_fixture, view.experiment.id)
    await fleet_fixture.fleet.agents.reset(fake_agent.id, who=ME)
    await fleet_fixture.fleet.agents.set_capabilities(
        fake_agent.id, Capabilities(facts={**FACTS, "kinds": ("script",)}), who=ME
    )
    assert (
        "agent one no longer fits: kinds model (has script): start its agent with --kinds script,model"
        in await reasons(fleet_fixture, view.experiment.id)
    )
    await fleet_fixture.fleet.agents.remove(fake_agent.id, who=ME)
    removed = f"agent {fake_agent.id} was removed: cancel it, or submit again"
    assert removed in await reasons(fleet_fixture, view.experiment.id)


# Why it waits


async def test_a_job_says_at_once_why_it_waits(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2))
    assert await reasons(fleet_fixture, view.experiment.id) == {NO_AGENT}
    windows = await fleet_fixture.agent("windows", facts={"os": "windows"})
    (told,) = await reasons(fleet_fixture, view.experiment.id)
    assert told.startswith("no agent fits: windows lacks ")
    assert "engine null (has none)" in told
    await fleet_fixture.fleet.agents.remove(windows.id, who=ME)
    fake_agent = await fleet_fixture.agent()
    assert await reasons(fleet_fixture, view.experiment.id) == {"an agent is about to get it"}
    await fake_agent.lease()
    assert await reasons(fleet_fixture, view.experiment.id) == {"1 of 1 agents that fit are busy"}
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    assert await reasons(fleet_fixture, view.experiment.id) == {"no agent that fits is available: 1 draining"}


async def test_of_many_that_do_not_fit_a_few_are_named(local: FleetFixture) -> None:
    for number in range(5):
        await local.agent(f"w{number}", facts={**FACTS, "os": "windows"})
    view = await local.submit(recipe(1, where="{os: linux}"))
    (told,) = await reasons(local, view.experiment.id)
    assert told.count(" lacks ") == 3
    assert told.endswith("and 2 more agents")


async def test_a_job_in_a_pause_says_what_happened_and_its_lot_when_it_goes_on(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    await fake_agent.lease()
    await fleet_fixture.pass_time(SILENCE_S)
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert job.reason == f"agent {fake_agent.id} sent nothing for 30 s"
    assert job.not_before is not None
    (lot,) = (await fleet_fixture.fleet.queries.queue()).lots
    assert lot.reason == "failed before; the next try is in 2 s"
    await fleet_fixture.fleet.agents.remove(fake_agent.id, who=ME)
    await fleet_fixture.pass_time(10)
    (job,) = await fleet_fixture.jobs(view.experiment.id)
    assert job.reason == f"agent {fake_agent.id} sent nothing for 30 s; {NO_AGENT}"


async def test_the_queue_counts_what_has_not_ended(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(3, "one"))
    await fleet_fixture.submit(recipe(2, "two", priority=3))
    fake_agent = await fleet_fixture.agent()
    await take(fake_agent)
    await fake_agent.lease()
    queue = await fleet_fixture.fleet.queries.queue()
    assert [(lot.experiment_name, lot.waiting, lot.leased) for lot in queue.lots] == [("two", 0, 1), ("one", 3, 0)]
    assert (queue.waiting, queue.leased) == (3, 1)
    assert [lot.fitting for lot in queue.lots] == [(fake_agent.id,)] * 2
    await fleet_fixture.fleet.jobs.batch(JobBatch(action="cancel", state="waiting"), who=ME)
    assert (await fleet_fixture.fleet.queries.queue()).waiting == 0


async def test_compatibility_tells_of_every_agent_what_it_lacks_and_stores_nothing(fleet_fixture: FleetFixture) -> None:
    good = await fleet_fixture.agent("good")
    bad = await fleet_fixture.agent("bad", facts={**FACTS, "os": "windows", "engine": ("other",)})
    answer = await fleet_fixture.fleet.recipes.compatibility(Submission(text=recipe(3, where="{os: linux}")))
    (lot,) = answer.lots
    assert (answer.runnable, lot.jobs) == (True, 3)
    fits = {fit.agent_id: (fit.fits, [lack.fact for lack in fit.lacks]) for fit in lot.agents}
    assert fits == {good.id: (True, []), bad.id: (False, ["os", "engine"])}
    assert (await fleet_fixture.fleet.experiments.page()).items == ()
    await fleet_fixture.fleet.agents.remove(good.id, who=ME)
    assert not (
        await fleet_fixture.fleet.recipes.compatibility(Submission(text=recipe(3, where="{os: linux}")))
    ).runnable


async def test_stats_count_everything_and_health_tries_every_part(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(3))
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.agent("idle")
    await take(fake_agent)
    await fake_agent.lease()
    fleet_fixture.clock.step(seconds=50)
    stats = await fleet_fixture.fleet.queries.stats()
    assert {state.value: count for state, count in stats.jobs.items()} == {"complete": 1, "leased": 1, "waiting": 1}
    assert {state.value: count for state, count in stats.agents.items()} == {"busy": 1, "active": 1}
    assert (stats.experiments, stats.ended_last_hour) == (1, 1)
    assert (stats.oldest_waiting_s, stats.oldest_lease_s) == (50, 50)
    health = await fleet_fixture.fleet.health.check()
    assert health.ok
    assert {part.name for part in health.parts} == {"database", "writer", "disk", "round"}
    fleet_fixture.seconds += 3600
    assert not (await fleet_fixture.fleet.health.check()).ok
