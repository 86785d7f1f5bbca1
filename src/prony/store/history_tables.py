"""The tables of histories, beside those of `tables.py`: series, their points and changes, pinned results and
runs that confirm a change."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, String, Table, Text

from prony.store.tables import Instant, metadata

# The history: results of the same benchmark, parameters, kind of machine and branch; `branch` is null where that is the
# default one, or where there is no repository.
# `course` is how far it was judged, and may be made again from the points.
series = Table(
    "series",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(128), nullable=False),
    Column("hardware_id", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("document", Text, nullable=False),
    Column("course", Text),
    Column("branch", String(255)),
    Index("series_by_name", "name", "id"),
)

point = Table(
    "point",
    metadata,
    Column("job_id", String(128), ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    Column("series_id", String(64), ForeignKey("series.id", ondelete="CASCADE"), nullable=False),
    Column("measured_at", Instant, nullable=False),
    Column("judged", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    Index("point_by_series", "series_id", "measured_at", "job_id"),
)

# What changed in a series; `document` is the noun, with what people decided.
change = Table(
    "change",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("series_id", String(64), ForeignKey("series.id", ondelete="CASCADE"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("noticed_at", Instant, nullable=False),
    Column("document", Text, nullable=False),
    Index("change_by_series", "series_id"),
    Index("change_by_age", "noticed_at", "id"),
    Index("change_by_state", "state"),
)

baseline = Table(
    "baseline",
    metadata,
    Column("series_id", String(64), ForeignKey("series.id", ondelete="CASCADE"), primary_key=True),
    Column("job_id", String(128), ForeignKey("job.id", ondelete="CASCADE"), nullable=False),
    Column("document", Text, nullable=False),
    Index("baseline_by_job", "job_id"),
)

# Each batch of runs that was made to confirm a change, or why none was. No key leads to the change: those of a series
# are written anew with every judgement. `outcome` is empty while it runs.
confirmation = Table(
    "confirmation",
    metadata,
    Column("change_id", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("way", String(16), nullable=False),
    Column("experiment_id", String(128)),
    Column("runs", Integer, nullable=False),
    Column("begun_at", Instant, nullable=False),
    Column("outcome", String(16)),
    Column("reason", Text, nullable=False),
    Index("confirmation_by_outcome", "outcome"),
    Index("confirmation_by_age", "begun_at"),
    Index("confirmation_by_experiment", "experiment_id"),
)
