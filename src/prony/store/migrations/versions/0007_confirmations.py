"""Runs that were made to confirm a change in a history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "confirmation",
        sa.Column("change_id", sa.String(64), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("way", sa.String(16), nullable=False),
        sa.Column("experiment_id", sa.String(128)),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(16)),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("confirmation_by_outcome", "confirmation", ["outcome"])
    op.create_index("confirmation_by_age", "confirmation", ["begun_at"])
    op.create_index("confirmation_by_experiment", "confirmation", ["experiment_id"])


def downgrade() -> None:
    op.drop_table("confirmation")
