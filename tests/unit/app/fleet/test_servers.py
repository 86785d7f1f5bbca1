"""Several servers on one database: what one does the others know, and no two do the same; and one after another."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text

from prony.model.agent import Capabilities
from prony.model.event import Event
from prony.model.lease import Lease
from prony.model.queue import JobState, Submission
from prony.store import queue
from prony.store.home import Home
from prony.store.writer import Transaction

from .fleet_fixture import FACTS, ME, SILENCE_S, TTL_S, FakeAgent, FleetFixture, open_fleet, recipe
from .parcels import packed

pytestmark = pytest.mark.anyio

Pair = tuple[FleetFixture, FleetFixture]


async def both_look(pair: Pair) -> None:
    for fleet_fixture in pair:
        await fleet_fixture.look()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what travels through the database."""
    async with asyncio.timeout(120):
        while not await holds():
            await asyncio.sleep(0.005)


async def work(fake_agent: FakeAgent, servers: Pair, seen: list[Lease], seed: int) -> None:
    """Do jobs at whichever server is next until nothing is left, with answers that are lost now and then."""
    rng = random.Random(seed)
    empty = 0
    while empty < 2:
        here = fake_agent.at(rng.choice(servers))
        lease = await here.poll(wait_s=0.05)
        empty = empty + 1 if lease is None else 0
        while lease is not None:
            if rng.random() < 0.2:  # as if the answer had not arrived
                again = await fake_agent.at(rng.choice(servers)).poll(wait_s=5)
                assert again is not None
                assert again.id == lease.id
            seen.append(lease)
            made = packed(lease.job)
            if rng.random() < 0.2:
                await asyncio.gather(*(fake_agent.at(server).send(lease, made) for server in servers))
            answer = await fake_agent.at(rng.choice(servers)).send(lease, made, go_on=rng.random() < 0.7)
            lease = answer.lease


async def test_two_servers_lend_every_job_once_and_lose_none(pair: Pair) -> None:
    one, two = pair
    views = [await one.submit(recipe(20, "first")), await two.submit(recipe(15, "second"))]
    # Of three devices, each with two agents that talk to either server.
    fake_agents = [await pair[number % 2].agent(f"a{number}", device=f"d{number // 2}") for number in range(6)]
    await both_look(pair)
    for fleet_fixture in pair:
        fleet_fixture.fleet.context.time = time.monotonic  # agents wait here, if not for long
    seen: list[Lease] = []
    async with asyncio.timeout(120):
        await asyncio.gather(*(work(fake_agent, pair, seen, number) for number, fake_agent in enumerate(fake_agents)))
    await both_look(pair)
    assert Counter(Counter(lease.job.id for lease in seen).values()) == {1: 35}
    for view in views:
        assert await two.state(view.experiment.id) == "complete"
        for job in await one.jobs(view.experiment.id):
            assert [state for _, _, state in await one.tried(job.id)] == ["complete"]


async def test_a_device_has_one_lease_even_where_two_servers_lend_in_the_same_instant(pair: Pair) -> None:
    await pair[0].submit(recipe(12))
    fake_agents = [await pair[number].agent(f"a{number}", device="shared") for number in range(2)]
    await both_look(pair)
    for _ in range(6):
        leases = [
            lease
            for lease in await asyncio.gather(*(fake_agent.poll() for fake_agent in fake_agents))
            if lease is not None
        ]
        assert len(leases) == 1
        assert len(await pair[0].fleet.leases.list_leases()) == 1
        await fake_agents[0].finish(leases[0])
        await both_look(pair)


async def test_a_key_that_comes_to_both_at_once_makes_one_experiment(pair: Pair) -> None:
    for number in range(5):
        asked = Submission(text=recipe(1))
        answers = await asyncio.gather(
            *(fleet_fixture.fleet.experiments.submit(asked, key=f"k{number}", who=ME) for fleet_fixture in pair)
        )
        assert len({view.experiment.id for view, _ in answers}) == 1
        assert sorted(is_new for _, is_new in answers) == [False, True]


