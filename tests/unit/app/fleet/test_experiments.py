"""Experiments: submitted once, changed while they can be, cancelled, deleted, listed; and how they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from prony.errors import ConflictError, InputError, NotFoundError, RecipeError
from prony.model.access import Principal, Role
from prony.model.agent import AgentState
from prony.model.experiment import ExperimentState
from prony.model.queue import JobState, Modification, Submission
from prony.store import queue
from prony.store.writer import Transaction

from .fleet_fixture import FACTS, ME, SILENCE_S, FakeAgent, FleetFixture, recipe
from .parcels import SUT

pytestmark = pytest.mark.anyio

ENDS = ("complete", "partial", "failed", "cancelled")
MIXTURES = [mixture for size in (1, 2, 3, 4) for mixture in combinations(ENDS, size)]


def outcome(mixture: tuple[str, ...]) -> str:
    """Say how an experiment ends whose jobs ended so: by hand, and not as the program does it."""
    if mixture in (("failed",), ("cancelled",)):
        return mixture[0]
    return "partial" if {"partial", "cancelled"} & set(mixture) else "complete"


async def end(fleet_fixture: FleetFixture, fake_agent: FakeAgent, how: str) -> None:
    lease = await fake_agent.lease()
    if how == "cancelled":
        await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)
        await fake_agent.hand_back(lease)
    else:
        await fake_agent.finish(lease, how, failure=SUT if how == "failed" else None)


async def test_how_an_experiment_ends_follows_from_how_its_jobs_did(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    for mixture in MIXTURES:
        view = await fleet_fixture.submit(recipe(len(mixture), attempts=1))
        assert view.experiment.state == "pending"
        for how in mixture:
            await end(fleet_fixture, fake_agent, how)
        fleet_fixture.clock.step(seconds=1)
        found = await fleet_fixture.fleet.experiments.get(view.experiment.id)
        assert found.experiment.state == outcome(mixture), mixture
        assert found.experiment.ended_at is not None
        assert {state.value: count for state, count in found.counts.items()} == dict.fromkeys(mixture, 1)


async def test_an_experiment_runs_from_its_first_lease_to_its_last_result(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    states = [await fleet_fixture.state(view.experiment.id)]
    for _ in range(2):
        lease = await fake_agent.lease()
        states.append(await fleet_fixture.state(view.experiment.id))
        await fake_agent.finish(lease)
        states.append(await fleet_fixture.state(view.experiment.id))
    assert states == ["pending", "running", "running", "running", "complete"]


async def test_rows_of_new_jobs_are_made_before_the_transaction_that_adds_them(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_rows, threads = queue.make_rows, list[str]()

    def note_thread(*jobs: Any, **rest: Any) -> queue.NewRows:
        threads.append(threading.current_thread().name)
        return make_rows(*jobs, **rest)

    monkeypatch.setattr(queue, "make_rows", note_thread)
    view = await fleet_fixture.submit(recipe(3))
    changed = Modification(submission=Submission(text=recipe(2)))
    await fleet_fixture.fleet.experiments.modify(view.experiment.id, changed, who=ME)
    assert len(threads) == 2
    assert not any("writer" in name for name in threads)


async def test_an_experiment_whose_end_nobody_noticed_is_closed_by_the_round(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    await fake_agent.finish(await fake_agent.lease())
    await fleet_fixture.fleet.context.write(
        lambda transaction: transaction.connection.exec_driver_sql(
            "UPDATE experiment SET state = 'running', ended_at = NULL"
        )
    )
    await fleet_fixture.look()
    assert await fleet_fixture.state(view.experiment.id) == "complete"


# Submitted


async def test_a_key_makes_one_experiment_however_often_it_is_sent(fleet_fixture: FleetFixture) -> None:
    asked = Submission(text=recipe())
    answers = await asyncio.gather(*(fleet_fixture.fleet.experiments.submit(asked, key="k", who=ME) for _ in range(5)))
    assert len({view.experiment.id for view, _ in answers}) == 1
    assert sorted(is_new for _, is_new in answers) == [False] * 4 + [True]
    assert len((await fleet_fixture.fleet.experiments.page()).items) == 1
    with pytest.raises(ConflictError) as refused:
        await fleet_fixture.fleet.experiments.submit(Submission(text=recipe(4)), key="k", who=ME)
    assert refused.value.code == "key_reused"
    other = Principal(name="other", role=Role.SUBMITTER)
    assert (await fleet_fixture.fleet.experiments.submit(asked, key="k", who=other))[1]
    assert (await fleet_fixture.fleet.experiments.submit(asked, key="k2", who=ME))[1]
    for token in ("t1", "t2"):  # a name may stand for several tokens
        who = Principal(name="ci", role=Role.SUBMITTER, token_id=token)
        assert (await fleet_fixture.fleet.experiments.submit(asked, key="k", who=who))[1]


async def test_a_recipe_that_is_wrong_leaves_nothing_behind(fleet_fixture: FleetFixture) -> None:
    with pytest.raises(RecipeError):
        await fleet_fixture.fleet.experiments.submit(
            Submission(text="name: x\nworkload: {kind: nonsense}\n"), key="k", who=ME
        )
    assert (await fleet_fixture.fleet.experiments.submit(Submission(text=recipe()), key="k", who=ME))[1]
    with pytest.raises(InputError):
        await fleet_fixture.fleet.experiments.submit(Submission(text=recipe(150, times=150)), who=ME)
    assert len((await fleet_fixture.fleet.experiments.page()).items) == 1


async def test_a_rerun_is_a_new_experiment_that_says_of_which(fleet_fixture: FleetFixture) -> None:
    first = await fleet_fixture.submit(recipe(2), overrides=("name=renamed",))
    view, is_new = await fleet_fixture.fleet.experiments.rerun(first.experiment.id, key="again", who=ME)
    same, is_new_too = await fleet_fixture.fleet.experiments.rerun(first.experiment.id, key="again", who=ME)
    assert (is_new, is_new_too, same.experiment.id) == (True, False, view.experiment.id)
    assert view.experiment.id != first.experiment.id
    assert (view.experiment.rerun_of, view.experiment.name) == (first.experiment.id, "renamed")
    assert view.experiment.recipe == first.experiment.recipe
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.experiments.rerun("nothing", who=ME)


async def test_a_rerun_says_which_images_it_cannot_take_by_their_digests(fleet_fixture: FleetFixture) -> None:
    text = "name: boxed\nworkload: {kind: script, image: 'org/image:1', command: train}\n"
    first = await fleet_fixture.submit(text)
    view, _ = await fleet_fixture.fleet.experiments.rerun(first.experiment.id, who=ME)
    again, _ = await fleet_fixture.fleet.experiments.rerun(view.experiment.id, who=ME)
    assert again.experiment.notes == view.experiment.notes
    assert view.experiment.notes[-1] == "image org/image:1 runs by its name: the earlier results have no digest of it"


# Changed


async def test_another_recipe_replaces_all_jobs_while_none_was_lent(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(3))
    fake_agent = await fleet_fixture.agent()
    change = Modification(submission=Submission(text=recipe(5, "other")), priority=7, labels={"team": "x"})
    changed = await fleet_fixture.fleet.experiments.modify(view.experiment.id, change, who=ME)
    assert (changed.experiment.id, changed.experiment.name, changed.priority) == (view.experiment.id, "other", 7)
    assert changed.experiment.job_count == 5
    assert changed.experiment.recipe.labels == {"team": "x"}
    assert await fleet_fixture.counts(view.experiment.id) == {"waiting": 5}
    labelled = await fleet_fixture.fleet.jobs.page(label=("team", "x"))
    assert len(labelled.items) == 5
    lease = await fake_agent.lease()
    assert lease.job.labels == {"team": "x"}
    for refused in (Modification(submission=Submission(text=recipe(1))), Modification(labels={})):
        with pytest.raises(ConflictError):
            await fleet_fixture.fleet.experiments.modify(view.experiment.id, refused, who=ME)
    assert (
        await fleet_fixture.fleet.experiments.modify(view.experiment.id, Modification(priority=-5), who=ME)
    ).priority == -5
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    await fake_agent.hand_back(lease)
    with pytest.raises(ConflictError, match="one that has ended cannot be changed"):
        await fleet_fixture.fleet.experiments.modify(view.experiment.id, Modification(priority=1), who=ME)


async def test_jobs_of_another_recipe_go_only_to_who_fits_that_one(fleet_fixture: FleetFixture) -> None:
    fake_agent = await fleet_fixture.agent()
    view = await fleet_fixture.submit(recipe(1))
    await fleet_fixture.settle()  # the server has the lot in mind
    demanding = Submission(text=recipe(1, where="{os: windows}"))
    await fleet_fixture.fleet.experiments.modify(view.experiment.id, Modification(submission=demanding), who=ME)
    assert await fake_agent.poll() is None
    windows = await fleet_fixture.agent("w", facts={**FACTS, "os": "windows"})
    assert (await windows.lease()).job.experiment_id == view.experiment.id


async def test_labels_may_be_taken_away(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2) + "labels: {team: x}\n")
    assert len((await fleet_fixture.fleet.jobs.page(label=("team", "x"))).items) == 2
    await fleet_fixture.fleet.experiments.modify(view.experiment.id, Modification(labels={}), who=ME)
    assert (await fleet_fixture.fleet.jobs.page(label=("team", "x"))).items == ()
    assert [job.labels for job in await fleet_fixture.jobs(view.experiment.id)] == [{}, {}]


# Cancelled and deleted


async def test_cancelling_ends_what_waits_and_asks_what_runs(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(4))
    experiment_id = view.experiment.id
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    await one.finish(await one.lease())
    leases = await one.lease(), await two.lease()
    cancelled = await fleet_fixture.fleet.experiments.cancel(experiment_id, who=ME)
    assert cancelled.experiment.state == "running"
    assert await fleet_fixture.counts(experiment_id) == {"complete": 1, "leased": 2, "cancelled": 1}
    await one.finish(leases[0], "partial")
    await two.hand_back(leases[1])
    assert await fleet_fixture.counts(experiment_id) == {"complete": 1, "cancelled": 3}
    assert await fleet_fixture.state(experiment_id) == "partial"
    again = await fleet_fixture.fleet.experiments.cancel(experiment_id, who=ME)
    assert again.experiment.state == "partial"
    assert await one.poll() is None


async def test_a_job_that_is_handed_back_while_thousands_are_cancelled_is_cancelled_too(
    fleet_fixture: FleetFixture,
) -> None:
    view = await fleet_fixture.submit(recipe(30, times=20))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    cancelling = fleet_fixture.fleet.experiments._cancel_some
    calls: list[int] = []

    def slowly(experiment_id: str, transaction: Transaction) -> int:
        calls.append(cancelling(experiment_id, transaction))
        if len(calls) == 2:
            fleet_fixture.fleet.transitions.put_back(transaction, lease.id, "returned", "handed back", counts=False)
        return calls[-1]

    fleet_fixture.fleet.experiments._cancel_some = slowly  # type: ignore[method-assign]
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    assert calls == [200, 200, 200, 0]
    assert await fleet_fixture.counts(view.experiment.id) == {"cancelled": 600}
    assert await fleet_fixture.state(view.experiment.id) == "cancelled"


async def test_a_pending_experiment_that_is_cancelled_never_ran(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(3))
    assert (await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)).experiment.state == "cancelled"
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.experiments.cancel("nothing", who=ME)


async def test_a_job_that_waits_for_its_next_try_can_be_cancelled(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(1))
    fake_agent = await fleet_fixture.agent()
    lease = await fake_agent.lease()
    await fleet_fixture.pass_time(SILENCE_S)
    assert (await fleet_fixture.fleet.jobs.cancel(lease.job.id, who=ME)).state == "cancelled"
    assert await fleet_fixture.state(view.experiment.id) == "cancelled"
    await fleet_fixture.pass_time(10)
    assert await fake_agent.poll() is None


async def test_deleting_leaves_nothing(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2))
    fake_agent = await fleet_fixture.agent()
    await fake_agent.finish(await fake_agent.lease())
    await fleet_fixture.fleet.experiments.delete(view.experiment.id, who=ME)
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.experiments.get(view.experiment.id)
    assert (await fleet_fixture.fleet.jobs.page()).items == ()
    assert await fake_agent.poll() is None
    await fleet_fixture.look()
    assert fleet_fixture.fleet.state.lots == {}
    with pytest.raises(NotFoundError):
        await fleet_fixture.fleet.experiments.delete(view.experiment.id, who=ME)


async def test_a_late_part_of_a_result_changes_how_an_experiment_ended(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(2, attempts=1))
    one, two = await fleet_fixture.agent("one"), await fleet_fixture.agent("two")
    await one.finish(await one.lease())
    lease = await two.lease()
    await fleet_fixture.pass_time(SILENCE_S)
    assert await fleet_fixture.state(view.experiment.id) == "complete"  # though one of its jobs failed
    await two.finish(lease, "partial")
    assert await fleet_fixture.state(view.experiment.id) == "partial"
    await fleet_fixture.fleet.jobs.retry(lease.job.id, who=ME)
    assert await fleet_fixture.state(view.experiment.id) == "running"


async def test_what_is_run_in_this_home_without_a_server_is_left_alone(fleet_fixture: FleetFixture) -> None:
    made = (await fleet_fixture.submit(recipe(1))).experiment.model_copy(
        update={"id": "local", "state": ExperimentState.RUNNING, "job_count": 0}
    )
    await asyncio.to_thread(fleet_fixture.fleet.context.store.save_experiment, made)
    for act in (
        fleet_fixture.fleet.experiments.cancel,
        fleet_fixture.fleet.experiments.retry,
        fleet_fixture.fleet.experiments.delete,
    ):
        with pytest.raises(ConflictError):
            await act("local", who=ME)
    await fleet_fixture.look()
    assert await fleet_fixture.state("local") == "running"
    await fleet_fixture.fleet.experiments.delete("local", force=True, who=ME)


# Listed


async def test_pages_show_each_job_once_while_others_come(fleet_fixture: FleetFixture) -> None:
    old = await fleet_fixture.submit(recipe(40, times=30))
    seen: list[str] = []
    cursor = None
    while True:
        page = await fleet_fixture.fleet.jobs.page(limit=250, cursor=cursor)
        seen += [job.id for job in page.items]
        cursor = page.next
        if cursor is None:
            break
        await fleet_fixture.submit(recipe(5, "more"))
    assert len(seen) == len(set(seen))
    assert sum(job_id.startswith(f"{old.experiment.id}-") for job_id in seen) == 1200


async def test_pages_of_experiments_show_each_once_even_of_one_instant(fleet_fixture: FleetFixture) -> None:
    made = {(await fleet_fixture.submit(recipe(1, f"e{number}"))).experiment.id for number in range(7)}
    seen: list[str] = []
    cursor = None
    while True:
        page = await fleet_fixture.fleet.experiments.page(limit=2, cursor=cursor)
        seen += [view.experiment.id for view in page.items]
        cursor = page.next
        if cursor is None:
            break
        await fleet_fixture.submit(recipe(1, "more"))
        fleet_fixture.clock.step(seconds=1)
    assert len(seen) == len(set(seen))
    assert made - set(seen) == set()


async def test_lists_are_filtered_by_all_that_is_given(fleet_fixture: FleetFixture) -> None:
    view = await fleet_fixture.submit(recipe(3, "mine") + "labels: {team: x}\n")
    fleet_fixture.clock.step(seconds=1)
    await fleet_fixture.submit(recipe(2, "other"))
    fake_agent = await fleet_fixture.agent()
    await fake_agent.lease()
    fleet, mine = fleet_fixture.fleet, view.experiment.id
    asked: list[tuple[int, Callable[[], object]]] = [
        (5, fleet.jobs.page),
        (3, lambda: fleet.jobs.page(experiment=mine)),
        (1, lambda: fleet.jobs.page(agent=fake_agent.id)),
        (4, lambda: fleet.jobs.page(state=JobState.WAITING)),
        (2, lambda: fleet.jobs.page(state=JobState.WAITING, experiment=mine, label=("team", "x"))),
        (0, lambda: fleet.jobs.page(label=("team", "y"))),
        (1, lambda: fleet.experiments.page(name="mine")),
        (1, lambda: fleet.experiments.page(state=ExperimentState.PENDING)),
        (1, lambda: fleet.agents.page(state=AgentState.BUSY)),
        (0, lambda: fleet.agents.page(state=AgentState.ACTIVE)),
    ]
    assert [len((await ask()).items) for _, ask in asked] == [count for count, _ in asked]  # type: ignore[misc]


@pytest.mark.parametrize("cursor", ["x", "-1", "1" * 30, "é"])
async def test_a_cursor_that_is_none_is_refused(local: FleetFixture, cursor: str) -> None:
    for ask in (local.fleet.jobs.page, local.fleet.experiments.page):
        with pytest.raises(InputError) as refused:
            await ask(cursor=cursor)
        assert refused.value.code == "bad_cursor"


async def test_agents_come_in_pages_too(fleet_fixture: FleetFixture) -> None:
    made = {(await fleet_fixture.agent(f"a{number}")).id for number in range(5)}
    first = await fleet_fixture.fleet.agents.page(limit=3)
    second = await fleet_fixture.fleet.agents.page(limit=3, cursor=first.next)
    assert {agent.id for agent in (*first.items, *second.items)} == made
    assert second.next is None
