"""Many who write the same thing at the same instant: one does it, and the others are told so in peace."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import insert, select, text

from prony.errors import ConflictError, NotFoundError, PronyError
from prony.model.experiment import ExperimentState
from prony.model.result import ResultState
from prony.store import result_rows, tables
from prony.store.codecs import result_row
from prony.store.database import reading, writing
from prony.store.folder import read_folder
from prony.store.home import Home
from prony.store.process_owner import Owner, this_process
from prony.store.store import Store
from prony.store.transfer import export, import_

from .nouns import NOW, accept_recipe, calibration, experiment, jobs, recipe, running, summarise, summary, write_folder

T = TypeVar("T")
MANY = 6


def at_once(work: Callable[[int], T], count: int = MANY) -> list[T | PronyError]:
    """Have `work` done by several threads that begin together; return what each got, or was refused with."""
    gate = threading.Barrier(count)

    def begin(number: int) -> T | PronyError:
        gate.wait()
        try:
            return work(number)
        except PronyError as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def kinds(answers: list[object]) -> list[str]:
    return sorted(type(answer).__name__ for answer in answers)


def test_the_same_experiment_is_kept_once_and_nobody_is_refused(store: Store) -> None:
    made = experiment()
    assert at_once(lambda _: store.save_experiment(made, jobs())) == [None] * MANY
    assert store.experiments() == (made,)
    assert store.jobs(made.id) == jobs()


def test_of_different_experiments_under_one_id_one_is_kept(store: Store) -> None:
    answers = at_once(lambda number: store.save_experiment(experiment(recipe=recipe((1, number + 2)))))
    assert kinds(list(answers)) == ["ConflictError"] * (MANY - 1) + ["NoneType"]
    assert len(store.experiments()) == 1


def test_jobs_that_come_from_several_sides_each_have_their_own_place(store: Store) -> None:
    sizes = tuple(range(1, 4 * MANY + 1))
    made = running(job_count=len(sizes))
    offered = jobs(batch_sizes=sizes)
    assert at_once(lambda number: store.save_experiment(made, offered[number::MANY])) == [None] * MANY
    with reading(store.engine) as connection:
        places = connection.execute(select(tables.job.c.position).order_by(tables.job.c.position)).scalars().all()
    assert places == list(range(len(sizes)))


def test_of_one_attempt_offered_by_many_one_is_accepted(store: Store) -> None:
    job = jobs()[0]
    store.save_experiment(running(), [job])
    folder = write_folder(store.home.result_folder(job.experiment_id, job.id), job)
    answers = at_once(lambda _: store.record_result(folder, summary(job)))
    assert sorted(map(str, answers)) == ["False"] * (MANY - 1) + ["True"]


def test_of_attempts_that_come_together_exactly_one_stands_and_it_is_the_best(store: Store) -> None:
    job = jobs()[0]
    store.save_experiment(running(), [job])
    states = [ResultState.FAILED, ResultState.COMPLETE, ResultState.PARTIAL] * 2
    folders = [
        write_folder(store.home.result_folder(job.experiment_id, job.id, attempt), job, state)
        for attempt, state in enumerate(states, start=1)
    ]
    answers = at_once(lambda number: store.record_result(folders[number], summary(job), attempt=number + 1))
    assert answers == [True] * MANY
    (record,) = store.records(job.experiment_id)
    assert record.result.state is ResultState.COMPLETE


def test_an_experiment_that_many_end_is_ended_once(store: Store) -> None:
    store.save_experiment(running())
    ends = [NOW.replace(minute=number) for number in range(MANY)]
    state = ExperimentState.COMPLETE
    answers = at_once(lambda number: store.set_experiment_state("abc123def", state, ended_at=ends[number]))
    assert {answer.ended_at for answer in answers if not isinstance(answer, PronyError)} == {
        store.experiment("abc123def").ended_at
    }


def test_an_orphan_that_many_find_is_adopted_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Owner(**{**vars(this_process()), "started": "1"})
    monkeypatch.setattr(result_rows, "this_process", lambda: dead)
    for number in range(4):
        store.save_experiment(running(f"orphan{number}"))
    answers = at_once(lambda _: store.adopt_orphans())
    found = [one.id for answer in answers if not isinstance(answer, PronyError) for one in answer]
    assert sorted(found) == [f"orphan{number}" for number in range(4)]


def test_an_experiment_that_many_delete_is_deleted_by_one(store: Store) -> None:
    store.save_experiment(experiment(), jobs())
    answers = at_once(lambda _: store.delete_experiment("abc123def"))
    assert kinds(list(answers)) == ["NoneType"] + ["NotFoundError"] * (MANY - 1)


def test_results_that_come_while_their_experiment_is_deleted_wait_for_nobody_in_vain(store: Store) -> None:
    made = jobs(batch_sizes=tuple(range(1, MANY)))
    store.save_experiment(experiment(job_count=len(made)), made)
    folders = [write_folder(store.home.result_folder(job.experiment_id, job.id), job) for job in made]
    # Read before: a folder that goes while it is read is another matter.
    read = [read_folder(folder) for folder in folders]

    def work(number: int) -> object:
        if number == 0:
            store.delete_experiment("abc123def")
            return None
        with writing(store.engine) as connection:
            offered, job = read[number - 1], made[number - 1]
            return result_rows.add_result(connection, result_row(offered, summary(job)), attempt=1, folder=job.id)

    deleted, *recorded = at_once(work)
    assert deleted is None
    assert all(answer is True or isinstance(answer, NotFoundError) for answer in recorded)
    assert store.experiments() == ()


def test_who_ends_a_queued_job_and_who_deletes_its_experiment_do_not_wait_for_each_other(
    home: Home, postgres_url: str
) -> None:
    job = jobs()[0]
    with Store.open(home, url=postgres_url) as store, ThreadPoolExecutor(1) as threads:
        store.save_experiment(running(job_count=1), [job])
        contents = read_folder(write_folder(home.result_folder(job.experiment_id, job.id), job))
        _queue(store, job.id, job.experiment_id)
        with writing(store.engine) as connection:
            connection.execute(select(tables.queue.c.number).with_for_update())
            deleting = threads.submit(store.delete_experiment, job.experiment_id, force=True)
            _wait_until_somebody_waits(store)
            assert result_rows.add_result(connection, result_row(contents, summary(job)), attempt=1, folder=job.id)
        deleting.result(timeout=120)
        assert store.experiments() == ()


def _queue(store: Store, job_id: str, experiment_id: str) -> None:
    lot = {"id": "lot", "experiment_id": experiment_id, "demand_id": "d", "demand": "{}", "priority": 0}
    place = {"job_id": job_id, "experiment_id": experiment_id, "lot_id": "lot", "title": "", "state": "leased"}
    numbers = {"attempt": 1, "tries_left": 1, "beat": 0, "cancel_asked": False, "not_before": 0.0}
    with writing(store.engine) as connection:
        connection.execute(insert(tables.lot).values(lot | {"created_at": NOW}))
        words = {"reason": "", "labels": "{}", "created_at": NOW}
        connection.execute(insert(tables.queue).values(place | numbers | words))


def _wait_until_somebody_waits(store: Store) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    for _ in range(3000):
        with reading(store.engine) as connection:
            if connection.execute(text(waiting)).scalar():
                return
    pytest.fail("nobody waits")


def test_an_experiment_saved_while_its_namesake_is_deleted_does_not_lose_its_folder(store: Store) -> None:
    for _ in range(10):
        store.save_experiment(experiment())
        saved, deleted = at_once(
            lambda number: store.delete_experiment("abc123def") if number else store.save_experiment(experiment()), 2
        )
        assert deleted is None
        assert saved is None or isinstance(saved, ConflictError)
        if store.experiments():
            store.delete_experiment("abc123def")


def test_a_calibration_that_many_save_is_kept_once(store: Store) -> None:
    assert at_once(lambda _: store.save_calibration(calibration())) == [None] * MANY
    assert store.latest_calibration("hw-1") == calibration()


def test_an_export_that_several_import_is_kept_once(store: Store, tmp_path: Path, other_url: str) -> None:
    made = experiment()
    store.save_experiment(made, jobs())
    for job in jobs():
        folder = write_folder(store.home.result_folder(made.id, job.id), job)
        store.record_result(folder, summarise(folder))
    source = export(store, made.id, tmp_path / "out")
    with Store.open(Home(tmp_path / "empty"), url=other_url) as empty:
        assert (
            at_once(lambda _: import_(empty, source, summarise=summarise, check_recipe=accept_recipe), 3) == [made] * 3
        )
        assert len(empty.records(made.id)) == 2
