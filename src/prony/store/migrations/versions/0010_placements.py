"""Placements: how the job of a lease fares at a target that a stand-in agent goes to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "placement",
        sa.Column("number", number, primary_key=True, autoincrement=True),
        sa.Column(
            "lease_id",
            sa.String(128),
            sa.ForeignKey("attempt.lease_id", ondelete="CASCADE"),
            nullable=False,
            unique=True,
        ),
        sa.Column("target", sa.String(32), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("placement_by_target", "placement", ["target", "number"])


def downgrade() -> None:
    op.drop_table("placement")
