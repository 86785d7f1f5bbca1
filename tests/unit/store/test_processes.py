"""Several processes on one store, and processes that are killed: nothing is lost, and nothing is broken."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from lanes import only_slowly
from prony.errors import StoreError
from prony.model.experiment import Experiment, ExperimentState
from prony.model.result import ResultState
from prony.store import tables
from prony.store.codecs import experiment_row
from prony.store.database import connect_database, reading, writing
from prony.store.glance import glance
from prony.store.home import Home
from prony.store.store import Store
from prony.store.transfer import export, import_
from servers.forked import process_context

from .nouns import accept_recipe, experiment, jobs, overview, running, summarise, summary, write_folder

# No forks of this process: Polars has threads, which a fork would cut off.
PROCESSES = process_context()
SELDOM_ON_POSTGRES = pytest.mark.parametrize("database_url", ["sqlite", *only_slowly("postgres")], indirect=True)


def _in_processes(work: Callable[..., None], *arguments: tuple[Any, ...]) -> list[int | None]:
    """Run `work` once for each tuple of arguments, all at the same time; return the exit codes."""
    processes = [PROCESSES.Process(target=work, args=one) for one in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=240)
    return [process.exitcode for process in processes]


def _is_sound(store: Store) -> bool:
    with reading(store.engine) as connection:
        if connection.dialect.name == "sqlite":
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
            return not broken and connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        results, jobs_ = tables.result, tables.job
        lost = select(func.count()).select_from(results.outerjoin(jobs_)).where(jobs_.c.id.is_(None))
        return connection.execute(lost).scalar() == 0


def _write_many(root: Path, url: str, writer: str, count: int) -> None:
    with Store.open(Home(root), url=url) as store:
        for number in range(count):
            experiment_id = f"{writer}{number}"
            store.save_experiment(running(experiment_id, minutes=number), jobs(experiment_id))
            for job in jobs(experiment_id):
                folder = write_folder(store.home.result_folder(experiment_id, job.id), job)
                store.record_result(folder, summary(job))
            store.set_experiment_state(experiment_id, ExperimentState.COMPLETE)


def test_two_processes_that_make_the_store_and_write_at_once_lose_nothing(home: Home, other_url: str) -> None:
    assert _in_processes(_write_many, (home.root, other_url, "a", 15), (home.root, other_url, "b", 15)) == [0, 0]
    with Store.open(home, url=other_url) as store:
        found = store.experiments()
        assert len(found) == 30
        assert {one.state for one in found} == {ExperimentState.COMPLETE}
        assert all(len(store.records(one.id)) == 2 for one in found)
        assert _is_sound(store)


def _record_same(root: Path, url: str, accepted: Path) -> None:
    job = jobs()[0]
    with Store.open(Home(root), url=url) as store:
        if store.record_result(store.home.result_folder(job.experiment_id, job.id), summary(job)):
            (accepted / str(os.getpid())).touch()


def test_of_processes_with_the_same_result_one_is_accepted(store: Store, tmp_path: Path, database_url: str) -> None:
    job = jobs()[0]
    store.save_experiment(running(), [job])
    write_folder(store.home.result_folder(job.experiment_id, job.id), job)
    accepted = tmp_path / "accepted"
    accepted.mkdir()
    assert _in_processes(_record_same, *[(store.home.root, database_url, accepted)] * 3) == [0, 0, 0]
    assert len(list(accepted.iterdir())) == 1
    assert len(store.records(job.experiment_id)) == 1


def _die_in_mid_transaction(root: Path, url: str) -> None:
    with writing(connect_database(Home(root), url)) as connection:
        for number in range(200):
            connection.execute(insert(tables.experiment).values(experiment_row(experiment(f"half{number}"))))
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_writer_killed_in_mid_transaction_leaves_the_store_as_it_was(
    store: Store, kept: Experiment, database_url: str
) -> None:
    assert _in_processes(_die_in_mid_transaction, (store.home.root, database_url)) == [-signal.SIGKILL]
    assert [one.id for one in store.experiments()] == [kept.id]
    assert _is_sound(store)
    store.save_experiment(experiment("after"))
    assert [row["id"] for row in overview(store)] == ["after", kept.id]


def _die_between_rows_and_folders(root: Path, url: str, experiment_id: str) -> None:
    from prony.store import delete_tree

    delete_tree.remove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    with Store.open(Home(root), url=url) as store:
        store.delete_experiment(experiment_id)


def test_a_delete_killed_before_its_folders_went_is_finished_by_the_next_open(
    store: Store, kept: Experiment, database_url: str
) -> None:
    folder = store.home.experiment_folder(kept.id)
    assert _in_processes(_die_between_rows_and_folders, (store.home.root, database_url, kept.id)) == [-signal.SIGKILL]
    assert folder.exists()
    with Store.open(store.home, url=database_url) as again:
        assert again.experiments() == ()
    assert not folder.exists()


def _die_before_rows(root: Path, url: str, source: Path) -> None:
    Store.save_whole = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    with Store.open(Home(root), url=url) as store:
        import_(store, source, summarise=summarise, check_recipe=accept_recipe)


def test_an_import_killed_before_its_rows_were_written_can_be_done_again(
    store: Store, kept: Experiment, tmp_path: Path, other_url: str
) -> None:
    source, other = export(store, kept.id, tmp_path / "out"), Home(tmp_path / "other")
    assert _in_processes(_die_before_rows, (other.root, other_url, source)) == [-signal.SIGKILL]
    with Store.open(other, url=other_url) as again:
        assert again.experiments() == ()
        assert import_(again, source, summarise=summarise, check_recipe=accept_recipe) == kept
        assert len(again.records(kept.id)) == 2


def _start_and_die(root: Path, url: str, states: list[str], job_count: int) -> None:
    made = jobs(batch_sizes=tuple(range(1, job_count + 1)))
    store = Store.open(Home(root), url=url)
    store.save_experiment(running(job_count=job_count), made)
    for job, state in zip(made, states, strict=False):
        folder = write_folder(store.home.result_folder(job.experiment_id, job.id), job, ResultState(state))
        store.record_result(folder, summary(job))
    os.kill(os.getpid(), signal.SIGKILL)


class TestOrphans:
    @SELDOM_ON_POSTGRES
    @pytest.mark.parametrize(
        ("states", "ended"),
        [
            ([], "failed"),
            (["complete"], "partial"),
            (["failed", "failed"], "failed"),
            (["failed"], "partial"),
            (["complete", "complete"], "complete"),
            (["partial", "complete"], "partial"),
        ],
    )
    def test_an_experiment_whose_process_was_killed_ends_by_what_it_left(
        self, home: Home, states: list[str], ended: str, database_url: str
    ) -> None:
        assert _in_processes(_start_and_die, (home.root, database_url, states, 2)) == [-signal.SIGKILL]
        assert [row["is_abandoned"] for row in glance(home)] == ([] if database_url else [True])
        with Store.open(home, url=database_url) as store:
            assert [one.id for one in store.orphans()] == ["abc123def"]
            (adopted,) = store.adopt_orphans()
            assert adopted == store.experiment("abc123def")
            assert adopted.state == ended
            assert (adopted.ended_at is None) == (states == [])
            assert store.adopt_orphans() == ()
            assert [(row["state"], row["owner"]) for row in overview(store)] == [(ended, None)]
        assert [(row["state"], row["is_abandoned"]) for row in glance(home)] == (
            [] if database_url else [(ended, False)]
        )

    def test_glance_has_it_recovered_first_where_told_how(self, home: Home) -> None:
        _in_processes(_start_and_die, (home.root, "", [], 1))

        def recover(place: Home) -> None:
            with Store.open(place) as store:
                store.adopt_orphans()

        assert [row["state"] for row in glance(home, refresh=recover)] == ["failed"]

    @SELDOM_ON_POSTGRES
    def test_one_whose_process_lives_is_left_alone(self, store: Store, database_url: str) -> None:
        store.save_experiment(running())
        program = (
            "import sys; from pathlib import Path\n"
            "from prony.store.home import Home\n"
            "from prony.store.store import Store\n"
            "with Store.open(Home(Path(sys.argv[1])), url=sys.argv[2]) as store: print(len(store.adopt_orphans()))"
        )
        command = [sys.executable, "-c", program, str(store.home.root), database_url]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
        assert store.orphans() == ()
        assert store.experiment("abc123def").state is ExperimentState.RUNNING


def _fill_up(root: Path, said: Path) -> None:
    with Store.open(Home(root)) as store:
        # The kernel refuses to let any file grow beyond this, as a full disk would. The tables' own migrations are in
        # the write-ahead log already, so there is room for that and for some of what comes.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        room = max(path.stat().st_size for path in root.iterdir() if path.is_file()) + 512 * 1024
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        try:
            for number in range(2_000):
                store.save_experiment(experiment(f"id{number}", recipe_text="x" * 4_000))
        except StoreError as error:
            said.write_text(f"{error.message}\n{error.hint}")


def test_a_full_disk_is_a_store_error_and_what_was_stored_is_whole(home: Home, tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert _in_processes(_fill_up, (home.root, said)) == [0]
    assert "prony.db says: " in said.read_text()
    assert "what was stored before is not damaged" in said.read_text()
    with Store.open(home) as store:
        assert _is_sound(store)
        found = store.experiments()
        assert found
        assert len({one.id for one in found}) == len(found)
        store.save_experiment(experiment("after"))


def _export_in_little_room(root: Path, url: str, to: Path, said: Path) -> None:
    with Store.open(Home(root), url=url) as store:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        try:
            export(store, "abc123def", to)
        except StoreError as error:
            said.write_text(error.message)


def test_an_export_for_which_there_is_no_room_leaves_nothing(
    store: Store, kept: Experiment, tmp_path: Path, database_url: str
) -> None:
    to, said = tmp_path / "out" / "it", tmp_path / "said"
    assert _in_processes(_export_in_little_room, (store.home.root, database_url, to, said)) == [0]
    assert "File too large" in said.read_text()
    assert list(to.parent.iterdir()) == []


def _as_nobody(root: Path, said: Path) -> None:
    os.setgid(65534)
    os.setuid(65534)
    place = Home(root)
    lines = [",".join(row["id"] for row in glance(place))]
    try:
        Store.open(place)
    except StoreError as error:
        lines += [error.message, error.hint]
    said.write_text("\n".join(lines))


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can become somebody who may not write")
@pytest.mark.parametrize("database_url", [""])
def test_a_home_that_may_only_be_read_can_be_listed_and_says_why_not_more(store: Store, kept: Experiment) -> None:
    import tempfile

    store.close()
    # Outside pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as place:
        root, said = Path(place) / "home", Path(place) / "said"
        shutil.move(store.home.root, root)
        # A home is closed to others unless its owner opens it, as to a group that may look.
        for path in (Path(place), root, *root.rglob("*")):
            path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        said.touch()
        said.chmod(0o666)
        assert _in_processes(_as_nobody, (root, said)) == [0]
        listed, message, hint = said.read_text().splitlines()
    assert listed == kept.id
    assert message == f"{root} cannot be written to"
    assert "PRONY_HOME" in hint
