"""A server judges the histories of what it recorded, tells alarms, and answers for what a person decides."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import pytest

from prony.errors import NotFoundError
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Estimate, Grade, Summary, Verdict
from prony.model.experiment import Experiment, ExperimentState
from prony.model.history import Acknowledgement, ChangeState, NewBaseline, SeriesState
from prony.model.job import Job
from prony.model.metric import HEADLINE
from prony.model.recipe import Recipe
from prony.store.database import writing
from servers.receiver import Receiver

from .alarming import alarmed, pass_to, told
from .fleet_fixture import ME, FleetFixture
from .parcels import AT, write

pytestmark = pytest.mark.anyio
_WORKLOAD = ModelWorkload(kind="model", model="zoo:noop", engine="null")


def numbers(count: int, *, change: int) -> list[float]:
    values = 2.5 * (1 + np.random.default_rng(1).normal(0, 0.01, count))
    values[change:] *= 1.1
    return [float(value) for value in values]


def keep(fleet_fixture: FleetFixture, values: Sequence[float], begin: int = 0, name: str = "nightly") -> None:
    """Record results as arrivals do, one a minute."""
    store = fleet_fixture.fleet.context.store
    for place, value in enumerate(values, begin):
        at = AT + timedelta(minutes=place)
        made = Experiment(
            id=f"e{place:03d}", name=name, recipe=Recipe(name=name, workload=_WORKLOAD), created_at=at,
            state=ExperimentState.COMPLETE, job_count=1,
        )  # fmt: skip
        job = Job(id=f"e{place:03d}-1", experiment_id=made.id, name=name, workload=_WORKLOAD)
        store.save_experiment(made, [job])
        folder = write(store.home.result_folder(made.id, job.id), job, started_at=at)
        estimate = Estimate(value=value, unit="ms", count=5, method="t")
        verdict = Verdict(grade=Grade.VALID)
        summary = Summary(job_id=job.id, title=job.title, estimates={HEADLINE: estimate}, verdict=verdict)
        store.record_result(folder, summary)


async def test_a_regression_is_found_told_acknowledged_and_over(fleet_fixture: FleetFixture, there: Receiver) -> None:
    await alarmed(fleet_fixture, there, "regression")
    keep(fleet_fixture, numbers(30, change=24))
    (change,) = await fleet_fixture.fleet.histories.judge_waiting()
    assert change.state is ChangeState.FOUND
    assert await fleet_fixture.fleet.histories.judge_waiting() == ()
    await fleet_fixture.fleet.confirmations.look_after()  # nobody can run it again: it came from no agent
    assert (await fleet_fixture.fleet.histories.open_changes()) == {("regression", "found"): 1}
    await pass_to(fleet_fixture, seconds=11)
    assert told(there) == [("firing", 1)]
    assert there.received[0].json["items"][0]["facts"]["change"] == change.id
    said = await fleet_fixture.fleet.histories.ack(change.id, Acknowledgement(reason="known"), who=ME)
    assert said.acknowledgement is not None
    assert (said.acknowledgement.who, said.acknowledgement.reason) == (ME.name, "known")
    assert (await fleet_fixture.fleet.histories.changes()).items == ()
    assert [one.id for one in (await fleet_fixture.fleet.histories.changes(state=ChangeState.ACKNOWLEDGED)).items] == [
        change.id
    ]
    await pass_to(fleet_fixture, minutes=60)
    assert told(there)[-1] == ("resolved", 1)


async def test_series_are_listed_in_pages_and_shown(fleet_fixture: FleetFixture) -> None:
    keep(fleet_fixture, numbers(5, change=5))
    await fleet_fixture.fleet.histories.judge_waiting()
    page = await fleet_fixture.fleet.histories.series(name="nightly", limit=1)
    (series,) = page.items
    assert page.next is None
    assert (series.state, series.runs) == (SeriesState.LEARNING, 5)
    assert (await fleet_fixture.fleet.histories.series(state=SeriesState.STEADY)).items == ()
    assert len((await fleet_fixture.fleet.histories.history(series.id)).points) == 5
    with pytest.raises(NotFoundError, match="no series"):
        await fleet_fixture.fleet.histories.history("s0")


async def test_a_series_that_cannot_be_judged_keeps_no_other_waiting(
    fleet_fixture: FleetFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prony.app.fleet.histories._AT_ONCE", 1)
    heard: list[dict[str, object]] = []
    fleet_fixture.fleet.context.hooks.append(lambda happened, facts: heard.extend([facts] * (happened == "not_judged")))
    for number, name in enumerate(("one", "two")):
        keep(fleet_fixture, numbers(2, change=2), begin=10 * number, name=name)
    histories = fleet_fixture.fleet.histories
    broken, sound = sorted((await histories.series()).items, key=lambda one: one.id)
    with writing(fleet_fixture.fleet.context.engine) as connection:
        connection.exec_driver_sql(f"UPDATE series SET document = '{{}}' WHERE id = '{broken.id}'")
    for _ in range(6):
        await histories.judge_waiting()
    assert (await histories.history(sound.id)).series.runs == 2
    assert [one["series"] for one in heard] == [broken.id]


async def test_a_baseline_is_pinned_and_forgotten(fleet_fixture: FleetFixture) -> None:
    keep(fleet_fixture, numbers(3, change=3))
    (series,) = (await fleet_fixture.fleet.histories.series()).items
    pinned = await fleet_fixture.fleet.histories.set_baseline(series.id, NewBaseline(reason="release"), who=ME)
    assert await fleet_fixture.fleet.histories.baseline(series.id) == pinned
    await fleet_fixture.fleet.histories.clear_baseline(series.id, who=ME)
    with pytest.raises(NotFoundError, match="no baseline"):
        await fleet_fixture.fleet.histories.baseline(series.id)
