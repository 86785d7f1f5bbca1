from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import update

from prony.errors import ConflictError, InputError, NotFoundError, StoreError
from prony.model.estimate import Grade
from prony.model.experiment import Experiment, ExperimentState
from prony.model.result import ResultState
from prony.store import tables
from prony.store.database import writing
from prony.store.home import Home
from prony.store.store import Store

from .nouns import (
    NOW,
    calibration,
    environment,
    experiment,
    jobs,
    recipe,
    result,
    running,
    summarise,
    summary,
    write_folder,
)


class TestExperiments:
    def test_what_is_saved_is_what_is_read(self, store: Store) -> None:
        made = experiment(rerun_of="older")
        store.save_experiment(made, jobs())
        assert store.experiment(made.id) == made
        assert store.experiment(made.id).recipe.matrix.axes == {"workload.batch_size": [1, 8]}
        assert store.jobs(made.id) == jobs()

    def test_it_survives_closing_and_opening(self, store: Store, home: Home, database_url: str) -> None:
        store.save_experiment(experiment())
        store.close()
        with Store.open(home, url=database_url) as again:
            assert again.experiment("abc123def") == experiment()

    def test_saving_the_same_twice_changes_nothing(self, store: Store) -> None:
        for _ in range(2):
            store.save_experiment(experiment(), jobs())
        assert len(store.experiments()) == 1
        assert store.jobs("abc123def") == jobs()

    def test_another_one_under_the_same_id_is_a_conflict(self, store: Store) -> None:
        store.save_experiment(experiment())
        with pytest.raises(ConflictError, match="another experiment abc123def"):
            store.save_experiment(experiment(recipe=recipe((1, 2))))
        assert store.experiment("abc123def") == experiment()

    def test_a_job_that_cannot_be_kept_takes_its_experiment_with_it(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no experiment 'other'"):
            store.save_experiment(experiment(), [*jobs(), *jobs("other")])
        assert store.experiments() == ()

    def test_an_instant_keeps_its_moment_whatever_its_zone(self, store: Store) -> None:
        there = NOW.astimezone(timezone(timedelta(hours=2)))
        store.save_experiment(experiment(created_at=there, ended_at=there))
        assert store.experiment("abc123def").ended_at == NOW

    def test_an_instant_without_a_zone_is_refused(self, store: Store) -> None:
        with pytest.raises(InputError, match="has no time zone"):
            store.save_experiment(experiment(created_at=datetime(2025, 1, 1)))  # noqa: DTZ001

    def test_an_id_that_would_leave_the_home_is_refused(self, store: Store) -> None:
        with pytest.raises(InputError, match="cannot be an id"):
            store.save_experiment(experiment("../escape"))

    def test_the_list_is_newest_first_and_can_be_narrowed(self, store: Store) -> None:
        for minutes, (name, state) in enumerate([("a", "complete"), ("b", "failed"), ("a", "failed")]):
            store.save_experiment(experiment(f"id{minutes}", minutes=minutes, name=name, state=state))
        assert [found.id for found in store.experiments()] == ["id2", "id1", "id0"]
        assert [found.id for found in store.experiments(2)] == ["id2", "id1"]
        assert [found.id for found in store.experiments(name="a")] == ["id2", "id0"]
        assert [found.id for found in store.experiments(state=ExperimentState.FAILED)] == ["id2", "id1"]

    def test_an_unknown_one_is_named(self, store: Store) -> None:
        for ask in (store.experiment, store.jobs, store.records, store.folders, store.delete_experiment):
            with pytest.raises(NotFoundError, match="no experiment 'x1'") as caught:
                ask("x1")
            assert "prony list" in caught.value.hint


class TestStates:
    @pytest.mark.parametrize("state", [ExperimentState.COMPLETE, ExperimentState.PARTIAL, ExperimentState.FAILED])
    def test_a_running_one_can_end_in_every_way(self, store: Store, state: ExperimentState) -> None:
        store.save_experiment(running())
        ended = store.set_experiment_state("abc123def", state, ended_at=NOW)
        assert ended == store.experiment("abc123def") == running().model_copy(update={"state": state, "ended_at": NOW})

    def test_what_has_ended_stays_ended(self, store: Store) -> None:
        store.save_experiment(experiment(state=ExperimentState.COMPLETE))
        with pytest.raises(ConflictError, match="is complete and cannot become partial"):
            store.set_experiment_state("abc123def", ExperimentState.PARTIAL)

    def test_ending_twice_in_the_same_way_keeps_the_first_instant(self, store: Store) -> None:
        store.save_experiment(running())
        store.set_experiment_state("abc123def", ExperimentState.PARTIAL, ended_at=NOW)
        again = store.set_experiment_state("abc123def", ExperimentState.PARTIAL, ended_at=NOW + timedelta(hours=1))
        assert again.ended_at == NOW


class TestResolveId:
    @pytest.fixture
    def filled(self, store: Store) -> Store:
        for minutes, experiment_id in enumerate(["abc1", "abc2", "abc", "x_y", "xzy"]):
            store.save_experiment(experiment(experiment_id, minutes=minutes))
        return store

    @pytest.mark.parametrize(
        ("text", "meant"), [("abc1", "abc1"), ("abc", "abc"), ("xz", "xzy"), ("x_", "x_y"), ("last", "xzy")]
    )
    def test_a_full_id_a_beginning_and_last_are_understood(self, filled: Store, text: str, meant: str) -> None:
        assert filled.resolve_id(text) == meant

    def test_an_ambiguous_beginning_lists_what_it_could_mean(self, filled: Store) -> None:
        with pytest.raises(InputError, match="'ab' matches 3 ids: abc, abc1, abc2"):
            filled.resolve_id("ab")

    @pytest.mark.parametrize("text", ["", "zzz", "ABC", "%", "abc12"])
    def test_what_is_not_there_points_to_the_list(self, filled: Store, text: str) -> None:
        with pytest.raises(NotFoundError) as caught:
            filled.resolve_id(text)
        assert "prony list" in caught.value.hint

    def test_last_of_nothing_says_how_to_begin(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no experiment yet"):
            store.resolve_id("last")


class TestResults:
    def test_a_result_comes_back_with_its_summary_machine_and_folder(self, store: Store, kept: Experiment) -> None:
        first, second = jobs()
        assert store.result(first.id) == result(first)
        stored = store.summary(second.id)
        assert stored is not None
        assert stored.model_dump_json() == summary(second, median_ms=8.0).model_dump_json()
        assert store.environment(first.id) == environment()
        assert store.folders(kept.id) == {job.id: store.home.results / kept.id / job.id for job in jobs()}
        assert [record.job_id for record in store.records(kept.id)] == [first.id, second.id]

    def test_an_attempt_is_accepted_once_and_the_first_stands(self, store: Store, kept: Experiment) -> None:
        job = jobs()[0]
        folder = store.folders(kept.id)[job.id]
        assert store.record_result(folder, summary(job, median_ms=99.0)) is False
        assert store.records(kept.id)[0].summary.estimates["inference_ms.p50"].value == 1.0

    @pytest.mark.parametrize(
        ("states", "standing"),
        [
            (["failed", "complete"], 2),
            (["partial", "failed"], 1),
            (["complete", "complete"], 1),
            (["failed", "partial", "complete", "failed"], 3),
        ],
    )
    def test_the_best_attempt_stands_and_of_equals_the_first(
        self, store: Store, states: list[str], standing: int
    ) -> None:
        job = jobs()[0]
        store.save_experiment(experiment(), [job])
        for attempt, state in enumerate(states, start=1):
            folder = store.home.result_folder(job.experiment_id, job.id, attempt)
            write_folder(folder, job, ResultState(state))
            assert store.record_result(folder, summary(job), attempt=attempt) is True
        (record,) = store.records(job.experiment_id)
        assert record.attempt == standing
        assert record.folder == store.home.result_folder(job.experiment_id, job.id, standing)

    def test_a_job_without_a_result_has_none(self, store: Store) -> None:
        store.save_experiment(experiment(), jobs())
        for ask in (store.result, store.summary, store.environment):
            assert ask("abc123def-0") is None
        assert store.records("abc123def") == ()

    def test_an_unknown_job_is_named(self, store: Store) -> None:
        with pytest.raises(NotFoundError, match="no job 'j9'"):
            store.result("j9")

    def test_a_result_of_a_job_that_was_never_saved_is_refused(self, store: Store) -> None:
        job = jobs()[0]
        folder = write_folder(store.home.result_folder("abc123def", job.id), job)
        with pytest.raises(NotFoundError, match="no job 'abc123def-0'"):
            store.record_result(folder, summary(job))

    def test_a_summary_of_another_job_is_refused(self, store: Store) -> None:
        first, second = jobs()
        store.save_experiment(experiment(), jobs())
        folder = write_folder(store.home.result_folder("abc123def", first.id), first)
        with pytest.raises(InputError, match="the summary is of job abc123def-1"):
            store.record_result(folder, summary(second))
        assert store.result(first.id) is None

    def test_a_folder_outside_the_home_is_refused(self, store: Store, tmp_path: Path) -> None:
        job = jobs()[0]
        store.save_experiment(experiment(), [job])
        with pytest.raises(InputError, match="lies outside"):
            store.record_result(write_folder(tmp_path / "else", job), summary(job))

    @pytest.mark.usefixtures("kept")
    def test_a_home_can_be_moved(self, store: Store, home: Home, tmp_path: Path, database_url: str) -> None:
        store.close()
        home.root.rename(tmp_path / "moved")
        with Store.open(Home(tmp_path / "moved"), url=database_url) as moved:
            assert moved.environment(jobs()[0].id) == environment()


class TestDelete:
    def test_it_takes_rows_and_folders(self, store: Store, kept: Experiment, home: Home) -> None:
        store.delete_experiment(kept.id)
        assert store.experiments() == ()
        assert not home.experiment_folder(kept.id).exists()
        assert list(home.moving.iterdir()) == []
        with pytest.raises(NotFoundError, match="no job"):
            store.result(jobs()[0].id)

    def test_the_same_id_can_be_used_again_afterwards(self, store: Store, kept: Experiment) -> None:
        store.delete_experiment(kept.id)
        store.save_experiment(kept)
        store.delete_experiment(kept.id)
        assert store.experiments() == ()

    def test_a_running_one_is_deleted_only_by_force(self, store: Store) -> None:
        store.save_experiment(running(), jobs())
        with pytest.raises(ConflictError, match="is running"):
            store.delete_experiment("abc123def")
        assert store.jobs("abc123def") == jobs()
        store.delete_experiment("abc123def", force=True)
        assert store.experiments() == ()

    def test_others_stay(self, store: Store, kept: Experiment) -> None:
        store.save_experiment(experiment("other"), jobs("other"))
        store.delete_experiment("other")
        assert len(store.records(kept.id)) == 2

    def test_folders_that_could_not_be_removed_go_when_the_store_is_opened_next(
        self, store: Store, kept: Experiment, home: Home, database_url: str
    ) -> None:
        home.moving.write_text("a file in the way of the folder that leaving ones are renamed into")
        with pytest.raises(StoreError, match="cannot make"):
            store.delete_experiment(kept.id)
        assert store.experiments() == ()
        with pytest.raises(ConflictError, match="still being deleted"):
            store.save_experiment(kept)
        home.moving.unlink()
        with Store.open(home, url=database_url) as again:
            assert not home.experiment_folder(kept.id).exists()
            again.save_experiment(kept)

    @pytest.mark.usefixtures("store")
    def test_what_a_crash_left_on_its_way_is_swept(self, home: Home, database_url: str) -> None:
        (home.moving / "half" / "logs").mkdir(parents=True)
        Store.open(home, url=database_url).close()
        assert list(home.moving.iterdir()) == []


class TestCalibrations:
    def test_the_latest_of_this_hardware_is_found(self, store: Store) -> None:
        store.save_calibration(calibration("new", minutes=5))
        store.save_calibration(calibration("old"))
        store.save_calibration(calibration("other", hardware_id="hw-2", minutes=9))
        assert store.latest_calibration("hw-1") == calibration("new", minutes=5)
        assert store.latest_calibration("hw-3") is None

    def test_saving_the_same_twice_changes_nothing(self, store: Store) -> None:
        store.save_calibration(calibration())
        store.save_calibration(calibration())
        with pytest.raises(ConflictError, match="another calibration c1"):
            store.save_calibration(calibration(minutes=1))


def test_a_new_experiment_can_be_recorded_job_by_job(store: Store) -> None:
    first, second = jobs()
    store.save_experiment(running(), [first])
    store.save_experiment(running(), [first, second])
    assert store.jobs("abc123def") == (first, second)
    folder = write_folder(store.home.result_folder("abc123def", second.id), second)
    assert store.record_result(folder, summarise(folder))
    assert list(store.folders("abc123def")) == [second.id]


def test_a_row_that_cannot_be_read_is_a_store_error(store: Store, kept: Experiment) -> None:
    with writing(store.engine) as connection:
        connection.execute(update(tables.result).values(document='{"state": "odd"}'))
    with pytest.raises(StoreError, match=r"holds a row that cannot be read: Result: "):
        store.records(kept.id)


def test_results_of_a_machine_are_found_by_their_headline_unless_they_are_void(store: Store) -> None:
    for name, grade in (("one", Grade.VALID), ("two", Grade.VOID)):
        store.save_experiment(experiment(name), jobs(name))
        job = jobs(name)[0]
        store.record_result(write_folder(store.home.result_folder(name, job.id), job), summary(job, grade=grade))
    machine, headline = environment().device.hardware_id, "inference_ms.p50"
    assert [one.job_id for one in store.machine_records(machine, (headline,))] == [jobs("one")[0].id]
    assert store.machine_records(machine, ("copy_gb_s.p50",)) == store.machine_records("another", (headline,)) == ()
