"""A database of any age in, the same database at this Prony's schema out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from prony.errors import StoreError
from prony.store.database import reading, translated, writing
from prony.store.home import Home
from prony.store.lock import locked
from prony.store.revision import HEAD

if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(engine: Engine, home: Home) -> None:
    """Bring the schema up to date; one cheap query when it is. Safe when several processes open at once."""
    if revision(engine) == HEAD:
        return
    with locked(home.lock):
        if engine.dialect.name == "sqlite":
            _write_ahead(engine)
        # In one transaction, begun before the revision is looked at: a crash leaves the old schema, whole.
        with writing(engine) as connection:
            _migrate(connection, HEAD)


def downgrade(engine: Engine, home: Home, to: str) -> None:
    """Take the schema back to an older revision, or to `base`."""
    from alembic import command

    with locked(home.lock), writing(engine) as connection:
        command.downgrade(configuration(connection), to)


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
            f"the database {connection.engine.url.database} was made by a newer Prony (schema {found})",
            hint="upgrade Prony, or set PRONY_HOME to another folder",
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
    with translated(engine), engine.connect() as connection:
        driver = connection.connection.driver_connection
        if driver is not None:
            driver.execute("PRAGMA journal_mode = WAL")
