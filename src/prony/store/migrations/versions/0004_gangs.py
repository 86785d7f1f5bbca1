"""Parts of a load that several agents send together."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_PARTS = "part_of IS NOT NULL"


def upgrade() -> None:
    op.add_column("queue", sa.Column("part_of", sa.String(128)))
    op.add_column("queue", sa.Column("part", sa.Integer))
    op.create_index("queue_parts", "queue", ["part_of"], sqlite_where=sa.text(_PARTS), postgresql_where=sa.text(_PARTS))


def downgrade() -> None:
    op.drop_index("queue_parts", "queue")
    op.drop_column("queue", "part")
    op.drop_column("queue", "part_of")
