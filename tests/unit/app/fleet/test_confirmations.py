from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from prony.analyse.history.confirmation import ROUNDS
from prony.analyse.history.machine_record import CALM_RESULTS
from prony.instruments.samples import SAMPLES, sample_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.alarm import NewAlarm
from prony.model.calibration import Calibration
from prony.model.estimate import Estimate
from prony.model.experiment import ExperimentState
from prony.model.history import Acknowledgement, Change, ChangeState
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.queue import ExperimentView
from prony.model.result import CanaryReading, Effective, ModelFacts, Repetition
from prony.store.database import writing
from prony.store.home import Home
from prony.store.series import keep_change
from servers.receiver import Receiver

from .fleet_fixture import FACTS, ME, SETTINGS, FakeAgent, FleetFixture, open_fleet, recipe
from .parcels import AT, SUT, repacked, write

pytestmark = pytest.mark.anyio
# Microseconds: results that vary by a per cent, in no order; and some that are a tenth worse.
STEADY = [1000 + 2 * ((place * 7) % 11 - 5) for place in range(46)]
WORSE = [1100 + 2 * ((place * 5) % 7 - 3) for place in range(20)]


@dataclass
class Lab:
    """An agent whose every result takes as long as a test says, measured a minute after the one before."""

    fleet_fixture: FleetFixture
    fake_agent: FakeAgent
    folder: Path
    version: str = "1"
    model: str = "0" * 64
    minute: int = 0
    canary_ms: float | None = 1.0
    seen: list[Job] = field(default_factory=list)

    async def bring(self, lease: Lease, micros: int, version: str = "") -> None:
        self.minute += 1
        self.seen.append(lease.job)
        at, place = AT + timedelta(minutes=self.minute), self.folder / f"{self.minute}"
        effective = Effective(
            engine="null", engine_version=version or self.version, python="3", device="cpu", precision="none"
        )
        canary = None if self.canary_ms is None else CanaryReading(compute_ms=self.canary_ms, memory_ms=2.0)
        runs = tuple(
            Repetition(index=index, started_at=at, canary_before=canary, canary_after=canary) for index in range(2)
        )
        model = ModelFacts(source="zoo:noop", path="noop", format="", sha256=self.model, size_bytes=1, files=("noop",))
        write(place, lease.job, started_at=at, repetitions=runs, effective=effective, model=model)
        begins = list(range(10_000_000, 110_000_000, 10_000_000))
        ends = [begin + 1000 * micros for begin in begins]
        sample_frame([(run, "measure", begins, ends) for run in range(2)]).write_parquet(place / SAMPLES)
        assert (await self.fake_agent.send(lease, repacked(place))).accepted

    async def record(self, values: Sequence[int]) -> None:
        """Run the recipe once for each number, and have all of it judged."""
        for micros in values:
            await self.fleet_fixture.submit(recipe(1))
            await self.bring(await self.fake_agent.lease(), micros)
        await self.fleet_fixture.fleet.histories.judge_waiting()

    async def carry_out(self, values: Sequence[int], version: str = "") -> None:
        """Carry out what waits for the agent, and nothing else."""
        for micros in values:
            await self.bring(await self.fake_agent.lease(), micros, version)
        assert await self.fake_agent.poll() is None

    async def repeat(self, values: Sequence[int]) -> None:
        """Carry out the rounds of a repetition, and have each judged when the next is due."""
        left = list(values)
        for count in ROUNDS:
            if left:
                await self.carry_out(left[:count])
                del left[:count]
                self.fleet_fixture.clock.step(seconds=15)  # results come each minute, so rounds every ten seconds
                await self.attend()

    async def attend(self) -> None:
        self.fleet_fixture.clock.step(seconds=1)  # so that experiments are listed in the order in which they were made
        await self.fleet_fixture.fleet.confirmations.attend()

    async def change(self) -> Change:
        (found,) = [
            one
            for state in ChangeState
            for one in (await self.fleet_fixture.fleet.histories.changes(state=state)).items
        ]
        return found

    async def confirming(self) -> list[ExperimentView]:
        views = (await self.fleet_fixture.fleet.experiments.page(limit=500)).items
        return [view for view in views if view.experiment.confirms is not None][::-1]


