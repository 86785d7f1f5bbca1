"""A server's database with two small experiments in, the same with thousands of their likes out.

One of the two has ended, the other waits; the database itself makes copies of both, four of the first for each of the
second, in one statement a table. What a result says in full is left away: no list reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    FromClause,
    Integer,
    MetaData,
    String,
    Table,
    func,
    insert,
    literal,
    select,
    text,
)

from prony.store import tables
from prony.store import tables as listing_tables
from prony.store.database import connect_database, writing
from prony.store.home import Home
from prony.store.tables import Instant

JOBS_EACH = 100
# One label is common, as that of a team, and one is its experiment's alone.
COMMON, TEAMS = "team", 10
RARE = "only"
# Parents first; each with the columns that hold an id, or something with an id in it.
_COPIED: dict[Table, tuple[str, ...]] = {
    tables.experiment: ("id", "document"),
    listing_tables.listed: ("experiment_id",),
    tables.lot: ("id", "experiment_id"),
    tables.job: ("id", "experiment_id", "document"),
    tables.queue: ("job_id", "experiment_id", "lot_id", "labels"),
    tables.attempt: ("job_id",),
    tables.label: ("job_id", "value"),
    tables.result: ("job_id", "experiment_id", "folder"),
}
# Which experiment is copied under which name, when it is said to have been made, and with which labels.
_copies = Table(
    "copies",
    MetaData(),
    Column("number", Integer, primary_key=True),
    Column("old", String(128)),
    Column("new", String(128)),
    Column("suffix", String(16)),
    Column("team", String(16)),
    Column("only", String(16)),
    Column("made_at", Instant),
    prefixes=["TEMPORARY"],
)


def fill(home: Path, url: str, ended_id: str, waiting_id: str, *, jobs: int) -> str:
    """Copy until there are so many jobs; return the id of one of the ended experiments, from the middle."""
    rows = [_copy(number, ended_id, waiting_id) for number in range(2, jobs // JOBS_EACH)]
    with _engine(home, url) as engine:
        with writing(engine) as connection:
            _copies.create(connection)
            connection.execute(insert(_copies), rows)
            for table in _COPIED:
                _fill(connection, table)
            _copies.drop(connection)
        if engine.dialect.name == "postgresql":
            # Its own housekeeping would do so within a minute.
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("VACUUM ANALYZE"))
    ended = [row["new"] for row in rows if row["old"] == ended_id]
    return str(ended[len(ended) // 2])


@contextmanager
def _engine(home: Path, url: str) -> Iterator[Engine]:
    engine = connect_database(Home(home), url)
    try:
        yield engine
    finally:
        engine.dispose()


def _copy(number: int, ended_id: str, waiting_id: str) -> dict[str, Any]:
    old = waiting_id if number % 5 == 0 else ended_id
    return {
        "number": number,
        "old": old,
        "new": f"{old}-{number}",
        "suffix": f"-{number}",
        "team": f"{COMMON}-{number % TEAMS}",
        "only": f"{RARE}-{number}",
        "made_at": datetime.now(UTC) - timedelta(hours=1) + timedelta(seconds=number / 100),
    }


def _fill(connection: Connection, table: Table) -> None:
    columns = [column for column in table.c if column is not tables.queue.c.number]
    query = select(*(_value(table, column) for column in columns)).select_from(_with_copies(table))
    order = (_copies.c.number, tables.queue.c.number) if table is tables.queue else (_copies.c.number,)
    connection.execute(insert(table).from_select(columns, query.order_by(*order)))


def _with_copies(table: Table) -> FromClause:
    """Return each row once for every copy of the experiment that it belongs to."""
    if table is tables.experiment:
        return table.join(_copies, _copies.c.old == table.c.id)
    if "experiment_id" in table.c:
        return table.join(_copies, _copies.c.old == table.c.experiment_id)
    job = tables.job
    rows = job.join(_copies, _copies.c.old == job.c.experiment_id).join(table, table.c.job_id == job.c.id)
    if table is not tables.label:
        return rows
    return rows.join(tables.queue, tables.queue.c.job_id == func.replace(job.c.id, _copies.c.old, _copies.c.new))


def _value(table: Table, column: Column[Any]) -> ColumnElement[Any]:
    if column.key == "created_at" and table is not tables.queue:
        return _copies.c.made_at
    if column is tables.attempt.c.lease_id:
        return column.concat(_copies.c.suffix)
    if column is tables.label.c.number:
        return tables.queue.c.number
    if table is tables.result and column.key in ("document", "summary"):
        return literal("")
    if column.key not in _COPIED[table]:
        return column
    renamed = func.replace(column, _copies.c.old, _copies.c.new)
    return func.replace(func.replace(renamed, f"{COMMON}-0", _copies.c.team), f"{RARE}-0", _copies.c.only)
