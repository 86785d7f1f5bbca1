from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.errors import ConflictError, InputError, NotFoundError, PronyError, StoreError
from prony.instruments.samples import SAMPLES
from prony.model.experiment import Experiment, ExperimentState
from prony.model.result import ResultState
from prony.store.bundle import checksums
from prony.store.home import Home
from prony.store.store import Store
from prony.store.transfer import export, import_

from .nouns import (
    RECIPE_TEXT,
    accept_recipe,
    edited,
    experiment,
    jobs,
    overview,
    recipe,
    running,
    summarise,
    summary,
    write_folder,
)


@pytest.fixture
def exported(store: Store, kept: Experiment, tmp_path: Path) -> Path:
    return export(store, kept.id, tmp_path / "out" / "it")


@pytest.fixture
def empty(tmp_path: Path, other_url: str) -> Iterator[Store]:
    with Store.open(Home(tmp_path / "empty"), url=other_url) as opened:
        yield opened


def _all_of(store: Store, experiment_id: str) -> tuple[object, ...]:
    records = [
        (record.job_id, record.attempt, record.result, record.summary.model_dump_json(), checksums(record.folder))
        for record in store.records(experiment_id)
    ]
    return store.experiment(experiment_id), store.jobs(experiment_id), records, overview(store)


class TestExport:
    def test_it_holds_everything_and_a_checksum_of_each_file(self, exported: Path) -> None:
        manifest = json.loads((exported / "MANIFEST.json").read_text())
        assert (exported / "recipe.yaml").read_text() == RECIPE_TEXT
        found = checksums(exported)
        found.pop("MANIFEST.json")
        assert manifest["files"] == found
        assert {"experiment.json", f"jobs/abc123def-1/{SAMPLES}", "jobs/abc123def-0/logs/child-0.log"} <= found.keys()
        assert manifest["jobs"] == ["abc123def-0", "abc123def-1"]

    def test_nothing_else_is_left_beside_it(self, exported: Path) -> None:
        assert [path.name for path in exported.parent.iterdir()] == ["it"]

    def test_a_toml_recipe_is_called_so(self, store: Store, tmp_path: Path) -> None:
        store.save_experiment(experiment(recipe_text='name = "quick"\n'))
        assert (export(store, "abc123def", tmp_path / "out") / "recipe.toml").is_file()

    def test_a_recipe_that_never_was_text_is_written_from_the_noun(self, store: Store, tmp_path: Path) -> None:
        import yaml

        store.save_experiment(experiment(recipe_text=""))
        written = (export(store, "abc123def", tmp_path / "out") / "recipe.yaml").read_text()
        assert yaml.safe_load(written) == recipe().model_dump(mode="json")

    def test_a_running_one_is_refused(self, store: Store, tmp_path: Path) -> None:
        store.save_experiment(running())
        with pytest.raises(ConflictError, match="is running"):
            export(store, "abc123def", tmp_path / "out")

    def test_an_existing_folder_is_kept_unless_told(self, store: Store, exported: Path) -> None:
        before = checksums(exported)
        with pytest.raises(ConflictError, match="exists already"):
            export(store, "abc123def", exported)
        (exported / "experiment.json").write_text("old")
        export(store, "abc123def", exported, overwrite=True)
        assert checksums(exported) == before
        assert [path.name for path in exported.parent.iterdir()] == ["it"]

    def test_an_empty_folder_may_be_filled(self, store: Store, kept: Experiment, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        assert (export(store, kept.id, tmp_path / "out") / "MANIFEST.json").is_file()

    def test_a_folder_of_somebody_else_is_never_overwritten(
        self, store: Store, kept: Experiment, tmp_path: Path
    ) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("years of work")
        with pytest.raises(ConflictError, match="is not an export"):
            export(store, kept.id, tmp_path / "mine", overwrite=True)
        assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"

    def test_the_store_itself_is_no_place_for_it(self, store: Store, kept: Experiment) -> None:
        with pytest.raises(InputError, match="the store's own results"):
            export(store, kept.id, store.home.results / "out")

    def test_a_result_folder_that_is_gone_is_named_and_nothing_is_left(
        self, store: Store, kept: Experiment, tmp_path: Path
    ) -> None:
        shutil.rmtree(store.folders(kept.id)["abc123def-1"])
        with pytest.raises(NotFoundError, match="abc123def-1 is gone"):
            export(store, kept.id, tmp_path / "out" / "it")
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_place_that_cannot_be_written_is_named(self, store: Store, kept: Experiment, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match=r"cannot use .*file"):
            export(store, kept.id, tmp_path / "file" / "out")


class TestImport:
    def test_exported_deleted_and_imported_it_is_the_same(self, store: Store, kept: Experiment, exported: Path) -> None:
        before = _all_of(store, kept.id)
        store.delete_experiment(kept.id)
        assert import_(store, exported, summarise=summarise, check_recipe=accept_recipe) == kept
        assert _all_of(store, kept.id) == before

    def test_another_store_takes_it_as_well(self, store: Store, kept: Experiment, exported: Path, empty: Store) -> None:
        import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)
        assert _all_of(empty, kept.id) == _all_of(store, kept.id)

    def test_jobs_without_a_result_and_later_attempts_come_along(
        self, store: Store, empty: Store, tmp_path: Path
    ) -> None:
        first, second = jobs()
        store.save_experiment(experiment(state=ExperimentState.PARTIAL), [second, first])
        folder = write_folder(store.home.result_folder(first.experiment_id, first.id, 2), first, ResultState.PARTIAL)
        store.record_result(folder, summarise(folder), attempt=2)
        import_(empty, export(store, "abc123def", tmp_path / "out"), summarise=summarise, check_recipe=accept_recipe)
        assert _all_of(empty, "abc123def") == _all_of(store, "abc123def")
        assert empty.result(second.id) is None

    def test_the_same_again_changes_nothing(self, store: Store, kept: Experiment, exported: Path) -> None:
        def never(_folder: Path) -> None:
            raise AssertionError("nothing is to be computed")

        assert import_(store, exported, summarise=never, check_recipe=accept_recipe) == kept  # type: ignore[arg-type]

    def test_a_different_experiment_of_the_same_id_is_never_overwritten(self, exported: Path, empty: Store) -> None:
        empty.save_experiment(experiment(name="mine"))
        with pytest.raises(ConflictError, match="a different experiment abc123def"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)
        assert empty.experiment("abc123def").name == "mine"
        assert not empty.home.experiment_folder("abc123def").exists()

    @pytest.mark.parametrize("name", [f"jobs/abc123def-1/{SAMPLES}", "jobs/abc123def-0/result.json", "recipe.yaml"])
    def test_a_damaged_file_is_named_and_nothing_is_kept(self, exported: Path, empty: Store, name: str) -> None:
        damaged = bytearray((exported / name).read_bytes())
        damaged[len(damaged) // 2] ^= 1
        (exported / name).write_bytes(bytes(damaged))
        with pytest.raises(StoreError, match=f"{name} is damaged"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)
        assert empty.experiments() == ()
        assert [path.name for path in empty.home.results.iterdir()] == []

    def test_a_missing_and_an_added_file_are_named(self, exported: Path, empty: Store) -> None:
        (exported / "jobs" / "abc123def-0" / "notes.txt").write_text("mine")
        with pytest.raises(StoreError, match=r"notes\.txt is not named in MANIFEST"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)
        (exported / "jobs" / "abc123def-0" / "notes.txt").unlink()
        (exported / "jobs" / "abc123def-0" / "result.json").unlink()
        with pytest.raises(StoreError, match=r"lacks jobs/abc123def-0/result\.json"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)

    def test_a_damaged_manifest_is_named(self, exported: Path, empty: Store) -> None:
        (exported / "MANIFEST.json").write_text("{}")
        with pytest.raises(StoreError, match=r"MANIFEST\.json is damaged"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)

    def test_without_a_manifest_the_files_themselves_are_checked(self, exported: Path, empty: Store) -> None:
        (exported / "MANIFEST.json").unlink()
        whole = (exported / "jobs" / "abc123def-1" / SAMPLES).read_bytes()
        (exported / "jobs" / "abc123def-1" / SAMPLES).write_bytes(whole[:300])
        with pytest.raises(StoreError, match=r"abc123def-1/samples\.parquet is damaged"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)
        (exported / "jobs" / "abc123def-1" / SAMPLES).write_bytes(whole)
        assert import_(empty, exported, summarise=summarise, check_recipe=accept_recipe).id == "abc123def"

    def test_what_a_file_browser_left_is_passed_over(self, exported: Path, empty: Store) -> None:
        (exported / "jobs" / ".DS_Store").write_text("")
        assert import_(empty, exported, summarise=summarise, check_recipe=accept_recipe).id == "abc123def"

    def test_a_link_is_refused(self, exported: Path, empty: Store, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret")
        log = exported / "jobs" / "abc123def-0" / "logs" / "child-0.log"
        log.unlink()
        log.symlink_to(tmp_path / "secret")
        with pytest.raises(InputError, match=r"child-0\.log is not a plain file"):
            import_(empty, exported, summarise=summarise, check_recipe=accept_recipe)

    def test_a_job_whose_id_would_leave_the_home_is_refused(self, empty: Store, tmp_path: Path) -> None:
        folder = write_folder(tmp_path / "evil", jobs()[0])
        for name, key in (("job.json", "id"), ("result.json", "job_id")):
            edited(folder / name, **{key: "../../escaped"})
        with pytest.raises(InputError, match="cannot be an id"):
            import_(empty, folder, summarise=summarise, check_recipe=accept_recipe)
        assert not (empty.home.root / "escaped").exists()

    @pytest.mark.parametrize("content", [None, "empty", "file"])
    def test_what_is_no_export_is_refused(self, empty: Store, tmp_path: Path, content: str | None) -> None:
        place = tmp_path / "offered"
        if content == "empty":
            place.mkdir()
        if content == "file":
            place.write_text("")
        with pytest.raises(InputError, match="offered"):
            import_(empty, place, summarise=summarise, check_recipe=accept_recipe)

    def test_when_the_summary_fails_nothing_is_kept(self, exported: Path, empty: Store) -> None:
        def refuse(folder: Path) -> None:
            raise StoreError(f"{folder} cannot be summarised")

        with pytest.raises(StoreError, match="cannot be summarised"):
            import_(empty, exported, summarise=refuse, check_recipe=accept_recipe)  # type: ignore[arg-type]
        assert empty.experiments() == ()
        assert list(empty.home.results.iterdir()) == []

    def test_when_the_rows_are_refused_the_folders_go_again(self, exported: Path, empty: Store) -> None:
        wrong = summary(jobs()[0])
        with pytest.raises(InputError, match="the summary is of job"):
            import_(empty, exported, summarise=lambda _: wrong, check_recipe=accept_recipe)
        assert empty.experiments() == ()
        assert list(empty.home.experiment_folder("abc123def").iterdir()) == []


class TestImportOfResultFolders:
    def test_one_folder_becomes_an_experiment_of_one_job(self, empty: Store, tmp_path: Path) -> None:
        job = jobs()[1]
        found = import_(empty, write_folder(tmp_path / "r", job), summarise=summarise, check_recipe=accept_recipe)
        assert (found.id, found.name, found.job_count, found.state) == ("abc123def", "quick", 1, "complete")
        assert found.recipe.workload == job.workload
        assert found.recipe.matrix.axes == {"workload.batch_size": [8]}
        assert empty.jobs(found.id) == (job,)
        assert overview(empty)[0]["headline_title"] == "batch_size=8"

    def test_the_folders_of_a_lost_database_come_back_where_they_lie(
        self, store: Store, kept: Experiment, other_url: str
    ) -> None:
        before = checksums(store.home.results)
        records = store.records(kept.id)
        store.close()
        for leftover in store.home.root.glob("prony.db*"):
            leftover.unlink()
        with Store.open(store.home, url=other_url) as again:
            found = import_(
                again, store.home.experiment_folder(kept.id), summarise=summarise, check_recipe=accept_recipe
            )
            assert found.recipe.matrix == kept.recipe.matrix
            assert [(one.result, one.folder) for one in again.records(kept.id)] == [
                (one.result, one.folder) for one in records
            ]
        assert checksums(store.home.results) == before

    def test_a_cell_that_is_not_there_is_excluded(self, empty: Store, tmp_path: Path) -> None:
        for number, (batch, threads) in enumerate([(1, 1), (1, 2), (8, 1)]):
            job = jobs(batch_sizes=(batch,))[0].model_copy(
                update={"id": f"j{number}", "cell": {"workload.batch_size": batch, "workload.threads": threads}}
            )
            write_folder(tmp_path / "all" / job.id, job)
        matrix = import_(empty, tmp_path / "all", summarise=summarise, check_recipe=accept_recipe).recipe.matrix
        assert matrix.axes == {"workload.batch_size": [1, 8], "workload.threads": [1, 2]}
        assert matrix.exclude == [{"workload.batch_size": 8, "workload.threads": 2}]

    def test_more_combinations_than_a_recipe_may_have_are_refused(self, empty: Store, tmp_path: Path) -> None:
        for number, job in enumerate(jobs(batch_sizes=(1, 8))):
            cell = {f"labels.a{axis}": number for axis in range(40)}
            write_folder(tmp_path / "all" / job.id, job.model_copy(update={"cell": cell}))
        with pytest.raises(InputError, match="more than 10,000 combinations"):
            import_(empty, tmp_path / "all", summarise=summarise, check_recipe=accept_recipe)

    def test_a_folder_that_is_part_of_what_is_stored_changes_nothing(self, store: Store, kept: Experiment) -> None:
        assert (
            import_(store, store.folders(kept.id)["abc123def-0"], summarise=summarise, check_recipe=accept_recipe)
            == kept
        )

    def test_a_folder_of_the_same_job_with_another_result_is_a_conflict(
        self, store: Store, kept: Experiment, tmp_path: Path
    ) -> None:
        other = write_folder(tmp_path / "r", jobs()[0], ended_at=None)
        with pytest.raises(ConflictError, match=f"different experiment {kept.id}"):
            import_(store, other, summarise=summarise, check_recipe=accept_recipe)

    def test_folders_of_two_experiments_are_not_mixed(self, empty: Store, tmp_path: Path) -> None:
        write_folder(tmp_path / "all" / "a", jobs("one")[0])
        write_folder(tmp_path / "all" / "b", jobs("two")[0])
        with pytest.raises(StoreError, match="mixes experiments"):
            import_(empty, tmp_path / "all", summarise=summarise, check_recipe=accept_recipe)

    def test_a_folder_in_its_place_that_differs_is_not_touched(self, empty: Store, tmp_path: Path) -> None:
        job = jobs()[0]
        there = write_folder(empty.home.result_folder(job.experiment_id, job.id), job, ended_at=None)
        before = checksums(there)
        with pytest.raises(ConflictError, match="exists already and differs"):
            import_(empty, write_folder(tmp_path / "r", job), summarise=summarise, check_recipe=accept_recipe)
        assert checksums(there) == before

    def test_an_import_that_was_cut_off_can_be_done_again(self, empty: Store, tmp_path: Path) -> None:
        job = jobs()[0]
        source = write_folder(tmp_path / "r", job)
        shutil.copytree(source, empty.home.result_folder(job.experiment_id, job.id))
        assert import_(empty, source, summarise=summarise, check_recipe=accept_recipe).job_count == 1

    def test_a_deletion_that_is_still_to_be_done_is_done_first(
        self, store: Store, kept: Experiment, exported: Path, database_url: str
    ) -> None:
        store.home.moving.write_text("in the way")
        with pytest.raises(PronyError):
            store.delete_experiment(kept.id)
        store.home.moving.unlink()
        assert import_(store, exported, summarise=summarise, check_recipe=accept_recipe) == kept
        with Store.open(store.home, url=database_url) as again:
            assert all(folder.is_dir() for folder in again.folders(kept.id).values())
