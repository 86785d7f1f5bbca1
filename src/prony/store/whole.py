"""All tables with their partial indices out: the schema that the migrations make."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Index, MetaData, text

from prony.store import history_tables as history
from prony.store import (
    listing_tables,  # noqa: F401 - so that it is there
    tables,
)


@cache
def schema() -> MetaData:
    """Return all tables with their partial indices too, which only those need who make or compare a schema: to name
    one loads what SQLAlchemy knows of every database."""
    for name, columns, unique, where in (
        # The database itself sees to it that a device measures one job at a time.
        ("queue_device", (tables.queue.c.device_key,), True, text("state = 'leased'")),
        ("queue_unended", (tables.queue.c.experiment_id,), False, text("ended_at IS NULL")),
        ("queue_parts", (tables.queue.c.part_of,), False, text("part_of IS NOT NULL")),
        # One incident is open of a subject, and one message is gathered of a kind.
        ("incident_open", (tables.incident.c.alarm_id, tables.incident.c.subject), True, text("closed_at IS NULL")),
        ("notice_gathering", (tables.notice.c.alarm_id, tables.notice.c.kind), True, text("ready_at IS NOT NULL")),
        ("point_unjudged", (history.point.c.series_id,), False, text("NOT judged")),
    ):
        Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
    return tables.metadata
