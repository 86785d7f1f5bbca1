"""Rows of the audit trail: append, read and prune them in an open transaction."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select

from prony.model.access import AuditEntry
from prony.model.queue import Page
from prony.store import tables
from prony.store.cursors import read_number_cursor

_TABLE = tables.audit
_LENGTHS = {"who": 128, "role": 16, "action": 64, "target": 1000, "address": 64}


def add(connection: Connection, entry: AuditEntry) -> None:
    """Keep an entry; the database gives it its id."""
    values = entry.model_dump(exclude={"id"})
    texts = {name: _plain(values[name])[:length] for name, length in _LENGTHS.items()}
    connection.execute(insert(_TABLE).values(values | texts))


def page(connection: Connection, limit: int, cursor: str | None) -> Page[AuditEntry]:
    """Return entries, the newest first; the cursor is the last one's id."""
    limit = max(1, limit)
    query = select(_TABLE).order_by(_TABLE.c.id.desc()).limit(limit + 1)
    if cursor is not None:
        query = query.where(_TABLE.c.id < read_number_cursor(cursor))
    found = [AuditEntry.read(row._mapping) for row in connection.execute(query)]
    return Page[AuditEntry](items=tuple(found[:limit]), next=str(found[limit - 1].id) if len(found) > limit else None)


def _plain(text: str) -> str:
    """Return text that a terminal and every database takes: what a stranger sent must not move anybody's cursor."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
