"""Results join their histories whichever way they come, and histories are judged, acknowledged and made again."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from lanes import only_slowly
from prony.analyse.history.detect import Rules
from prony.app import change_decisions
from prony.app import history as steps
from prony.app.local_histories import LocalHistories
from prony.cli.commands.watch_regressions import fails_a_build
from prony.errors import ConflictError, InputError, NotFoundError
from prony.kinds.model.schema import ModelWorkload
from prony.kinds.service.schema import ServiceWorkload
from prony.model.calibration import Calibration
from prony.model.estimate import Estimate, Grade
from prony.model.history import Acknowledgement, ChangeState, History, NewBaseline, SeriesState
from prony.model.job import Job
from prony.model.load import Load
from prony.model.recipe import Measure
from prony.store import confirmations, history_tables
from prony.store import series as rows
from prony.store.database import reading, writing
from prony.store.series_points import fingerprint
from prony.store.store import Store

from .histories import fill, numbers, record
from .nouns import NOW, summary


@pytest.fixture(params=["sqlite", *only_slowly("postgres")])
def database_url(request: pytest.FixtureRequest) -> str:
    """Both databases, but PostgreSQL only in the thorough form: what is judged is the same."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


def only(store: Store) -> History:
    """Return the only history there is, judged."""
    own = LocalHistories(store)
    (series,) = own.page().items
    return own.get(series.id)


def test_a_regression_is_told_with_all_that_is_known_of_it(store: Store) -> None:
    made = fill(store, numbers(change=26))
    history = only(store)
    assert history.series.state is SeriesState.REGRESSION
    (change,) = history.changes
    assert (change.kind, change.state) == ("regression", ChangeState.FOUND)
    assert change.job_id == made[26].id
    assert change.last_good_job_id == made[25].id
    assert change.low is not None
    assert change.high is not None
    assert change.low < 0.08 < change.high
    assert (change.before.runs, change.after.runs) == (26, 10)
    assert change.noise.grade in ("quiet", "normal")
    assert change.sentence.startswith("Inference p50 of batch_size=1 on bench got worse by +")
    assert [segment.begin for segment in history.segments] == [0, 26]


def test_a_change_whose_effect_is_gone_is_closed_although_no_improvement_was_found(store: Store) -> None:
    rising = [1.05, 1.06, 1.05, 1.055, 1.05]
    noisy = [1.055, 0.95, 1.045, 0.955, 1.05, 0.945] * 6
    values = [*numbers(26), *(2.5 * factor for factor in (*rising, *noisy))]
    fill(store, values, range(31))
    (found,) = only(store).changes
    assert (found.kind, found.state) == ("regression", ChangeState.FOUND)
    for place in range(31, len(values)):
        record(store, place, values[place])
    (closed,) = only(store).changes
    assert (closed.id, closed.state) == (found.id, ChangeState.RESOLVED)
    assert closed.path[-1] == "the latest results are back at the level before the change, so it is closed"
    assert closed.sentence.endswith("It is over: the level is back to normal.")
    assert only(store).series.state is SeriesState.STEADY
    LocalHistories(store).rebuild(lambda _, __: None)
    assert [one.state for one in only(store).changes] == [ChangeState.RESOLVED]


def test_a_regression_that_was_mended_and_returns_is_told_again_and_the_first_stays_over(store: Store) -> None:
    values = numbers(90)
    for place in (*range(26, 46), *range(68, 90)):
        values[place] *= 1.08
    fill(store, values)
    expected = [
        ("regression", ChangeState.RESOLVED),
        ("improvement", ChangeState.FOUND),
        ("regression", ChangeState.FOUND),
    ]
    history = only(store)
    assert [(one.kind, one.state) for one in history.changes] == expected
    assert history.series.state is SeriesState.REGRESSION
    assert history.changes[-1].job_id == "run0068b1-0"
    LocalHistories(store).rebuild(lambda _, __: None)
    assert [(one.kind, one.state) for one in only(store).changes] == expected


def test_results_that_are_slower_as_their_canary_is_are_no_regression(store: Store) -> None:
    values = numbers(50, change=40)
    fill(store, values, canaries=[1.0 if place < 40 else 1.08 for place in range(50)])
    (change,) = only(store).changes
    assert (change.kind, change.path[-1]) == (
        "environment", "the compute canary moved with it, so the machine changed"
    )  # fmt: skip
    assert change.sentence.count("The machine changed at this point, so the code is probably not the cause.") == 1


