"""Exports: which experiments were sent to which destination, and when the next try is due."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from prony.store.tables import Instant

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "exported",
        sa.Column(
            "experiment_id", sa.String(128), sa.ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("destination", sa.String(128), primary_key=True),
        sa.Column("ended_at", Instant),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Float(53), nullable=False),
        sa.Column("error", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("exported")
