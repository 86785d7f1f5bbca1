"""The table that lists of experiments are searched by, beside those of `tables.py`."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, String, Table, Text

from prony.store.tables import metadata

# Labels are lines of `key=value`, each between line ends. `gates` is None where nobody judged any.
listed = Table(
    "listed",
    metadata,
    Column("experiment_id", String(128), ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("labels", Text, nullable=False),
    Column("submitted_by", String(128), nullable=False),
    Column("gates", String(16)),
    Column("gates_text", Text),
    Index("listed_by_gates", "gates"),
)