@pytest.fixture(scope="module")
def steady_home(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> Home:
    """A home whose one agent has brought the steady results, to be copied: to bring them takes most of a test."""
    folder = tmp_path_factory.mktemp("steady")
    made = Home(folder / "home").create()
    shutil.copy(migrated_file, made.database)

    async def bring_all() -> None:
        async with open_fleet(made) as fleet_fixture:
            await Lab(fleet_fixture, await fleet_fixture.agent(), folder).record(STEADY)

    asyncio.run(bring_all())
    return made


@pytest.fixture
def steady(home: Home, steady_home: Home) -> Home:
    """This test's home, with the steady results in it."""
    return Home(shutil.copytree(steady_home.root, home.root, dirs_exist_ok=True))


@pytest.fixture
async def local(steady: Home) -> AsyncIterator[FleetFixture]:
    async with open_fleet(steady) as made:
        yield made


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        request.getfixturevalue("steady")
        return ""
    return str(request.getfixturevalue("shared_url"))


async def lab_of(fleet_fixture: FleetFixture, folder: Path) -> Lab:
    """Return a lab that has brought the steady results; into a database that is empty they are brought now."""
    known = (await fleet_fixture.fleet.agents.page()).items
    if known:
        fake_agent = FakeAgent(fleet_fixture, "a", "device-a", dict(FACTS), id=known[0].id)
        await fake_agent.enrol()
        return Lab(fleet_fixture, fake_agent, folder, minute=len(STEADY))
    lab = Lab(fleet_fixture, await fleet_fixture.agent(), folder)
    await lab.record(STEADY)
    return lab


async def alarmed(fleet_fixture: FleetFixture, there: Receiver, when: str) -> None:
    asked = NewAlarm.model_validate({"name": when.replace(" ", "-"), "when": when, "to": [there.url()], "quiet": "1s"})
    await fleet_fixture.fleet.alarms.add(asked, who=ME)


async def told(fleet_fixture: FleetFixture, there: Receiver) -> list[tuple[str, str, str]]:
    """Let time go on until all is told; return which alarm told what of which kind."""
    for _ in range(3):
        fleet_fixture.clock.step(seconds=20)
        fleet_fixture.seconds += 20
        await fleet_fixture.look()
    return [(one.json["when"], one.json["kind"], item["kind"]) for one in there.received for item in one.json["items"]]


async def test_a_regression_is_run_again_on_its_agent_and_pages_only_when_that_confirms_it(
    fleet_fixture: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(fleet_fixture, there, "regression")
    lab = await lab_of(fleet_fixture, tmp_path)
    other = await fleet_fixture.agent("b")
    await lab.record(WORSE[:4])
    assert (await lab.change()).state is ChangeState.FOUND
    await lab.attend()
    (view,) = await lab.confirming()
    change = await lab.change()
    assert (view.experiment.confirms, view.experiment.job_count, view.priority) == (change.id, ROUNDS[0], -100)
    assert view.submitted_by == "prony"
    assert await told(fleet_fixture, there) == []
    assert await other.poll() is None
    await fleet_fixture.submit(recipe(1))  # whatever a person wants goes first
    await lab.bring(await lab.fake_agent.lease(), WORSE[4])
    assert lab.seen[-1].confirms is None
    await lab.repeat(WORSE[:7])
    decided = await lab.change()
    assert decided.state is ChangeState.CONFIRMED
    assert any(step.startswith("repeated: 7 runs of the same job against 46") for step in decided.path)
    assert any("not side by side" in step for step in decided.path)
    why = "confirming runs: not run alternately: no known difference between the results before and after"
    assert decided.path.count(why) == 1
    assert any("calibrations before and after are missing" in step for step in decided.path)
    assert await told(fleet_fixture, there) == [("regression", "firing", "regression")]
    series = await fleet_fixture.fleet.histories.series()
    assert [one.runs for one in series.items] == [len(STEADY) + 5]  # the runs that confirm are no points
    await lab.attend()
    assert [view.experiment.job_count for view in await lab.confirming()] == [3, 2, 2]


@pytest.mark.slow
async def test_without_a_canary_runs_of_one_version_decide_nothing_and_the_history_alone_tells(
    home: Home, migrated_file: Path, there: Receiver, tmp_path: Path
) -> None:
    shutil.copy(migrated_file, home.database)
    async with open_fleet(home) as fleet_fixture:
        await alarmed(fleet_fixture, there, "regression")
        lab = Lab(fleet_fixture, await fleet_fixture.agent(), tmp_path, canary_ms=None)
        await lab.record(STEADY + WORSE[:4])
        await lab.attend()
        await lab.repeat(WORSE[:7])
        change = await lab.change()
        assert change.state is ChangeState.FOUND
        assert change.path[-1].endswith("but it is unknown whether the machine or the code changed")
        assert await told(fleet_fixture, there) == [("regression", "firing", "regression")]
        await lab.attend()
        assert len(await lab.confirming()) == 3


@pytest.mark.slow
async def test_too_few_results_to_know_the_machine_leave_a_repeated_regression_open_and_page_nobody(
    home: Home, migrated_file: Path, there: Receiver, tmp_path: Path
) -> None:
    shutil.copy(migrated_file, home.database)
    async with open_fleet(home) as fleet_fixture:
        await alarmed(fleet_fixture, there, "regression")
        lab = Lab(fleet_fixture, await fleet_fixture.agent(), tmp_path)
        await lab.record(STEADY[: CALM_RESULTS - 1] + WORSE[:4])
        await lab.attend()
        await lab.repeat(WORSE[:7])
        change = await lab.change()
        assert change.state is ChangeState.FOUND
        assert change.path[-1].endswith("use `prony duet`")
        assert await told(fleet_fixture, there) == []
        await lab.attend()
        assert len(await lab.confirming()) == 3


async def test_a_round_is_begun_only_when_the_pause_after_the_one_before_is_over(
    local: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    await lab.carry_out(WORSE[:3])
    for _ in range(3):
        await lab.attend()
    assert len(await lab.confirming()) == 1
    local.clock.step(seconds=15)
    await lab.attend()
    assert len(await lab.confirming()) == 2


async def test_results_of_a_machine_whose_canary_slowed_down_are_no_regression_and_no_runs_are_made(
    local: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(local, there, "regression")
    lab = await lab_of(local, tmp_path)
    lab.canary_ms = 1.1
    await lab.record(WORSE[:4])
    change = await lab.change()
    assert (change.kind, change.state) == ("environment", ChangeState.FOUND)
    assert change.path[-1] == "the compute canary moved with it, so the machine changed"
    await lab.attend()
    assert await lab.confirming() == []
    assert await told(local, there) == []


async def test_what_the_runs_do_not_show_is_rejected_and_pages_nobody(
    local: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(local, there, "regression")
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    await lab.repeat(STEADY[:7])
    assert (await lab.change()).state is ChangeState.REJECTED
    assert await told(local, there) == []


async def test_who_asks_for_suspicions_is_told_of_them_and_of_what_became_of_them(
    local: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(local, there, "suspect")
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    assert await told(local, there) == [("suspect", "firing", "suspect")]
    await lab.attend()
    await lab.repeat(WORSE[:7])
    assert sorted((await told(local, there))[1:]) == [
        ("suspect", "firing", "regression"), ("suspect", "resolved", "suspect")
    ]  # fmt: skip
    await local.fleet.histories.ack((await lab.change()).id, Acknowledgement(reason="meant"), who=ME)
    assert (await told(local, there))[3:] == [("suspect", "resolved", "regression")]


async def test_one_result_alone_costs_one_run_when_it_was_a_spike(local: FleetFixture, tmp_path: Path) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record([1300])
    assert (await lab.change()).state is ChangeState.SUSPECT
    await lab.attend()
    assert [view.experiment.job_count for view in await lab.confirming()] == [1]
    await lab.carry_out([1002])
    await lab.attend()
    decided = await lab.change()
    assert (decided.state, decided.path[-1]) == (
        ChangeState.REJECTED, "repeated: one more run was at the old level, so this was a spike"
    )  # fmt: skip
    await lab.attend()
    assert len(await lab.confirming()) == 1


async def test_one_result_alone_that_comes_again_is_run_seven_times(local: FleetFixture, tmp_path: Path) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record([1100])
    await lab.attend()
    await lab.carry_out([1103])
    await lab.attend()
    await lab.repeat(WORSE[:7])
    assert (await lab.change()).state is ChangeState.CONFIRMED


async def test_two_versions_of_an_engine_take_turns_and_promising_pairs_are_followed_by_more(
    fleet_fixture: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(fleet_fixture, tmp_path)
    lab.version = "2.0+cpu"
    await lab.record(WORSE[:4])
    await lab.attend()
    (first,) = await lab.confirming()
    duet = first.experiment.recipe.duet
    assert duet is not None
    versions = [str(side["workload.engine_version"]) for side in (duet.a, duet.b)]
    assert (versions, duet.pairs, first.experiment.job_count) == (["1", "2.0"], 7, 14)

    async def take_turns(pairs: int, better: set[int]) -> None:
        for _ in range(2 * pairs):
            lease = await lab.fake_agent.lease()
            assert isinstance(lease.job.workload, ModelWorkload)
            is_slow = lease.job.side == "b" and lease.job.pair not in better
            assert lease.job.workload.engine_version == versions[lease.job.side == "b"]
            await lab.bring(lease, 1050 if is_slow else 1000 + (lease.job.pair or 0), versions[0])

    await take_turns(7, better={3})
    await lab.attend()
    assert (await lab.change()).state is ChangeState.FOUND
    second = (await lab.confirming())[1]
    assert second.experiment.job_count == 26
    await take_turns(13, better=set())
    await lab.attend()
    decided = await lab.change()
    assert decided.state is ChangeState.CONFIRMED
    assert decided.path[-1] == "side by side: 19 of 20 pairs agree, +4.4 % [+4.2 %, +4.7 %], confirmed"


async def test_two_files_of_a_model_take_turns_and_where_the_old_one_is_gone_that_is_told(
    local: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(local, tmp_path)
    lab.model = "1" * 64
    await lab.record(WORSE[:4])
    await lab.attend()
    (view,) = await lab.confirming()
    assert view.experiment.recipe.duet is not None
    assert view.experiment.recipe.duet.a == {"workload.checksum": f"sha256:{'0' * 64}"}
    for _ in range(14):
        await lab.fake_agent.finish(await lab.fake_agent.lease(), "failed", failure=SUT)
    await lab.attend()
    path = (await lab.change()).path
    text = "7 pairs of model sha256:0000000000 and sha256:1111111111, run alternately"
    assert f"confirming runs: {text}, in {view.experiment.id}" in path
    assert f"confirming runs: {view.experiment.id} failed, only 0 complete pairs were measured: {SUT.message}" in path
    assert path[-1].startswith("confirming runs: the same job 3 times more")


async def test_a_batch_that_fails_leaves_the_change_and_is_tried_once_more(
    fleet_fixture: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(fleet_fixture, there, "regression")
    await alarmed(fleet_fixture, there, "experiment failed")
    lab = await lab_of(fleet_fixture, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    (view,) = await lab.confirming()
    await fleet_fixture.fleet.experiments.cancel(view.experiment.id, who=ME)
    await lab.attend()
    assert len(await lab.confirming()) == 2
    assert (await lab.change()).state is ChangeState.FOUND
    assert await told(fleet_fixture, there) == []
    for _ in range(ROUNDS[0]):
        await lab.fake_agent.finish(await lab.fake_agent.lease(), "failed", failure=SUT)
    await lab.attend()
    await lab.attend()
    change = await lab.change()
    assert len(await lab.confirming()) == 2
    assert [step.rpartition(" failed, ")[2] for step in change.path[-2:]] == [
        change.path[-2], "only 0 of 3 runs are usable"
    ]  # fmt: skip
    # Nothing will decide it now, so what the history is sure of is told.
    assert await told(fleet_fixture, there) == [("regression", "firing", "regression")]


async def test_more_runs_than_a_day_allows_are_not_made_and_that_is_told(
    steady: Home, there: Receiver, tmp_path: Path
) -> None:
    async with open_fleet(steady, settings=replace(SETTINGS, confirm_runs_per_day=10)) as fleet_fixture:
        await alarmed(fleet_fixture, there, "regression")
        lab = await lab_of(fleet_fixture, tmp_path)
        lab.version = "2"
        await lab.record(WORSE[:4])
        for _ in range(2):
            await lab.attend()
        assert await lab.confirming() == []
        assert (
            (await lab.change())
            .path[-1]
            .startswith("confirming runs: not run yet, 14 more would exceed the limit of 10")
        )
        assert await told(fleet_fixture, there) == [("regression", "firing", "regression")]


async def test_with_confirming_off_what_the_history_is_sure_of_is_told(
    steady: Home, there: Receiver, tmp_path: Path
) -> None:
    async with open_fleet(steady, settings=replace(SETTINGS, confirm_runs_per_day=0)) as fleet_fixture:
        await alarmed(fleet_fixture, there, "regression")
        lab = await lab_of(fleet_fixture, tmp_path)
        await lab.record(WORSE[:4])
        await lab.attend()
        assert await lab.confirming() == []
        assert await told(fleet_fixture, there) == [("regression", "firing", "regression")]


async def test_a_change_of_an_agent_that_is_away_is_told_by_the_history_and_run_when_it_is_back(
    local: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(local, there, "regression")
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await local.fleet.agents.drain(lab.fake_agent.id, who=ME)
    await local.settle()
    for _ in range(2):
        await lab.attend()
    change = await lab.change()
    assert change.path[-1] == (
        f"confirming runs: not run yet, agent {lab.fake_agent.id}, which measured it, is not available"
    )
    assert await told(local, there) == [("regression", "firing", "regression")]
    await local.fleet.agents.reset(lab.fake_agent.id, who=ME)
    await lab.fake_agent.beat()
    await lab.attend()
    await lab.repeat(WORSE[:7])
    assert (await lab.change()).state is ChangeState.CONFIRMED


async def test_a_change_of_an_agent_that_was_removed_is_told_by_the_history_alone(
    local: FleetFixture, there: Receiver, tmp_path: Path
) -> None:
    await alarmed(local, there, "regression")
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await local.fleet.agents.remove(lab.fake_agent.id, who=ME)
    await local.settle()
    await lab.attend()
    assert (await lab.change()).path[-1].endswith(f"none, agent {lab.fake_agent.id}, which measured it, was removed")
    assert await told(local, there) == [("regression", "firing", "regression")]


async def test_a_regression_right_after_a_spike_that_was_rejected_is_a_change_of_its_own(
    local: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record([1300])
    await lab.attend()
    await lab.carry_out([1002])
    await lab.attend()
    rejected = await lab.change()
    assert rejected.state is ChangeState.REJECTED
    await lab.record([1001, 999, *(2 * value for value in WORSE[:6])])
    (found,) = (await local.fleet.histories.changes(state=ChangeState.FOUND)).items
    assert found.id != rejected.id
    assert found.effect > 1
    await lab.attend()
    await lab.repeat([2 * value for value in WORSE[:7]])
    (confirmed,) = (await local.fleet.histories.changes(state=ChangeState.CONFIRMED)).items
    assert confirmed.id == found.id
    assert [one.id for one in (await local.fleet.histories.changes(state=ChangeState.REJECTED)).items] == [rejected.id]


async def test_what_was_rejected_is_asked_again_when_it_goes_on(local: FleetFixture, tmp_path: Path) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    await lab.repeat(STEADY[:7])
    rejected = await lab.change()
    assert rejected.state is ChangeState.REJECTED
    await lab.record(WORSE[4:7])
    assert (await lab.change()).id == rejected.id
    await lab.record(WORSE[7:14])
    (again,) = (await local.fleet.histories.changes(state=ChangeState.FOUND)).items
    assert (again.job_id, again.id == rejected.id) == (rejected.job_id, False)
    await lab.attend()
    await lab.repeat(WORSE[:7])
    assert [one.id for one in (await local.fleet.histories.changes(state=ChangeState.CONFIRMED)).items] == [again.id]


@pytest.mark.slow
async def test_of_two_servers_one_makes_the_runs(pair: tuple[FleetFixture, FleetFixture], tmp_path: Path) -> None:
    one, two = pair
    lab = await lab_of(one, tmp_path)
    await lab.record(WORSE[:4])
    await two.look()
    await asyncio.gather(*(fleet_fixture.fleet.confirmations.look_after() for fleet_fixture in (one, two, one, two)))
    assert len(await lab.confirming()) == 1
    for number, count in enumerate(ROUNDS[:3], 1):
        await one.look()  # the runs may be made by the other, whose word of them is on its way
        await lab.carry_out(WORSE[:count])
        for fleet_fixture in pair:
            fleet_fixture.clock.step(seconds=15)
        await asyncio.gather(*(fixture.fleet.confirmations.look_after() for fixture in (one, two, one, two)))
        assert len(await lab.confirming()) == min(number + 1, 3)
    assert (await lab.change()).state is ChangeState.CONFIRMED


async def test_what_a_person_decided_meanwhile_stays_so_and_its_runs_are_stopped(
    local: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    await lab.bring(await lab.fake_agent.lease(), WORSE[0])
    await local.fleet.histories.ack((await lab.change()).id, Acknowledgement(expected=True), who=ME)
    await lab.attend()
    assert await lab.fake_agent.poll() is None
    assert [view.experiment.state for view in await lab.confirming()] == [ExperimentState.PARTIAL]
    await lab.attend()
    assert (await lab.change()).state is ChangeState.ACKNOWLEDGED
    assert len(await lab.confirming()) == 1


@pytest.mark.parametrize("is_backfilled", [False, True])
async def test_a_machine_that_changed_too_leaves_the_change_undecided(
    local: FleetFixture, tmp_path: Path, is_backfilled: bool
) -> None:
    lab = await lab_of(local, tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    change = await lab.change()
    if is_backfilled:  # the commit before it was measured after it
        with writing(local.fleet.context.engine) as connection:
            keep_change(connection, change.model_copy(update={"last_good_job_id": lab.seen[-1].id}))
    (series,) = (await local.fleet.histories.series()).items
    changed_at = change.measured_at + timedelta(seconds=1) if is_backfilled else local.clock.now()
    for name, at, value in (("before", AT, 10.0), ("after", changed_at, 11.0)):
        figure = Estimate(value=value, unit="ms", low=value - 0.1, high=value + 0.1, count=9, method="t")
        taken = Calibration(
            id=name, hardware_id=series.hardware_id, software_id="sw", taken_at=at, figures={"kernel_ms": figure}
        )
        local.fleet.context.store.save_calibration(taken)
    await lab.repeat(WORSE[:7])
    left = await lab.change()
    assert (left.id, left.state) == (change.id, ChangeState.FOUND)
    assert any("the machine changed too, canary kernel_ms from 10 to 11 ms" in step for step in left.path)
    await lab.attend()
    assert len(await lab.confirming()) == 3


async def test_versions_that_cannot_be_run_side_by_side_any_more_are_followed_by_the_same_job_again(
    local: FleetFixture, tmp_path: Path
) -> None:
    lab = await lab_of(local, tmp_path)
    lab.version = "2"
    await lab.record(WORSE[:4])
    await lab.attend()
    for _ in range(14):
        await lab.fake_agent.finish(await lab.fake_agent.lease(), "failed", failure=SUT)
    await lab.attend()
    first, second = await lab.confirming()
    assert (first.experiment.recipe.duet is None, second.experiment.recipe.duet) == (False, None)
    await lab.repeat(WORSE[:7])
    decided = await lab.change()
    assert decided.state is ChangeState.CONFIRMED
    assert any("only 0 complete pairs were measured" in step for step in decided.path)


async def test_a_server_that_is_killed_in_the_middle_goes_on_with_the_batch(steady: Home, tmp_path: Path) -> None:
    killed = open_fleet(steady)
    lab = await lab_of(await killed.__aenter__(), tmp_path)
    await lab.record(WORSE[:4])
    await lab.attend()
    for micros in WORSE[:2]:
        await lab.bring(await lab.fake_agent.lease(), micros)
    # Nothing of it is closed: the next one finds the database as a kill leaves it.
    async with open_fleet(steady) as fleet_fixture:
        again = replace(lab, fleet_fixture=fleet_fixture, fake_agent=lab.fake_agent.at(fleet_fixture))
        await again.fake_agent.enrol()
        await again.attend()
        for part in (WORSE[2:3], WORSE[3:5], WORSE[5:7]):
            await again.carry_out(part)
            fleet_fixture.clock.step(seconds=15)
            await again.attend()
        assert (await again.change()).state is ChangeState.CONFIRMED
        assert [view.experiment.job_count for view in await again.confirming()] == [3, 2, 2]
    await killed.__aexit__(None, None, None)