def test_a_watched_metric_opens_a_change_of_its_own(store: Store) -> None:
    tails = numbers(40, change=30, seed=2)
    for place, (value, tail) in enumerate(zip(numbers(40), tails, strict=True)):
        record(store, place, value, watch={"inference_ms.p90": tail})
    history = only(store)
    (change,) = history.changes
    assert (change.metric, change.kind, change.state) == ("inference_ms.p90", "regression", ChangeState.FOUND)
    assert change.job_id == "run0030b1-0"
    assert history.series.state is SeriesState.REGRESSION
    assert history.metric == "inference_ms.p50"
    assert only(store).changes == history.changes
    LocalHistories(store).ack(change.id, Acknowledgement())
    assert [one.state for one in only(store).changes] == [ChangeState.ACKNOWLEDGED]
    assert only(store).series.state in (SeriesState.STEADY, SeriesState.LEARNING)


def test_a_metric_is_watched_under_its_name_alone_too(store: Store) -> None:
    for place, (value, peak) in enumerate(zip(numbers(40), numbers(40, change=30, seed=2), strict=True)):
        record(store, place, value, watch={"rss_peak_mib.p50": peak}, watched=["rss_peak_mib"])
    assert [(one.metric, one.kind) for one in only(store).changes] == [("rss_peak_mib.p50", "regression")]


def test_several_watched_metrics_share_the_false_alarms_of_one() -> None:
    shared = Rules().share_among(4)
    assert (4 * shared.alpha, 4 * shared.suspicion) == (Rules().alpha, Rules().suspicion)


def test_a_suspect_that_no_runs_will_settle_is_counted(store: Store) -> None:
    values = [100 * one for one in numbers(112)]
    for low, high in ((26, 40), (56, 70), (88, 112)):
        for place in range(low, high):
            values[place] *= 1.08
    fill(store, values)
    (suspect,) = [one for one in LocalHistories(store).changes().items if one.state is ChangeState.SUSPECT]
    assert suspect.unsettled
    assert "like a machine that switches between two speeds" in suspect.sentence
    with reading(store.engine) as connection:
        page = rows.change_page(connection, states=(ChangeState.SUSPECT,))
        assert not steps.mark_doubtful(connection, page, runs_may_decide=True).items[0].unsettled


@pytest.mark.parametrize(("outcome", "is_counted"), [("machine", False), ("restless", True), ("unsettled", True)])
def test_what_the_canary_of_the_confirming_runs_explains_fails_no_build(
    store: Store, outcome: str, is_counted: bool
) -> None:
    fill(store, numbers(40, change=30))
    (change,) = only(store).changes
    batch = confirmations.Batch(change.id, 1, "again", None, 10, NOW)
    with writing(store.engine) as connection:
        confirmations.add(connection, batch)
        confirmations.end(connection, batch, outcome, "")
    (found,) = LocalHistories(store).changes().items
    assert found.machine_changed != is_counted
    assert fails_a_build(found, "confirmed") == is_counted


def test_the_order_in_which_results_come_does_not_matter(store: Store) -> None:
    values = numbers(40, change=30)
    fill(store, values, [*range(0, 40, 2), *range(1, 40, 2)])
    history = only(store)
    assert [point.values["inference_ms.p50"] for point in history.points] == values
    assert [change.job_id for change in history.changes] == ["run0030b1-0"]


def test_a_result_between_others_has_them_judged_again(store: Store) -> None:
    values = numbers(40, change=25)
    late = 27
    fill(store, values, [place for place in range(40) if place != late])
    own = LocalHistories(store)
    own.judge()
    record(store, late, values[late])
    own.judge()
    with Store.open(store.home, url=store.engine.url.render_as_string(hide_password=False)) as again:
        assert only(again) == only(store)
    assert only(store).points[late].job_id == "run0027b1-0"


def test_the_same_folder_recorded_twice_is_one_point(store: Store) -> None:
    job = record(store, 0, 2.5)
    store.record_result(store.home.result_folder(job.experiment_id, job.id), summary(job, median_ms=2.5))
    assert len(only(store).points) == 1


def test_few_results_are_learning(store: Store) -> None:
    fill(store, numbers(12))
    history = only(store)
    assert (history.series.state, history.series.learned, history.series.wanted) == (SeriesState.LEARNING, 12, 20)
    assert "learning (12/20 results)" in history.sentence


def test_void_results_and_numbers_without_a_ratio_are_shown_and_not_judged(store: Store) -> None:
    fill(store, numbers(30))
    record(store, 30, 99.0, grade=Grade.VOID)
    record(store, 31, 0.0)
    record(store, 32, math.nan)
    record(store, 33, math.inf)
    record(store, 34, -1.0)
    history = only(store)
    assert len(history.points) == 35
    assert history.series.state is SeriesState.STEADY
    assert history.series.runs == 30
    note = "not judged: 1 void, 2 without this number, 2 of zero or less, which cannot be compared as a ratio"
    assert history.series.note == note


