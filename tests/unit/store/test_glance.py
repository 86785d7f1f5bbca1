from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from prony.errors import StoreError
from prony.model.estimate import Grade
from prony.model.experiment import Experiment, ExperimentState
from prony.model.result import ResultState
from prony.store.database import connect_database, writing
from prony.store.glance import glance
from prony.store.home import Home
from prony.store.schema import downgrade
from prony.store.store import Store
from prony.store.tables import experiment as experiment_table

from .nouns import experiment, jobs, running, summary, write_folder


@pytest.fixture
def database_url() -> str:
    """Only a home of one's own is glanced at; a server is asked for its list."""
    return ""


def test_a_home_that_was_never_used_has_nothing_and_stays_unmade(home: Home) -> None:
    assert glance(home) == []
    assert not home.root.exists()


def test_a_store_without_experiments_has_nothing(store: Store) -> None:
    assert glance(store.home) == []


def test_it_lists_what_the_store_lists(store: Store) -> None:
    for minutes in range(5):
        state = ExperimentState.FAILED if minutes % 2 else ExperimentState.COMPLETE
        store.save_experiment(experiment(f"id{minutes}", minutes=minutes, state=state, name=f"name{minutes % 3}"))
    store.save_experiment(running("id9", minutes=9))
    narrowings: tuple[dict[str, Any], ...] = ({}, {"limit": 2}, {"name": "name1"}, {"state": ExperimentState.FAILED})
    for narrowed in narrowings:
        rows = glance(store.home, **{"limit": None, **narrowed})
        found = store.experiments(**narrowed)
        assert [_common(row) for row in rows] == [_noun(one) for one in found]


def _common(row: dict[str, object]) -> tuple[object, ...]:
    ended = row["ended_at"]
    instants = (datetime.fromisoformat(str(row["created_at"])), ended and datetime.fromisoformat(str(ended)))
    return (row["id"], row["name"], row["state"], row["job_count"], *instants)


def _noun(one: Experiment) -> tuple[object, ...]:
    return (one.id, one.name, one.state.value, one.job_count, one.created_at, one.ended_at)


def test_instants_are_written_as_the_nouns_write_them(store: Store, kept: Experiment) -> None:
    dumped = kept.model_dump(mode="json")
    (row,) = glance(store.home)
    assert (row["created_at"], row["ended_at"]) == (dumped["created_at"], dumped["ended_at"])


def _record(store: Store, number: int, median_ms: float, **how: object) -> None:
    job = jobs(batch_sizes=(1, 2, 4, 8, 16))[number]
    state = how.pop("state", ResultState.COMPLETE)
    assert isinstance(state, ResultState)
    folder = write_folder(store.home.result_folder(job.experiment_id, job.id), job, state)
    store.record_result(folder, summary(job, median_ms=median_ms, **how))  # type: ignore[arg-type]


def test_the_headline_is_the_best_job_that_may_be_quoted(store: Store) -> None:
    store.save_experiment(experiment(job_count=5), jobs(batch_sizes=(1, 2, 4, 8, 16)))
    _record(store, 0, 3.0)
    _record(store, 1, 2.0, grade=Grade.SUSPECT)
    _record(store, 2, 1.0, grade=Grade.VOID)
    _record(store, 3, 0.0, state=ResultState.FAILED, grade=Grade.VOID, estimated=False)
    (row,) = glance(store.home)
    assert row == {
        "id": "abc123def",
        "name": "quick",
        "state": "complete",
        "created_at": "2025-03-01T12:00:00.250000Z",
        "ended_at": "2025-03-01T12:00:40.250000Z",
        "job_count": 5,
        "jobs_complete": 3,
        "jobs_partial": 0,
        "jobs_failed": 1,
        "jobs_waiting": 1,
        "worst_grade": "void",
        "best_job_id": "abc123def-1",
        "headline_title": "batch_size=2",
        "headline_metric": "inference_ms.p50",
        "headline_value": 2.0,
        "headline_low": 1.9,
        "headline_high": 2.2,
        "headline_unit": "ms",
        "is_abandoned": False,
    }


def test_an_attempt_that_does_not_stand_is_not_counted(store: Store) -> None:
    (job,) = jobs(batch_sizes=(1,))
    store.save_experiment(experiment(job_count=1), [job])
    _record(store, 0, 5.0, state=ResultState.PARTIAL)
    folder = write_folder(store.home.result_folder(job.experiment_id, job.id, 2), job)
    store.record_result(folder, summary(job, median_ms=6.0), attempt=2)
    (row,) = glance(store.home)
    assert (row["jobs_complete"], row["jobs_partial"], row["jobs_waiting"]) == (1, 0, 0)
    assert row["headline_value"] == 6.0


def test_nothing_measured_is_no_headline_and_no_grade(store: Store) -> None:
    store.save_experiment(running())
    (row,) = glance(store.home)
    assert row["headline_value"] is row["best_job_id"] is row["worst_grade"] is row["ended_at"] is None
    assert row["jobs_waiting"] == 2
    assert row["is_abandoned"] is False


def test_it_reads_while_a_writer_is_in_the_middle(store: Store, kept: Experiment) -> None:
    with writing(connect_database(store.home)) as connection:
        connection.execute(experiment_table.delete())
        assert [row["id"] for row in glance(store.home)] == [kept.id]
    assert glance(store.home) == []


def test_an_older_schema_is_migrated_first(store: Store, home: Home) -> None:
    downgrade(connect_database(home), home, "base")
    assert glance(home) == []
    store.save_experiment(experiment())
    assert [row["id"] for row in glance(home)] == ["abc123def"]


def test_a_damaged_database_is_named(home: Home) -> None:
    home.create().database.write_bytes(b"no database, whatever its name says " * 100)
    with pytest.raises(StoreError, match=r"cannot read .*prony\.db: file is not a database"):
        glance(home)


def test_it_never_writes(store: Store, kept: Experiment) -> None:
    before = {path.name: path.read_bytes() for path in store.home.root.glob("prony.db*") if path.suffix != ".db-shm"}
    assert glance(store.home)[0]["id"] == kept.id
    assert {name: (store.home.root / name).read_bytes() for name in before} == before


def test_it_imports_nothing_that_is_slow(store: Store, home: Home) -> None:
    store.save_experiment(running())
    program = (
        "import sys; from pathlib import Path\n"
        "from prony.store.glance import glance\n"
        "from prony.store.home import Home\n"
        f"assert len(glance(Home(Path({str(home.root)!r})))) == 1\n"
        "print(sorted({'sqlalchemy', 'pydantic', 'alembic', 'polars', 'numpy', 'psutil'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_closed_store_can_be_read_where_nothing_can_be_written(
    store: Store, kept: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    assert not Path(f"{store.home.database}-wal").exists()
    # Root may write anywhere, so the answer of the system is what is changed here.
    monkeypatch.setattr("prony.store.glance.os.access", lambda *_: False)
    assert [row["id"] for row in glance(store.home)] == [kept.id]
    assert not Path(f"{store.home.database}-shm").exists()
