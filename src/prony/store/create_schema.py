"""The whole schema: all tables, their partial indices and the view. It is what the migrations lead to, in one step."""

from __future__ import annotations

from functools import cache

from sqlalchemy import Connection, Index, MetaData, text

from prony.store import history_tables as history
from prony.store import tables
from prony.store.revision import HEAD

# Only standing results count, and a void number is nobody's headline. Sub-queries and not one big join: with a limit,
# only the experiments that are shown are looked at.
_OVERVIEW = """
CREATE VIEW experiment_overview AS
SELECT
    e.id, e.name, e.state, e.created_at, e.ended_at, e.job_count, e.owner,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'complete') AS jobs_complete,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'partial') AS jobs_partial,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'failed') AS jobs_failed,
    e.job_count - (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands) AS jobs_waiting,
    (
        SELECT CASE max(CASE r.grade WHEN 'void' THEN 2 WHEN 'suspect' THEN 1 ELSE 0 END)
            WHEN 2 THEN 'void' WHEN 1 THEN 'suspect' WHEN 0 THEN 'valid' END
        FROM result r WHERE r.experiment_id = e.id AND r.stands
    ) AS worst_grade,
    b.job_id AS best_job_id, b.title AS headline_title, b.headline_metric, b.headline_value,
    b.headline_low, b.headline_high, b.headline_unit
FROM experiment e
LEFT JOIN result b ON b.stands AND b.job_id = (
    SELECT r.job_id FROM result r
    WHERE r.experiment_id = e.id AND r.stands AND r.grade <> 'void' AND r.headline_value IS NOT NULL
    ORDER BY r.headline_value, r.job_id LIMIT 1
)
"""
# As Alembic writes it down.
_VERSION = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"


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


def make(connection: Connection) -> None:
    """Make the newest schema in an empty database: the same as all migrations in turn, and much sooner done."""
    schema().create_all(connection)
    connection.execute(text(_OVERVIEW))
    connection.execute(text(_VERSION))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})
