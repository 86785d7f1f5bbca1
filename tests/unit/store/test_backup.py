"""The ways to back up that the page about the database names: what is restored is the same store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from prony.model.experiment import Experiment
from prony.store.home import Home
from prony.store.schema import revision
from prony.store.store import Store
from servers.shared import Shared

from .nouns import experiment, overview


def _all_of(store: Store) -> tuple[object, ...]:
    records = [one.summary.model_dump_json() for found in store.experiments() for one in store.records(found.id)]
    return revision(store.engine), store.experiments(), records, overview(store)


@pytest.mark.parametrize("database_url", [""])
def test_a_backup_of_sqlite_while_it_is_in_use_is_the_same_store(
    store: Store, kept: Experiment, tmp_path: Path
) -> None:
    copy = Home(tmp_path / "copy").create()
    with closing(sqlite3.connect(store.home.database)) as source, closing(sqlite3.connect(copy.database)) as target:
        source.backup(target)
    before = _all_of(store)
    store.save_experiment(experiment("later"))
    with Store.open(copy) as restored:
        assert _all_of(restored) == before


def test_a_dump_of_postgresql_while_it_is_in_use_is_the_same_store(
    home: Home, postgres: Shared, postgres_url: str, empty_postgres_url: str
) -> None:
    with Store.open(home, url=postgres_url) as store:
        store.save_experiment(experiment())
        dump = postgres.programs.make_folder(postgres.folder) / "prony.dump"
        done = postgres.programs.run("pg_dump", "--format=custom", f"--file={dump}", postgres_url)
        assert done.returncode == 0, done.stderr
        before = _all_of(store)
        store.save_experiment(experiment("later"))
    done = postgres.programs.run("pg_restore", f"--dbname={empty_postgres_url}", str(dump))
    assert done.returncode == 0, done.stderr
    with Store.open(home, url=empty_postgres_url) as restored:
        assert _all_of(restored) == before
        restored.save_experiment(experiment("after"))