def test_nothing_but_zeros_is_an_explicit_state(store: Store) -> None:
    fill(store, [0.0] * 25)
    history = only(store)
    assert history.series.state is SeriesState.LEARNING
    assert "25 of zero or less" in history.sentence


def test_other_parameters_are_another_series(store: Store) -> None:
    record(store, 0, 2.5)
    record(store, 1, 4.0, batch=8)
    assert len(LocalHistories(store).page().items) == 2
    assert len(LocalHistories(store).find("quick")) == 2


def test_an_acknowledged_change_is_told_no_more_and_its_level_is_held(store: Store) -> None:
    values = numbers(40, change=26) + numbers(12, change=0, size=0.25, seed=2)
    fill(store, values[:40])
    own = LocalHistories(store)
    (change,) = own.changes().items
    said = own.ack(own.find_change(change.id[:6]), Acknowledgement(reason="the new kernel", expected=True))
    assert said.state is ChangeState.ACKNOWLEDGED
    assert own.changes().items == ()
    assert only(store).series.state is SeriesState.STEADY
    with pytest.raises(ConflictError, match="acknowledged already"):
        own.ack(change.id, Acknowledgement())
    for place in range(40, 52):
        record(store, place, values[place])
    (next_change,) = own.changes().items
    assert next_change.id != change.id
    assert next_change.job_id == "run0040b1-0"
    assert [one.state for one in only(store).changes] == [ChangeState.ACKNOWLEDGED, ChangeState.FOUND]


def test_a_regression_whose_level_came_back_is_resolved(store: Store) -> None:
    values = numbers(50, change=24)
    values[38:] = numbers(12, seed=3)
    fill(store, values)
    states = [(one.kind, one.state) for one in only(store).changes]
    assert states == [("regression", ChangeState.RESOLVED), ("improvement", ChangeState.FOUND)]
    assert [one.kind for one in LocalHistories(store).changes().items] == ["improvement"]


def test_a_canary_that_moved_too_takes_the_blame_from_the_code(store: Store) -> None:
    for name, minutes, value in (("before", 10, 10.0), ("after", 28, 10.8)):
        figure = Estimate(value=value, unit="ms", low=value - 0.1, high=value + 0.1, count=9, method="t")
        taken = NOW + timedelta(minutes=minutes)
        store.save_calibration(
            Calibration(id=name, hardware_id="hw-1", software_id="sw", taken_at=taken, figures={"kernel_ms": figure})
        )
    fill(store, numbers(change=26))
    (change,) = only(store).changes
    assert change.kind == "environment"
    assert change.facts == ("canary kernel_ms from 10 to 10.8 ms",)
    assert only(store).series.state is SeriesState.ENVIRONMENT


def test_pairs_side_by_side_confirm_or_reject(store: Store) -> None:
    fill(store, numbers(change=26))
    own = LocalHistories(store)
    (change,) = own.changes().items
    with reading(store.engine) as connection:
        assert [one.id for one in confirmations.wanting(connection, 5)] == [change.id]
    promising = [(2.5, new) for new in (2.62, 2.6, 2.47, 2.58, 2.61, 2.48, 2.62)]
    with writing(store.engine) as connection:
        assert change_decisions.confirm(connection, change.id, promising) is None
        with pytest.raises(InputError, match="above zero"):
            change_decisions.confirm(connection, change.id, [(0.0, 1.0)])
        decided = change_decisions.confirm(connection, change.id, [(2.5, 2.7)] * 7)
    assert decided is not None
    assert decided.state is ChangeState.CONFIRMED
    assert only(store).changes[0].state is ChangeState.CONFIRMED
    assert "7 of 7 pairs agree" in only(store).changes[0].path[-1]
    for told in (decided, only(store).changes[0]):
        assert " got worse by " in told.sentence
        assert told.sentence.endswith(
            "confirm it: side by side: 7 of 7 pairs agree, +8.0 % [+8.0 %, +8.0 %], confirmed."
        )


def test_what_was_rejected_by_pairs_is_no_change_any_more(store: Store) -> None:
    fill(store, numbers(change=26))
    own = LocalHistories(store)
    (change,) = own.changes().items
    with writing(store.engine) as connection:
        change_decisions.confirm(connection, change.id, [(2.5, 2.5), (2.5, 2.49)] * 4)
    assert own.changes().items == ()
    assert only(store).series.state is SeriesState.STEADY


