"""Jobs lent to agents: to one at a time, again where the answer was lost, back where nobody is heard."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from prony.app.fleet.context import FleetSettings
from prony.errors import AccessError, ConflictError, InputError, NotFoundError
from prony.model.access import Principal, Role
from prony.model.event import Event, Live
from prony.model.lease import LeaseRequest
from prony.model.log import LogFilter
from prony.store.home import Home

from .fleet_fixture import ME, SILENCE_S, TTL_S, FakeAgent, FleetFixture, open_fleet, recipe

pytestmark = pytest.mark.anyio


# Lent


async def test_a_lease_whose_answer_was_lost_is_given_again(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit()
    fake_agent = await fleet_fixture.agent()
    first = await fake_agent.lease()
    again = await fake_agent.lease()
    assert (again.id, again.attempt, again.job) == (first.id, 1, first.job)
    assert await fake_agent.poll(holding=[first.id]) is None
    assert [one.id for one in await fleet_fixture.fleet.leases.list_leases()] == [first.id]
    assert (await fake_agent.finish(again)).accepted
    assert await fleet_fixture.job_state(first.job.id) == "complete"


async def test_job_that_an_agent_never_begins_is_taken_back_with_the_reason(fleet_fixture: FleetFixture) -> None:
    """An agent of an older version that cannot read a job asks for it for ever."""
    await fleet_fixture.submit(recipe(1, attempts=1))
    fake_agent = await fleet_fixture.agent()
    given = [await fake_agent.lease() for _ in range(5)]
    assert len({lease.id for lease in given}) == 1
    assert await fake_agent.poll() is None
    job = await fleet_fixture.job(given[0].job.id)
    assert job.state == "failed"
    assert "was given this job 5 times and never began it" in job.reason
    assert "upgrade Prony there and restart the agent" in job.reason


async def test_an_agent_that_waits_and_never_heard_of_its_lease_is_told_by_the_next_round(
    fleet_fixture: FleetFixture,
) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lost = await fake_agent.lease()
    fleet_fixture.fleet.state.release(lost.id)  # as on another server, which did not lend it
    fleet_fixture.fleet.state.lots.clear()
    async with fleet_fixture.waiting(fake_agent) as (poll,):
        await fleet_fixture.look()
        async with asyncio.timeout(120):
            found = await poll
    assert found is not None
    assert found.id == lost.id


async def test_two_agents_of_one_device_never_both_have_a_job(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit()
    one = await fleet_fixture.agent("one", device="shared")
    two = await fleet_fixture.agent("two", device="shared")
    lease = await one.lease()
    assert await two.poll() is None
    fleet_fixture.fleet.state.release(lease.id)  # the server forgets, the database does not
    assert await two.poll() is None
    await one.finish(lease)
    assert (await two.lease()).job.id != lease.job.id


async def test_the_other_agent_of_a_device_is_woken_when_it_becomes_free(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    one = await fleet_fixture.agent("one", device="shared")
    two = await fleet_fixture.agent("two", device="shared")
    lease = await one.lease()
    async with fleet_fixture.waiting(two) as (poll,):
        await one.finish(lease)
        assert await poll is not None


async def test_a_job_that_is_submitted_reaches_the_agent_that_waits_and_wakes_one_for_each_job(
    fleet_fixture: FleetFixture,
) -> None:
    fake_agents = [await fleet_fixture.agent(name) for name in "abc"]
    async with fleet_fixture.waiting(*fake_agents) as polls:
        await fleet_fixture.submit(recipe(2))
        await fleet_fixture.until(lambda: sum(poll.done() for poll in polls) == 2)
        assert len(fleet_fixture.fleet.state.waiters) == 1


async def test_agents_that_may_begin_nothing_are_not_woken_in_place_of_one_that_may(
    fleet_fixture: FleetFixture,
) -> None:
    drained, twin, free = [await fleet_fixture.agent(name, device=f"d-{name[0]}") for name in ("x-1", "f-1", "f-2")]
    await fleet_fixture.fleet.agents.drain(drained.id, who=ME)
    async with fleet_fixture.waiting(drained, twin, free):
        other = await fleet_fixture.agent("other")
        async with fleet_fixture.waiting(other) as (poll,):
            await fleet_fixture.submit(recipe(2))  # one for the device with two agents, one for the other device
            assert await poll is not None


async def test_a_job_that_comes_while_an_agent_is_told_that_there_is_none_is_not_missed(
    fleet_fixture: FleetFixture,
) -> None:
    fake_agent, fleet = await fleet_fixture.agent(), fleet_fixture.fleet
    gone = await fleet_fixture.submit(recipe(1))
    view = await fleet_fixture.submit(recipe(1, "second"))
    await fleet.experiments.cancel(gone.experiment.id, who=ME)
    await fleet_fixture.settle()
    # In mind is only the lot that has nothing; of the other one the news comes while the database is asked.
    (lot,) = [pending.lot for pending in fleet.state.lots.values() if pending.lot.experiment_id == view.experiment.id]
    del fleet.state.lots[lot.id]
    loop, claim = asyncio.get_running_loop(), fleet.leases._claim

    def claim_and_hear(*asked: Any) -> Any:
        found = claim(*asked)
        if found.lease is None:
            loop.call_soon_threadsafe(fleet.state.offer, lot, 1)
        return found

    fleet.leases._claim = claim_and_hear  # type: ignore[method-assign,assignment]
    async with asyncio.timeout(120):
        lease = await fake_agent.poll(wait_s=30)
    assert lease is not None
    assert lease.job.experiment_id == view.experiment.id


async def test_who_goes_away_in_the_middle_of_a_lease_finds_it_again(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    await fleet_fixture.settle()
    poll = asyncio.create_task(fake_agent.poll(wait_s=5))
    await fleet_fixture.until(lambda: bool(fleet_fixture.fleet.context.tasks))
    poll.cancel()
    with pytest.raises(asyncio.CancelledError):
        await poll
    await fleet_fixture.settle()
    assert len(fleet_fixture.fleet.state.held) == 1
    assert (await fake_agent.lease()).attempt == 1


async def test_only_the_life_that_is_enrolled_is_served(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit()
    fake_agent = await fleet_fixture.agent()
    asked = LeaseRequest(agent_id=fake_agent.id, incarnation="another", wait_s=0)
    with pytest.raises(ConflictError) as refused:
        await fleet_fixture.fleet.leases.acquire(asked, who=ME)
    assert refused.value.code == "agent_replaced"
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.leases.acquire(LeaseRequest(agent_id="nobody", incarnation="x", wait_s=0), who=ME)


async def test_an_agent_speaks_only_for_itself(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit()
    fake_agent, other = await fleet_fixture.agent("mine"), await fleet_fixture.agent("other")
    lease = await fake_agent.lease()
    stranger = Principal(name="s", role=Role.AGENT, agent_id=other.id)
    with pytest.raises(AccessError):
        await fleet_fixture.fleet.leases.hand_back(lease.id, "", who=stranger)
    with pytest.raises(AccessError):
        await fleet_fixture.fleet.intake.upload_offset(lease.id, who=stranger)
    assert await fleet_fixture.job_state(lease.job.id) == "leased"


@pytest.mark.parametrize("reconcile_s", [0.0, 1e9])
async def test_rounds_without_a_pause_keep_nobody_from_work(home: Home, url: str, reconcile_s: float) -> None:
    """The server looks around all the while. What it read a moment ago must not undo what has happened since: an agent
    that is not woken, or whose device is thought to be occupied, would wait for half a minute."""
    settings = FleetSettings(sweep_s=0.0, reconcile_s=reconcile_s)
    async with open_fleet(home, url, settings) as fleet_fixture, asyncio.timeout(120):
        fleet_fixture.fleet.context.time = time.monotonic
        rounds = asyncio.create_task(fleet_fixture.fleet.maintenance._sweep())
        fake_agents = [
            await fleet_fixture.agent(name, device=device) for name, device in (("a", "x"), ("b", "x"), ("c", "y"))
        ]

        async def work(fake_agent: FakeAgent) -> int:
            done = 0
            while (lease := await fake_agent.poll(wait_s=30)) is not None:
                while lease is not None:
                    lease = (await fake_agent.finish(lease, go_on=True)).lease
                    done += 1
            return done

        working = [asyncio.create_task(work(fake_agent)) for fake_agent in fake_agents]
        for number in range(6):
            view = await fleet_fixture.submit(recipe(1 + number % 3))
            while await fleet_fixture.state(view.experiment.id) != "complete":
                await asyncio.sleep(0.001)
        rounds.cancel()
        fleet_fixture.fleet.state.is_stopping = True
        for fake_agent in fake_agents:
            fleet_fixture.fleet.state.rouse(fake_agent.id)
        assert sum(await asyncio.gather(*working)) == 12


async def test_an_agent_that_claims_thousands_of_leases_is_told_that_they_are_not_its_own(
    fleet_fixture: FleetFixture,
) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent, other = await fleet_fixture.agent("a"), await fleet_fixture.agent("b")
    lease, foreign = await fake_agent.lease(), await other.lease()
    claimed = [f"lease-{number}" for number in range(2000)]
    answer = await fake_agent.beat(lease.id, foreign.id, *claimed)
    assert set(answer.cancel) == {foreign.id, *claimed}


# Kept


async def test_a_lease_runs_out_when_nothing_is_heard(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.pass_time(TTL_S)
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    await fleet_fixture.pass_time(SILENCE_S - TTL_S)
    job = await fleet_fixture.job(lease.job.id)
    assert (job.state, job.reason) == ("waiting", f"agent {fake_agent.id} sent nothing for 30 s")
    assert await fleet_fixture.tried(job.id) == [(1, "a", "lost")]
    assert await fleet_fixture.state(view.experiment.id) == "running"
    assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)
    assert (await fake_agent.progress(lease)).cancel


async def test_heartbeats_keep_a_lease_and_polls_alone_do_not(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    beating, silent = await fleet_fixture.agent("beating"), await fleet_fixture.agent("silent")
    kept, lost = await beating.lease(), await silent.lease()
    for _ in range(6):
        await silent.poll(holding=[lost.id])
        await fleet_fixture.pass_time(10, beating=[(beating, kept)])
    assert await fleet_fixture.job_state(kept.job.id) == "leased"
    assert await fleet_fixture.tried(lost.job.id) == [(1, "silent", "lost")]


async def test_progress_keeps_a_lease(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    for _ in range(8):
        assert not (await fake_agent.progress(lease)).cancel
        await fleet_fixture.pass_time(10)
    assert await fleet_fixture.job_state(lease.job.id) == "leased"


async def test_time_in_which_the_server_did_not_look_makes_nobody_late(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.look()
    fleet_fixture.seconds += 3600
    await fleet_fixture.look()
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    await fleet_fixture.pass_time(TTL_S)
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    await fleet_fixture.pass_time(SILENCE_S - TTL_S)
    assert await fleet_fixture.job_state(lease.job.id) == "waiting"


async def test_a_database_that_is_slow_within_a_round_makes_nobody_late(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.look()
    ask = fleet_fixture.fleet.context.read

    async def slow(question: object) -> object:
        fleet_fixture.seconds += 3600
        return await ask(question)  # type: ignore[arg-type]

    fleet_fixture.fleet.context.read = slow  # type: ignore[method-assign,assignment]
    await fleet_fixture.look()
    fleet_fixture.fleet.context.read = ask  # type: ignore[method-assign]
    assert await fleet_fixture.job_state(lease.job.id) == "leased"


@pytest.mark.parametrize("days", [-400, 400])
async def test_a_clock_that_is_set_makes_nobody_late(fleet_fixture: FleetFixture, days: int) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    fleet_fixture.clock.step(days=days)
    await fleet_fixture.pass_time(TTL_S)
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    assert (await fake_agent.finish(lease)).accepted
    assert await fleet_fixture.job_state(lease.job.id) == "complete"


@pytest.mark.parametrize("days", [-400, 400])
async def test_a_clock_that_is_set_does_not_lengthen_a_pause(fleet_fixture: FleetFixture, days: int) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.pass_time(SILENCE_S)
    assert await fake_agent.poll() is None
    fleet_fixture.clock.step(days=days)
    await fleet_fixture.look()
    assert (await fake_agent.lease()).job.id == lease.job.id


async def test_leases_of_the_dead_and_of_the_living_are_told_apart_in_one_round(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(20))
    fake_agents = [await fleet_fixture.agent(f"a{number}") for number in range(20)]
    leases = [await fake_agent.lease() for fake_agent in fake_agents]
    await fleet_fixture.pass_time(SILENCE_S, beating=list(zip(fake_agents, leases, strict=True))[::2])
    states = [await fleet_fixture.job_state(lease.job.id) for lease in leases]
    assert states == ["leased", "waiting"] * 10


# Back


async def test_what_an_earlier_life_held_waits_again_at_once(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fake_agent.restart()
    job = await fleet_fixture.job(lease.job.id)
    assert (job.state, job.reason) == ("waiting", "the agent was restarted")
    assert await fleet_fixture.tried(job.id) == [(1, "a", "lost")]


async def test_the_same_life_that_enrols_again_keeps_what_it_has(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fake_agent.enrol()
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    assert (await fake_agent.beat(lease.id)).cancel == ()


async def test_what_is_handed_back_may_be_had_at_once_and_costs_no_try(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1, attempts=1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    for _ in range(3):
        lease = await one.lease()
        await one.hand_back(lease, "draining")
        lease = await two.lease()
        await two.hand_back(lease)
    tried = await fleet_fixture.tried(lease.job.id)
    assert [state for _, _, state in tried] == ["returned"] * 6
    assert [number for number, _, _ in tried] == [1, 2, 3, 4, 5, 6]
    lease = await one.lease()
    await one.finish(lease)
    assert await fleet_fixture.job_state(lease.job.id) == "complete"


async def test_a_lease_that_is_over_cannot_be_handed_back_again(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    lease = await one.lease()
    await one.hand_back(lease)
    second = await two.lease()
    await one.hand_back(lease)  # the answer was lost, and it says so again
    assert await fleet_fixture.job_state(lease.job.id) == "leased"
    assert (await two.beat(second.id)).cancel == ()
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.leases.hand_back("nothing", "", who=ME)


async def test_a_draining_agent_is_told_so_finishes_what_it_has_and_gets_nothing_more(
    fleet_fixture: FleetFixture,
) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.fleet.agents.drain(fake_agent.id, who=ME)
    assert (await fake_agent.beat(lease.id)).drain
    assert (await fake_agent.beat(lease.id)).cancel == ()
    done = await fake_agent.finish(lease, go_on=True)
    assert done.accepted
    assert done.lease is None
    assert await fake_agent.poll() is None
    await fleet_fixture.fleet.agents.reset(fake_agent.id, who=ME)
    assert await fake_agent.poll() is not None


async def test_an_agent_that_is_removed_while_it_waits_is_given_nothing(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    async with fleet_fixture.waiting(fake_agent) as (poll,):
        await fleet_fixture.fleet.agents.remove(fake_agent.id, who=ME)
        await fleet_fixture.submit()
        assert await poll is None
    assert await fleet_fixture.fleet.leases.list_leases() == ()


async def test_what_a_removed_agent_ran_waits_for_another(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(1))
    fake_agent, other = await fleet_fixture.agent("gone"), await fleet_fixture.agent("other")
    lease = await fake_agent.lease()
    await fleet_fixture.fleet.agents.remove(fake_agent.id, who=ME)
    await fleet_fixture.pass_time(10)
    assert (await other.lease()).job.id == lease.job.id
    with pytest.raises(NotFoundError):
        await fake_agent.beat(lease.id)


# Cancelled


async def test_cancelling_reaches_the_one_that_runs_by_heartbeat_and_by_progress(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    assert (await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)).cancel_asked
    assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)
    assert (await fake_agent.progress(lease)).cancel
    await fleet_fixture.look()
    assert (await fake_agent.beat(lease.id)).cancel == (lease.id,)
    assert (await fake_agent.progress(lease)).cancel
    await fake_agent.finish(lease, "partial")
    assert await fleet_fixture.job_state(lease.job.id) == "cancelled"
    assert await fleet_fixture.state(view.experiment.id) == "cancelled"
    entry = await fleet_fixture.fleet.results.get(lease.job.id)
    assert entry.result.state == "partial"


async def test_a_cancelled_job_that_comes_to_its_end_all_the_same_is_complete(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)
    await fake_agent.finish(lease)
    assert await fleet_fixture.job_state(lease.job.id) == "complete"
    assert await fleet_fixture.state(view.experiment.id) == "complete"


async def test_a_cancelled_job_whose_agent_is_gone_is_cancelled_and_not_tried_again(
    fleet_fixture: FleetFixture,
) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)
    await fleet_fixture.pass_time(SILENCE_S)
    assert await fleet_fixture.job_state(lease.job.id) == "cancelled"
    assert await fleet_fixture.state(view.experiment.id) == "cancelled"


async def test_what_is_over_cannot_be_cancelled(fleet_fixture: FleetFixture) -> None:
    await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fake_agent.finish(lease, "partial", repetitions=())
    await fleet_fixture.pass_time(10)
    again = await fake_agent.lease()
    await fake_agent.finish(again)
    with pytest.raises(ConflictError):
        await fleet_fixture.fleet.jobs.cancel(again.job.id, who=ME)


# Logs


async def test_pieces_of_a_log_may_come_twice_and_overlap(local: FleetFixture) -> None:
    await local.submit(recipe(1))
    fake_agent = await local.agent()
    lease = await fake_agent.lease()
    text = "one\ntwo\nthrée\nfour\n"
    octets = text.encode()
    for begin, end in [(0, 8), (0, 8), (4, 15), (0, 4), (15, len(octets)), (4, 15)]:
        await fake_agent.progress(lease, log_offset=begin, log=octets[begin:end].decode())
    first = await local.fleet.jobs.read_log(lease.job.id, offset=0)
    assert first.text == octets
    assert not first.ended
    rest = await local.fleet.jobs.read_log(lease.job.id, offset=first.next_offset)
    assert (rest.text, rest.next_offset, rest.ended) == (b"", len(octets), False)
    await fake_agent.finish(lease)
    assert (await local.fleet.jobs.read_log(lease.job.id, offset=len(octets))).ended
    assert (await local.fleet.jobs.read_log(lease.job.id, offset=0)).text == octets


async def test_a_piece_of_a_log_whose_place_is_not_reached_yet_leaves_no_hole(local: FleetFixture) -> None:
    await local.submit(recipe(1))
    fake_agent = await local.agent()
    lease = await fake_agent.lease()
    await fake_agent.progress(lease, log_offset=100, log="late")
    assert (await local.fleet.jobs.read_log(lease.job.id)).text == b""


async def test_every_attempt_has_a_log_of_its_own(local: FleetFixture) -> None:
    await local.submit(recipe(1))
    fake_agent = await local.agent()
    for word in ("first", "second"):
        lease = await fake_agent.lease()
        await fake_agent.progress(lease, log=word)
        await fake_agent.hand_back(lease)
    assert (await local.fleet.jobs.read_log(lease.job.id)).text == b"second"
    first = await local.fleet.jobs.read_log(lease.job.id, attempt=1)
    assert first.text == b"first"
    assert (await local.fleet.jobs.read_log(lease.job.id, attempt=1, offset=5)).ended


@pytest.mark.parametrize("offset", [-1, 2**41])
async def test_an_offset_that_no_log_has_is_refused(local: FleetFixture, offset: int) -> None:
    view = await local.submit(recipe(1))
    (job,) = await local.jobs(view.experiment.id)
    with pytest.raises(InputError):
        await local.fleet.jobs.read_log(job.id, offset=offset)


async def test_only_lines_that_are_searched_for_are_read_and_waited_for(local: FleetFixture) -> None:
    await local.submit(recipe(1))
    fake_agent = await local.agent()
    lease = await fake_agent.lease()
    text = "2026-11-18T07:00:00.000Z run-0000.out fine\n2026-11-18T07:00:01.000Z run-0000.err \x1b[31mBad\x1b[0m\n"
    await fake_agent.progress(lease, log=text)
    wanted = LogFilter("bad", "run-0000.err")
    found = await local.fleet.jobs.read_log(lease.job.id, wanted=wanted)
    assert (found.text, found.next_offset) == (b"2026-11-18T07:00:01.000Z run-0000.err Bad\n", len(text))
    nothing = await local.fleet.jobs.read_log(lease.job.id, wanted=LogFilter("worse"))
    assert (nothing.text, nothing.next_offset, nothing.ended) == (b"", len(text), False)


async def test_seconds_of_a_running_load_are_answered_from_its_beginning(local: FleetFixture) -> None:
    await local.submit(recipe(1))
    fake_agent = await local.agent()
    lease = await fake_agent.lease()
    assert not (await local.fleet.results.load_series(lease.job.id, points=10)).runs
    for second in (1, 2, 2, 3):
        live = Live(elapsed_s=second, sent=9, done=8, failed=second, in_flight=4, rate_per_s=7, p50_ms=1.5)
        await fake_agent.progress(lease, events=(Event(kind="load", job_id="another", live=live),))
    found = await local.fleet.results.load_series(lease.job.id, points=10)
    assert (found.source, found.job_id, [one.at_s for one in found.runs]) == ("live", lease.job.id, [(1, 2, 3)])
    assert [list(one.failed_per_s) for one in found.runs] == [[1, 1, 1]]
    with pytest.raises(NotFoundError):
        await local.fleet.results.load_series("nobody-001", points=10)