async def test_the_last_two_jobs_may_end_at_both_in_the_same_instant(pair: Pair) -> None:
    fake_agents = [await pair[0].agent("one"), await pair[1].agent("two")]
    for _ in range(4):
        view = await pair[0].submit(recipe(2))
        await both_look(pair)
        leases = [await fake_agent.lease() for fake_agent in fake_agents]
        await asyncio.gather(*(fake_agent.finish(lease) for fake_agent, lease in zip(fake_agents, leases, strict=True)))
        await both_look(pair)
        assert await pair[0].state(view.experiment.id) == "complete"


async def test_a_job_that_is_retried_while_the_other_server_ends_the_last_one_is_not_forgotten(pair: Pair) -> None:
    one, two = pair
    fake_agent = await one.agent()
    for _ in range(4):
        view = await one.submit(recipe(2))
        await both_look(pair)
        cancelled, running = await one.jobs(view.experiment.id)
        lease = await fake_agent.lease()
        cancelled, running = (running, cancelled) if lease.job.id == cancelled.id else (cancelled, running)
        await one.fleet.jobs.cancel(cancelled.id, who=ME)
        made = packed(lease.job)
        await asyncio.gather(fake_agent.send(lease, made), two.fleet.jobs.retry(cancelled.id, who=ME))
        await both_look(pair)
        assert await one.state(view.experiment.id) == "running"
        assert await one.job_state(cancelled.id) == "waiting"
        await one.fleet.experiments.cancel(view.experiment.id, who=ME)
        await both_look(pair)
        assert await one.state(view.experiment.id) == "partial"


async def test_the_end_of_an_experiment_waits_for_a_retry_that_another_server_is_about_to_commit(pair: Pair) -> None:
    one, two = pair
    view = await one.submit(recipe(2))
    fake_agent = await one.agent()
    lease = await fake_agent.lease()
    (cancelled,) = [job for job in await one.jobs(view.experiment.id) if job.id != lease.job.id]
    await one.fleet.jobs.cancel(cancelled.id, who=ME)
    loop, has_acted, may_commit = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

    def retry_slowly(transaction: Transaction) -> None:
        two.fleet.jobs._retry(transaction, cancelled.id)
        loop.call_soon_threadsafe(has_acted.set)
        asyncio.run_coroutine_threadsafe(may_commit.wait(), loop).result(120)

    retrying = asyncio.create_task(two.fleet.context.write(retry_slowly))
    await has_acted.wait()
    finishing = asyncio.create_task(fake_agent.finish(lease))  # as far as it can see, of the last job
    waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")

    async def is_at_the_lock() -> bool:
        return finishing.done() or bool(
            await one.fleet.context.read(lambda connection: connection.execute(waits).scalar())
        )

    await until(is_at_the_lock)
    may_commit.set()
    await asyncio.gather(retrying, finishing)
    assert await two.job_state(cancelled.id) == "waiting"
    assert await two.state(view.experiment.id) == "running"


async def test_cancelling_an_experiment_does_not_undo_a_lease_of_the_same_instant(pair: Pair) -> None:
    one, two = pair
    fake_agent = await one.agent()
    for _ in range(5):
        view = await one.submit(recipe(2))
        await both_look(pair)
        lease, _ = await asyncio.gather(fake_agent.poll(), two.fleet.experiments.cancel(view.experiment.id, who=ME))
        counts = await one.counts(view.experiment.id)
        assert counts == ({"cancelled": 2} if lease is None else {"cancelled": 1, "leased": 1})
        if lease is not None:
            await both_look(pair)
            assert (await fake_agent.at(two).beat(lease.id)).cancel == (lease.id,)
            await fake_agent.hand_back(lease)
        assert await one.state(view.experiment.id) == "cancelled"