def test_a_baseline_is_set_shown_compared_with_and_cleared(store: Store) -> None:
    made = fill(store, numbers(22))
    own = LocalHistories(store)
    (series,) = own.page().items
    with pytest.raises(NotFoundError, match="no baseline"):
        own.baseline(series.id)
    own.set_baseline(series.id, NewBaseline(job_id=made[3].id, reason="release"))
    assert own.baseline(series.id).job_id == made[3].id
    history = only(store)
    assert history.against_baseline == pytest.approx(history.points[-1].values[history.metric] / numbers(22)[3] - 1)
    assert own.set_baseline(series.id, NewBaseline()).job_id == made[-1].id
    own.clear_baseline(series.id)
    with pytest.raises(NotFoundError, match="no baseline"):
        own.clear_baseline(series.id)
    with pytest.raises(NotFoundError, match="no such result"):
        own.set_baseline(series.id, NewBaseline(job_id="other"))


def test_a_history_goes_with_its_experiments_and_is_judged_anew_without_them(store: Store) -> None:
    made = fill(store, numbers(30))
    LocalHistories(store).judge()
    for job in made[:5]:
        store.delete_experiment(job.experiment_id)
    record(store, 40, 2.5)
    assert len(only(store).points) == 26


def test_histories_can_be_made_again_from_the_folders(store: Store) -> None:
    fill(store, numbers(change=26))
    own = LocalHistories(store)
    (change,) = own.changes().items
    own.ack(change.id, Acknowledgement(reason="known"))
    before = only(store)
    with writing(store.engine) as connection:
        connection.execute(history_tables.point.delete())
    told: list[tuple[int, int]] = []
    assert own.rebuild(lambda done, total: told.append((done, total))) == 36
    assert told[-1] == (36, 36)
    assert only(store) == before


def test_another_metric_is_judged_for_the_answer_alone(store: Store) -> None:
    fill(store, numbers(25))
    own = LocalHistories(store)
    (series,) = own.page().items
    with pytest.raises(InputError, match=r"no 'inference_ms\.p99'"):
        own.get(series.id, metric="inference_ms.p99")
    assert own.get(series.id, metric="inference_ms.p50") == own.get(series.id)


def test_a_name_that_nobody_knows_is_told(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no series 'nope'"):
        LocalHistories(store).find("nope")
    with pytest.raises(NotFoundError, match="no change"):
        LocalHistories(store).find_change("nope")


def test_every_point_is_judged_once(store: Store) -> None:
    fill(store, numbers(25))
    LocalHistories(store).judge()
    query = select(func.count()).select_from(history_tables.point).where(~history_tables.point.c.judged)
    with reading(store.engine) as connection:
        assert connection.execute(query).scalar_one() == 0


def test_a_recipe_that_leaves_a_new_key_out_stays_in_its_series() -> None:
    """Series are named by what a recipe says; these names were given before `load.errors` was known."""
    works = (
        ModelWorkload(kind="model", model="zoo:mlp", engine="onnxruntime"),
        ServiceWorkload(kind="service", endpoint="http://x", driver="http"),
    )
    jobs = [
        Job(id="e-001", experiment_id="e", name="n", workload=work, measure=Measure(), load=Load()) for work in works
    ]
    assert [fingerprint(job, "h", "linux") for job in jobs] == ["s7ebe18d3fa74780", "s04ec19eb62453d9"]
    other = jobs[1].model_copy(update={"load": Load(errors="any")})
    assert fingerprint(other, "h", "linux") == fingerprint(jobs[1], "h", "linux")


def test_a_series_goes_on_where_its_service_is_started_otherwise() -> None:
    usual = ServiceWorkload(kind="service", service="redis")
    jobs = [
        Job(id="e-001", experiment_id="e", name="n", workload=usual.model_copy(update={"restart": word}))
        for word in ("auto", "each-run", "once")
    ]
    assert {fingerprint(job, "h", "linux") for job in jobs} == {"sb4e4cd2f5b5e0e2"}


def test_times_of_a_gpu_that_mean_something_else_are_of_another_series() -> None:
    work = ModelWorkload(kind="model", model="zoo:mobilenet-v2", engine="onnxruntime", unit="cuda")
    job = Job(id="x-000", experiment_id="x", name="t", workload=work, measure=Measure())
    # The name that it had before outputs could stay on the device; results that say nothing of that keep it.
    assert fingerprint(job, "h", "linux") == "sc9eda1421060242"
    copied = job.model_copy(update={"workload": work.model_copy(update={"outputs": "host"})})
    names = [
        fingerprint(job, "h", "linux"),
        fingerprint(job, "h", "linux", "device"),
        fingerprint(copied, "h", "linux", "pinned host"),
        fingerprint(job, "h", "linux", "device", "off"),
    ]
    assert len(set(names)) == len(names)
