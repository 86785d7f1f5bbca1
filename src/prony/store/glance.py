"""List a home's experiments quickly for `prony list`.

Standard library only, and read-only: nothing that is slow to import, and no waiting for a writer.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from prony.errors import StoreError
from prony.store.home import Home
from prony.store.revision import HEAD, revision_of

_BUSY_S = 10.0


def glance(
    home: Home,
    limit: int | None = 20,
    *,
    name: str | None = None,
    state: str | None = None,
    schedule: str | None = None,
    refresh: Callable[[Home], None] | None = None,
) -> list[dict[str, Any]]:
    """Return the newest experiments first; none where nothing was ever stored.

    Each has id, name, state, created_at, ended_at (ISO 8601, UTC), job_count, jobs_complete, jobs_partial, jobs_failed,
    jobs_waiting, worst_grade, and of its best job that may be quoted best_job_id, headline_title, headline_metric,
    headline_value, headline_low, headline_high, headline_unit; unknown is None. `is_abandoned` says that it is called
    running though its process is gone. Where there is such a one, and `refresh` is given to bring in what it left, that
    is called first.
    """
    if not _is_there(home):
        return []
    if not _is_ours(home):
        _migrate(home)
    if refresh is not None and _has_abandoned(home):
        # Where nothing can be written the old state is shown: reading must still work.
        with suppress(StoreError):
            refresh(home)
    with _open_database(home) as connection:
        return _rows(connection, limit, name, state, schedule)


def _is_ours(home: Home) -> bool:
    with _open_database(home) as connection:
        return revision_of(connection) == HEAD


def _has_abandoned(home: Home) -> bool:
    with _open_database(home) as connection:
        running = connection.execute("SELECT state, owner FROM experiment WHERE state = 'running'").fetchall()
    return any(_is_abandoned(state, owner) for state, owner in running)


def _rows(
    connection: sqlite3.Connection, limit: int | None, name: str | None, state: str | None, schedule: str | None
) -> list[dict[str, Any]]:
    query = """
        SELECT * FROM experiment_overview WHERE name = coalesce(:name, name) AND state = coalesce(:state, state)
        AND (:schedule IS NULL OR id IN (
            SELECT experiment_id FROM scheduled WHERE schedule_id IN (
                SELECT :schedule UNION SELECT id FROM schedule WHERE name = :schedule)))
        ORDER BY created_at DESC, id DESC LIMIT :most
    """
    asked = {"name": name, "state": state, "schedule": schedule, "most": -1 if limit is None else limit}
    found = connection.execute(query, asked)
    columns = [column[0] for column in found.description]
    return [_show_row(dict(zip(columns, row, strict=True))) for row in found]


@contextmanager
def _open_database(home: Home) -> Iterator[sqlite3.Connection]:
    place = f"file:{quote(str(home.database))}"
    try:
        with closing(sqlite3.connect(f"{place}?{_mode(home)}", uri=True, timeout=_BUSY_S)) as connection:
            yield connection
    except sqlite3.Error as exc:
        raise StoreError(
            f"cannot read {home.database}: {exc}", hint="check that it is Prony's and that you may read it"
        ) from exc


def _mode(home: Home) -> str:
    """Return how to open: in a folder that nobody can write to, not even SQLite's own index of the log can be made."""
    log = home.database.with_name(home.database.name + "-wal")
    return "mode=ro" if log.exists() or os.access(home.root, os.W_OK) else "immutable=1"


def _is_there(home: Home) -> bool:
    try:
        return home.database.exists()
    except OSError as exc:
        raise StoreError(f"cannot look into {home.root}: {exc.strerror}", hint="check that you may read it") from exc


def _migrate(home: Home) -> None:
    from prony.store.store import Store

    Store.open(home).close()


def _show_row(row: dict[str, Any]) -> dict[str, Any]:
    is_abandoned = _is_abandoned(row["state"], row.pop("owner"))
    instants = {key: _instant(row[key]) for key in ("created_at", "ended_at")}
    return row | instants | {"is_abandoned": is_abandoned}


def _is_abandoned(state: str, owner: str | None) -> bool:
    if state != "running" or owner is None:
        return False
    from prony.store.process_owner import Owner, lives

    return lives(Owner.read(owner)) is False


def _instant(text: str | None) -> str | None:
    """Return ISO 8601 in UTC as the nouns write it; SQLite keeps neither the zone nor the `T`."""
    if text is None:
        return None
    return datetime.fromisoformat(text).replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
