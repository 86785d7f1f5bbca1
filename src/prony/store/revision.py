"""Read the schema revision of a database file. Standard library only, because `prony list` asks."""

from __future__ import annotations

import sqlite3

# The newest migration. A test holds it against the scripts, so that a start need not import Alembic to know it.
HEAD = "0011"


def revision_of(connection: sqlite3.Connection) -> str | None:
    """Return the schema's revision, or None for a database that was never migrated."""
    named = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'")
    if named.fetchone() is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])
