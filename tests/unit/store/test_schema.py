from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, insert, inspect, select, text, update

from prony.errors import StoreError
from prony.model.experiment import Experiment
from prony.store import tables
from prony.store.create_schema import schema
from prony.store.database import connect_database, reading, writing
from prony.store.glance import glance
from prony.store.home import Home
from prony.store.revision import HEAD
from prony.store.schema import configuration, downgrade, migrate, revision, upgrade
from prony.store.store import Store
from servers.forked import process_context

from .nouns import NOW, calibration, experiment, overview

ON_SQLITE = pytest.mark.parametrize("database_url", [""])


@pytest.fixture
def fresh(home: Home, other_url: str) -> Engine:
    """An engine on a database that Prony has never seen."""
    return connect_database(home.create(), other_url)


def test_the_constant_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(configuration()).get_heads() == [HEAD]


# The tables that the code uses, and those that the migrations make


def test_the_migrations_make_the_tables_that_the_code_uses(fresh: Engine, home: Home) -> None:
    migrate(fresh, home)
    with reading(fresh) as connection:
        options = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), schema()) == []
        assert inspect(connection).get_view_names() == ["experiment_overview"]
    fresh.dispose()


def test_what_is_made_at_once_is_what_the_migrations_make_to_the_letter(
    store: Store, fresh: Engine, home: Home
) -> None:
    migrate(fresh, home)
    assert _described(store.engine) == _described(fresh)
    assert any("queue_unended" in str(one) and "WHERE" in str(one) for one in _described(store.engine))
    assert revision(store.engine) == revision(fresh) == HEAD
    fresh.dispose()


def test_a_database_that_holds_tables_of_somebody_else_is_migrated_beside_them(fresh: Engine, home: Home) -> None:
    with writing(fresh) as connection:
        connection.execute(text("CREATE TABLE theirs (mine INTEGER)"))
    upgrade(fresh, home)
    assert revision(fresh) == HEAD
    assert inspect(fresh).has_table("theirs")
    fresh.dispose()


def _described(engine: Engine) -> set[tuple[Any, ...]]:
    """Return what the database itself says of its tables, their columns, indexes and keys."""
    queries = (
        """SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, is_identity, column_default
           FROM information_schema.columns WHERE table_schema = 'public'""",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
           FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
        "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
    )
    if engine.dialect.name == "sqlite":
        # Whether a key is written beside its column or below is a matter of spelling: the pragmas tell what it means.
        queries = (
            "SELECT name, sql FROM sqlite_master WHERE type = 'view'",
            "SELECT m.name, c.* FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE m.type = 'table'",
            "SELECT m.name, f.* FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'",
            """SELECT m.name, x.name, x."unique", x.partial, i.seqno, i.name, s.sql FROM sqlite_master m,
               pragma_index_list(m.name) x, pragma_index_xinfo(x.name) i
               LEFT JOIN sqlite_master s ON s.name = x.name WHERE m.type = 'table'""",
        )
    with reading(engine) as connection:
        rows = [tuple(row) for query in queries for row in connection.execute(text(query))]
    return set(rows)


# Up and down


def test_down_leaves_nothing_and_up_again_works(fresh: Engine, home: Home) -> None:
    upgrade(fresh, home)
    downgrade(fresh, home, "base")
    with reading(fresh) as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
        assert inspect(connection).get_view_names() == []
    assert revision(fresh) is None
    upgrade(fresh, home)
    assert revision(fresh) == HEAD
    fresh.dispose()


def test_what_is_kept_outlives_every_step_down_and_up(store: Store, kept: Experiment) -> None:
    store.save_calibration(calibration())
    before = _kept(store, kept)
    downgrade(store.engine, store.home, "0001")
    assert revision(store.engine) == "0001"
    assert _kept(store, kept) == before
    assert not inspect(store.engine).has_table("queue")
    upgrade(store.engine, store.home)
    assert revision(store.engine) == HEAD
    assert _kept(store, kept) == before
    # And what only the newer schema has can be written again.
    with writing(store.engine) as connection:
        row = {"id": "lot", "experiment_id": kept.id, "demand_id": "d", "demand": "{}", "priority": 0}
        connection.execute(insert(tables.lot).values(row | {"created_at": NOW}))