async def test_two_changes_that_lock_each_other_out_both_come_to_pass(pair: Pair) -> None:
    one, two = pair
    view = await one.submit(recipe(2))
    numbers = [job.id for job in await one.jobs(view.experiment.id)]
    loop = asyncio.get_running_loop()
    met = [asyncio.Event(), asyncio.Event()]

    def crossing(which: int) -> Callable[[Transaction], None]:
        order = numbers if which == 0 else numbers[::-1]

        def lock(transaction: Transaction) -> None:
            first = queue.by_job(transaction.connection, order[0], locked=True)
            loop.call_soon_threadsafe(met[which].set)
            asyncio.run_coroutine_threadsafe(met[1 - which].wait(), loop).result(120)
            second = queue.by_job(transaction.connection, order[1], locked=True)
            for row in (first, second):
                queue.ask_to_cancel(transaction.connection, row.number)

        return lock

    await asyncio.gather(one.fleet.context.write(crossing(0)), two.fleet.context.write(crossing(1)))
    assert all(job.cancel_asked for job in await one.jobs(view.experiment.id))


# What one tells the others


async def test_a_job_submitted_at_one_reaches_the_agent_that_waits_at_the_other(pair: Pair) -> None:
    one, two = pair
    fake_agent = await two.agent()
    async with two.waiting(fake_agent) as (poll,):
        await one.submit(recipe(1))
        async with asyncio.timeout(120):
            assert await poll is not None


async def test_cancelling_at_one_is_heard_at_the_other(pair: Pair) -> None:
    one, two = pair
    await one.submit(recipe(1))
    fake_agent = await two.agent()
    await two.look()
    lease = await fake_agent.lease()
    await one.fleet.jobs.cancel(lease.job.id, who=ME)

    async def is_told() -> bool:
        return (await fake_agent.progress(lease)).cancel

    await until(is_told)
    assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)


async def test_a_watcher_at_one_sees_what_happens_at_the_other(pair: Pair) -> None:
    one, two = pair
    view = await one.submit(recipe(1))
    fake_agent = await two.agent()
    await two.look()
    source = one.fleet.events.watch(view.experiment.id)
    assert (await anext(source)).event == "snapshot"
    lease = await fake_agent.lease()
    await fake_agent.progress(lease, events=(Event(kind="phase", job_id="x", phase="measure"),))
    await fake_agent.finish(lease)
    async with asyncio.timeout(120):
        told = [notice.event async for notice in source]
    assert {"job", "progress", "experiment"} <= set(told)
    assert told[-1] == "experiment"


async def test_who_watches_at_one_what_is_deleted_at_the_other_sees_it_end(pair: Pair) -> None:
    one, two = pair
    view = await one.submit(recipe(1))
    source = one.fleet.events.watch(view.experiment.id)
    await anext(source)
    await two.fleet.experiments.delete(view.experiment.id, who=ME)
    async with asyncio.timeout(120):
        assert [notice async for notice in source] == []


async def test_an_agent_that_changes_at_one_is_changed_at_the_other(pair: Pair) -> None:
    one, two = pair
    fake_agent = await one.agent(facts={"os": "linux"})
    await two.look()
    view = await two.submit(recipe(1))
    async with two.waiting(fake_agent.at(two)) as (poll,):
        await one.fleet.agents.set_capabilities(fake_agent.id, Capabilities(facts=dict(FACTS)), who=ME)
        async with asyncio.timeout(120):
            lease = await poll
    assert lease is not None
    assert lease.job.experiment_id == view.experiment.id


async def test_a_server_that_did_not_hear_the_others_for_a_while_looks_at_everything_anew(pair: Pair) -> None:
    one, two = pair
    fake_agent = await one.agent(facts={"os": "linux"})
    await both_look(pair)
    listener = two.fleet.context.listener
    assert listener is not None
    await asyncio.to_thread(listener.close)
    await one.fleet.agents.set_capabilities(fake_agent.id, Capabilities(facts=dict(FACTS)), who=ME)
    await two.look()
    assert two.fleet.state.agents[fake_agent.id].capabilities.facts["os"] == "linux"
    assert "engine" not in two.fleet.state.agents[fake_agent.id].capabilities.facts
    two.fleet.context.listener = None
    two.fleet.context.listen()
    await two.until(lambda: two.fleet.state.missed_notes)
    await two.look()
    assert "engine" in two.fleet.state.agents[fake_agent.id].capabilities.facts


