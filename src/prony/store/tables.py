"""The tables that the store keeps its rows in; the migrations make them, and a test holds the two together.

Documents are text and not JSON columns: a noun may hold NaN or infinity, which SQL's JSON refuses.
"""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
)

from prony.errors import InputError


class Instant(TypeDecorator[datetime]):
    """An aware UTC instant; SQLite keeps no zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise InputError(f"the instant {value} has no time zone", hint="use aware UTC instants")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None or value.tzinfo is not None:
            return value
        return value.replace(tzinfo=UTC)


metadata = MetaData()

experiment = Table(
    "experiment",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("job_count", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("owner", Text),
    Index("experiment_by_age", "created_at", "id"),
)

job = Table(
    "job",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("position", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Index("job_by_experiment", "experiment_id", "position"),
)

result = Table(
    "result",
    metadata,
    Column("job_id", ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("experiment_id", ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False),
    Column("state", String(16), nullable=False),
    # True for the one attempt of a job that counts: the best state, and of equals the first.
    Column("stands", Boolean, nullable=False),
    Column("ended_at", Instant),
    Column("hardware_id", String(128), nullable=False),
    Column("software_id", String(128), nullable=False),
    # Relative to the home's results, with forward slashes, so that a home can be moved.
    Column("folder", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("grade", String(16), nullable=False),
    Column("headline_metric", String(64)),
    Column("headline_value", Float(53)),
    Column("headline_low", Float(53)),
    Column("headline_high", Float(53)),
    Column("headline_unit", String(16)),
    Index("result_by_experiment", "experiment_id", "stands"),
)

calibration = Table(
    "calibration",
    metadata,
    Column("id", String(128), primary_key=True),
    Column("hardware_id", String(128), nullable=False),
    Column("software_id", String(128), nullable=False),
    Column("taken_at", Instant, nullable=False),
    Column("document", Text, nullable=False),
    Index("calibration_by_hardware", "hardware_id", "taken_at"),
)

# Experiments whose rows are gone and whose folders may not be yet: written with the delete, so that a crash between
# the two is finished by the next open.
deletion = Table("deletion", metadata, Column("experiment_id", String(128), primary_key=True))
