"""Series of results, their points and changes, and the baselines that people pin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("hardware_id", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("course", sa.Text),
    )
    op.create_index("series_by_name", "series", ["name", "id"])
    _make_points()
    op.create_table(
        "change",
        sa.Column("id", sa.String(64), primary_key=True),
        _series_id(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("noticed_at", _INSTANT, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("change_by_series", "change", ["series_id"])
    op.create_index("change_by_age", "change", ["noticed_at", "id"])
    op.create_index("change_by_state", "change", ["state"])
    op.create_table(
        "baseline",
        sa.Column("series_id", sa.String(64), sa.ForeignKey("series.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("job_id", sa.String(128), sa.ForeignKey("job.id", ondelete="CASCADE"), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("baseline_by_job", "baseline", ["job_id"])


def downgrade() -> None:
    for table in ("baseline", "change", "point", "series"):
        op.drop_table(table)


def _make_points() -> None:
    op.create_table(
        "point",
        sa.Column("job_id", sa.String(128), sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
        _series_id(),
        sa.Column("measured_at", _INSTANT, nullable=False),
        sa.Column("judged", sa.Boolean, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("point_by_series", "point", ["series_id", "measured_at", "job_id"])
    unjudged = sa.text("NOT judged")
    op.create_index(
        "point_unjudged", "point", ["series_id"], sqlite_where=unjudged, postgresql_where=unjudged
    )  # fmt: skip


def _series_id() -> sa.Column[str]:
    return sa.Column("series_id", sa.String(64), sa.ForeignKey("series.id", ondelete="CASCADE"), nullable=False)