def _kept(store: Store, kept: Experiment) -> tuple[object, ...]:
    records = [(one.attempt, one.result, one.summary.model_dump_json(), one.folder) for one in store.records(kept.id)]
    return store.experiments(), store.jobs(kept.id), records, store.latest_calibration("hw-1"), overview(store)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(fresh: Engine, home: Home) -> None:
    upgrade(fresh, home)
    downgrade(fresh, home, "0001")
    with writing(fresh) as connection:
        # In the way of a later step of the migration, when much of it is done.
        connection.execute(text("CREATE TABLE audit (mine INTEGER)"))
    with pytest.raises(StoreError, match="audit"):
        upgrade(fresh, home)
    assert revision(fresh) == "0001"
    assert not inspect(fresh).has_table("queue")
    with writing(fresh) as connection:
        connection.execute(text("DROP TABLE audit"))
    upgrade(fresh, home)
    assert revision(fresh) == HEAD
    fresh.dispose()


def _open(root: Path, url: str, told: Any) -> None:
    told.wait()
    Store.open(Home(root), url=url).close()


def test_many_processes_that_open_a_new_database_at_once_all_succeed(other_url: str, tmp_path: Path) -> None:
    context = process_context()
    gate = context.Barrier(4)
    # On a server each may have a home of its own, so that no lock of a folder keeps them apart.
    roots = [tmp_path / f"home{number if other_url else ''}" for number in range(4)]
    processes = [context.Process(target=_open, args=(root, other_url, gate)) for root in roots]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=240)
    assert [process.exitcode for process in processes] == [0] * 4
    engine = connect_database(Home(roots[0]), other_url)
    assert revision(engine) == HEAD
    engine.dispose()


# What opening does and does not


@ON_SQLITE
def test_the_database_is_in_wal_mode_and_keeps_to_its_keys(store: Store) -> None:
    with reading(store.engine) as connection:
        pragma = connection.exec_driver_sql
        assert pragma("PRAGMA journal_mode").scalar() == "wal"
        assert pragma("PRAGMA foreign_keys").scalar() == 1
        assert pragma("PRAGMA busy_timeout").scalar() == 10_000
        assert pragma("PRAGMA synchronous").scalar() == 1


def test_opening_what_is_up_to_date_does_not_import_alembic(store: Store, home: Home, database_url: str) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from prony.store.home import Home\n"
        "from prony.store.store import Store\n"
        f"Store.open(Home(Path({str(home.root)!r})), url={database_url!r}).close()\n"
        "print('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def _pretend(engine: Engine, version: str) -> None:
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def test_a_database_of_a_newer_prony_is_refused_and_left_alone(store: Store, home: Home, database_url: str) -> None:
    store.save_experiment(experiment())
    _pretend(store.engine, "9999")
    with pytest.raises(StoreError, match=r"newer Prony \(schema 9999\)") as caught:
        Store.open(home, url=database_url)
    assert caught.value.code == "newer_store"
    _pretend(store.engine, HEAD)
    assert Store.open(home, url=database_url).experiments() == (experiment(),)


def test_a_glance_at_a_newer_one_is_refused_too(home: Home) -> None:
    Store.open(home).close()
    with sqlite3.connect(home.database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(StoreError, match="newer Prony"):
        glance(home)


def test_a_file_that_is_no_database_is_named(home: Home) -> None:
    home.create().database.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(StoreError, match=r"prony\.db says: file is not a database") as caught:
        Store.open(home)
    assert "move the file away" in caught.value.hint


def test_a_path_with_a_percent_sign_and_spaces_can_be_opened(home: Home) -> None:
    odd = Home(home.root / "100% of it? yes#1")
    with Store.open(odd) as opened:
        opened.save_experiment(experiment())
    assert [row["id"] for row in glance(odd)] == [experiment().id]


def test_the_overview_of_either_database_says_what_prony_list_shows(store: Store, kept: Experiment) -> None:
    with writing(store.engine) as connection:
        connection.execute(update(tables.experiment).values(owner=None))
        assert connection.execute(select(tables.result.c.stands)).scalars().all() == [True, True]
    (row,) = overview(store)
    counts = ("job_count", "jobs_complete", "jobs_partial", "jobs_failed", "jobs_waiting")
    assert [row[name] for name in counts] == [2, 2, 0, 0, 0]
    assert (row["worst_grade"], row["best_job_id"], row["headline_value"]) == ("valid", "abc123def-0", 1.0)
