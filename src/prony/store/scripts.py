"""Which folders of scripts the experiments and schedules of a database still name."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from prony.store import tables


def named_scripts(connection: Connection, sha256s: Iterable[str]) -> set[str]:
    """Return those that a kept experiment or a schedule names: it may be run again."""
    return {sha256 for sha256 in sha256s if _is_named(connection, sha256)}


def _is_named(connection: Connection, sha256: str) -> bool:
    pattern = f"%sha256:{sha256}%"
    return any(
        connection.execute(select(table.c.id).where(column.like(pattern)).limit(1)).first() is not None
        for table, column in (
            (tables.experiment, tables.experiment.c.document),
            (tables.schedule, tables.schedule.c.submission),
        )
    )
