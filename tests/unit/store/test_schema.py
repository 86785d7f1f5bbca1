from __future__ import annotations

import io
import sqlite3
import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Table, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateTable

from prony.errors import StoreError
from prony.store.database import connected, reading
from prony.store.glance import glance
from prony.store.home import Home
from prony.store.revision import HEAD
from prony.store.schema import configuration, downgrade, revision, upgrade
from prony.store.store import Store
from prony.store.tables import metadata

from .nouns import experiment


def test_the_constant_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(configuration()).get_heads() == [HEAD]


def test_the_migrations_make_the_tables_that_the_code_uses(store: Store, home: Home) -> None:
    engine = connected(home)
    with reading(engine) as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert inspect(connection).get_view_names() == ["experiment_overview"]


def test_down_leaves_nothing_and_up_again_works(home: Home) -> None:
    engine = connected(home.create())
    upgrade(engine, home)
    downgrade(engine, home, "base")
    with reading(engine) as connection:
        assert inspect(connection).get_table_names() == ["alembic_version"]
        assert inspect(connection).get_view_names() == []
    assert revision(engine) is None
    upgrade(engine, home)
    assert revision(engine) == HEAD
    engine.dispose()


def test_the_database_is_in_wal_mode_and_keeps_to_its_keys(store: Store, home: Home) -> None:
    with reading(connected(home)) as connection:
        pragma = connection.exec_driver_sql
        assert pragma("PRAGMA journal_mode").scalar() == "wal"
        assert pragma("PRAGMA foreign_keys").scalar() == 1
        assert pragma("PRAGMA busy_timeout").scalar() == 10_000
        assert pragma("PRAGMA synchronous").scalar() == 1


def test_opening_what_is_up_to_date_does_not_import_alembic(store: Store, home: Home) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from prony.store.home import Home\n"
        "from prony.store.store import Store\n"
        f"Store.open(Home(Path({str(home.root)!r}))).close()\n"
        "print('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def _pretend(home: Home, version: str) -> None:
    with sqlite3.connect(home.database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    connection.close()


def test_a_database_of_a_newer_prony_is_refused_and_left_alone(store: Store, home: Home) -> None:
    store.save_experiment(experiment())
    _pretend(home, "9999")
    with pytest.raises(StoreError, match=r"newer Prony \(schema 9999\)"):
        Store.open(home)
    with pytest.raises(StoreError, match="newer Prony"):
        glance(home)
    _pretend(home, HEAD)
    assert Store.open(home).experiments() == (experiment(),)


def test_a_file_that_is_no_database_is_named(home: Home) -> None:
    home.create().database.write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    with pytest.raises(StoreError, match=r"prony\.db says: file is not a database") as caught:
        Store.open(home)
    assert "move the file away" in caught.value.hint


def test_a_url_that_is_none_is_refused(home: Home) -> None:
    with pytest.raises(StoreError, match="names no database"):
        Store.open(home, url="no url")


def test_a_path_with_a_percent_sign_and_spaces_can_be_opened(home: Home) -> None:
    odd = Home(home.root / "100% of it? yes#1")
    with Store.open(odd) as opened:
        opened.save_experiment(experiment())
    assert [row["id"] for row in glance(odd)] == [experiment().id]


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=lambda table: table.name)
def test_every_table_has_a_form_in_postgresql(table: Table) -> None:
    text = str(CreateTable(table).compile(dialect=make_url("postgresql://").get_dialect()()))
    assert text.strip().startswith(f"CREATE TABLE {table.name}")


def test_every_migration_can_be_written_for_postgresql() -> None:
    written = io.StringIO()
    context = MigrationContext.configure(dialect_name="postgresql", opts={"as_sql": True, "output_buffer": written})
    scripts = ScriptDirectory.from_config(configuration())
    with Operations.context(context):
        for script in reversed(list(scripts.walk_revisions())):
            script.module.upgrade()
    assert "CREATE VIEW experiment_overview" in written.getvalue()
    assert "created_at TIMESTAMP WITH TIME ZONE NOT NULL" in written.getvalue()