async def test_notes_that_are_not_ours_make_nobody_deaf(pair: Pair) -> None:
    one, two = pair
    for payload in ("nonsense", "[]", "[1, 2]", '["x", [["lot"]]]', "null"):
        await one.fleet.context.write(
            lambda transaction, said=payload: transaction.connection.exec_driver_sql(
                "SELECT pg_notify('prony', %s)", (said,)
            )  # type: ignore[misc]
        )
    view = await one.submit(recipe(1))
    await two.until(
        lambda: any(pending.lot.experiment_id == view.experiment.id for pending in two.fleet.state.lots.values())
    )
    lease = await (await two.agent()).lease()
    assert lease.job.experiment_id == view.experiment.id


async def test_heartbeats_at_one_keep_a_lease_that_the_other_lent(pair: Pair) -> None:
    one, two = pair
    await one.submit(recipe(1))
    fake_agent = await one.agent()
    lease = await fake_agent.lease()
    for _ in range(7):
        assert (await fake_agent.at(two).beat(lease.id)).cancel == ()
        two.seconds += 10
        await two.look()
        one.seconds += 10
        await one.look()
    assert await one.job_state(lease.job.id) == "leased"
    for _ in range(6):
        one.seconds += 10
        await one.look()
    assert await two.job_state(lease.job.id) == "waiting"
    await two.look()
    assert (await fake_agent.at(two).beat(lease.id)).cancel == (lease.id,)


async def test_a_lease_that_both_find_lost_is_lost_once(pair: Pair) -> None:
    one, _ = pair
    await one.submit(recipe(1))
    fake_agent = await one.agent()
    lease = await fake_agent.lease()
    await both_look(pair)
    happened: list[str] = []
    for fleet_fixture in pair:
        fleet_fixture.fleet.context.hooks.append(lambda what, _: happened.append(what))
    for _ in range(8):
        for fleet_fixture in pair:
            fleet_fixture.seconds += 10
        await asyncio.gather(*(fleet_fixture.look() for fleet_fixture in pair))
    assert happened.count("lease_lost") == 1
    assert len(await one.tried(lease.job.id)) == 1


# One after another


async def test_a_server_that_was_killed_is_followed_by_one_that_goes_on(home: Home, url: str) -> None:
    killed = open_fleet(home, url)
    dead = await killed.__aenter__()
    view = await dead.submit(recipe(3), key="k")
    fake_agent, other = await dead.agent("a"), await dead.agent("b")
    lease, silent = await fake_agent.lease(), await other.lease()
    # Nothing of it is closed: the next one finds the database as a kill leaves it.
    async with open_fleet(home, url) as fleet_fixture:
        assert await fleet_fixture.counts(view.experiment.id) == {"leased": 2, "waiting": 1}
        await fleet_fixture.pass_time(TTL_S, beating=[(fake_agent.at(fleet_fixture), lease)])
        assert await fleet_fixture.job_state(silent.job.id) == "leased"  # everybody has time to find the new one
        assert (await fake_agent.at(fleet_fixture).finish(lease)).accepted
        await fleet_fixture.pass_time(SILENCE_S - TTL_S)
        assert await fleet_fixture.job_state(silent.job.id) == "waiting"
        await fleet_fixture.pass_time(10)
        again = fake_agent.at(fleet_fixture)
        for _ in range(2):
            await again.finish(await again.lease())
        assert await fleet_fixture.state(view.experiment.id) == "complete"
        assert not (await fleet_fixture.fleet.experiments.submit(Submission(text=recipe(3)), key="k", who=ME))[1]
        assert (await fleet_fixture.fleet.queries.stats()).jobs == {JobState.COMPLETE: 3}
    await killed.__aexit__(None, None, None)
