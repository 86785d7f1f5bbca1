"""The branch that a series is of; those that there are were of any branch, and stay together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("series", sa.Column("branch", sa.String(255)))


def downgrade() -> None:
    with op.batch_alter_table("series") as series:
        series.drop_column("branch")
