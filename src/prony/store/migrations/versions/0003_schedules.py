"""Schedules, when each of them fired, and the experiments that are of one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "schedule",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False, unique=True),
        sa.Column("recipe", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("timing", sa.Text, nullable=False),
        sa.Column("next_at", _INSTANT),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("submission", sa.Text, nullable=False),
    )
    op.create_index("schedule_by_next", "schedule", ["next_at"])
    op.create_table(
        "fire",
        sa.Column("schedule_id", sa.String(128), sa.ForeignKey("schedule.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("due_at", _INSTANT, primary_key=True),
        sa.Column("fired_at", _INSTANT, nullable=False),
        sa.Column("cause", sa.String(16), nullable=False),
        sa.Column("experiment_id", sa.String(128)),
        sa.Column("missed", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "scheduled",
        sa.Column(
            "experiment_id", sa.String(128), sa.ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("schedule_id", sa.String(128), nullable=False),
    )
    op.create_index("scheduled_by_schedule", "scheduled", ["schedule_id"])


def downgrade() -> None:
    op.drop_table("scheduled")
    op.drop_table("fire")
    op.drop_table("schedule")
