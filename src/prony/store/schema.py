"""Upgrade or downgrade the database schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from prony.errors import StoreError
from prony.store.database import name_of, reading, translate_errors, writing
from prony.store.home import Home
from prony.store.lock import hold_file_lock
from prony.store.revision import HEAD

if TYPE_CHECKING:
    from alembic.config import Config

# Of PostgreSQL's advisory locks, ours: any number that no other program on the same database is likely to take.
_LOCK_KEY = int.from_bytes(b"prony")
_PATIENCE_S = 120


def upgrade(engine: Engine, home: Home) -> None:
    """Bring the schema up to date; one cheap query when it is. Safe when several processes open at once."""
    if engine.dialect.name == "sqlite":
        _make_private(engine)
    if revision(engine) == HEAD:
        return
    if engine.dialect.name == "sqlite":
        with hold_file_lock(home.lock):
            _write_ahead(engine)
    with _changing(engine, home) as connection:
        if inspect(connection).get_table_names():
            _migrate(connection, HEAD)
        else:
            from prony.store.create_schema import make

            make(connection)


def _make_private(engine: Engine) -> None:
    """Make the file before SQLite does, which would let everybody read it; what it writes beside it is like it."""
    path = Path(engine.url.database or "")
    if engine.url.database and not path.exists():
        with suppress(OSError):  # whoever opens it next says better what is wrong
            path.touch(mode=0o600)


def migrate(engine: Engine, home: Home, to: str = HEAD) -> None:
    """Take the schema on to a revision by the migrations alone, from nothing too."""
    with _changing(engine, home) as connection:
        _migrate(connection, to)


def downgrade(engine: Engine, home: Home, to: str) -> None:
    """Take the schema back to an older revision, or to `base`."""
    from alembic import command

    with _changing(engine, home) as connection:
        command.downgrade(configuration(connection), to)


@contextmanager
def _changing(engine: Engine, home: Home) -> Iterator[Connection]:
    """One transaction in which nobody else changes the schema: a crash leaves the old one, whole."""
    if engine.dialect.name == "sqlite":
        with hold_file_lock(home.lock), writing(engine) as connection:
            yield connection
        return
    # Servers on other machines may not see this home's lock: the database itself keeps them apart.
    with writing(engine) as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{_PATIENCE_S}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
        _check_encoding(connection)
        yield connection


def _check_encoding(connection: Connection) -> None:
    found = connection.execute(text("SHOW server_encoding")).scalar()
    if found != "UTF8":
        raise StoreError(
            f"{name_of(connection.engine)} stores text as {found}, which lacks most letters",
            hint="make one with UTF-8: createdb --encoding=UTF8 --template=template0 NAME",
        )


def revision(engine: Engine) -> str | None:
    """Return the schema's revision, or None for a database that was never migrated."""
    with reading(engine) as connection:
        return _revision(connection)


def configuration(connection: Connection | None = None) -> Config:
    """Return Alembic's configuration of our scripts, bound to an open connection."""
    from alembic.config import Config

    config = Config()
    place = str(Path(__file__).parent / "migrations").replace("%", "%%")
    config.set_main_option("script_location", place)
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _migrate(connection: Connection, to: str) -> None:
    from alembic import command
    from alembic.script import ScriptDirectory

    config = configuration(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    found = _revision(connection)
    if found is not None and found not in known:
        raise StoreError(
            f"{name_of(connection.engine)} was made by a newer Prony (schema {found})",
            hint="upgrade Prony, or set PRONY_HOME (or the database's URL) to another place",
            code="newer_store",
        )
    command.upgrade(config, to)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _write_ahead(engine: Engine) -> None:
    """Let readers and one writer work at once; kept in the file, so it is asked for only when that is made."""
    with translate_errors(engine), engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is not None:
            driver.execute("PRAGMA journal_mode = WAL")
