"""Alarms, what each of them found, what is told of it and what became of the telling."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "alarm",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("told_at", _INSTANT),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("addresses", sa.Text, nullable=False),
        sa.Column("secret", sa.String(128), nullable=False),
    )
    _make_incidents()
    _make_notices()
    _make_deliveries()


def downgrade() -> None:
    for table in ("delivery", "notice", "incident", "alarm"):
        op.drop_table(table)


def _make_incidents() -> None:
    op.create_table(
        "incident",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        _alarm_id(),
        sa.Column("subject", sa.String(300), nullable=False),
        sa.Column("opened_at", _INSTANT, nullable=False),
        sa.Column("last_at", _INSTANT, nullable=False),
        sa.Column("closed_at", _INSTANT),
        sa.Column("told_at", _INSTANT),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("notice_id", sa.String(128)),
        sa.Column("document", sa.Text, nullable=False),
    )
    _index_some("incident_open", "incident", ["alarm_id", "subject"], "closed_at IS NULL")
    op.create_index("incident_by_alarm", "incident", ["alarm_id", "id"])
    op.create_index("incident_by_notice", "incident", ["notice_id"])


def _make_notices() -> None:
    op.create_table(
        "notice",
        sa.Column("id", sa.String(128), primary_key=True),
        _alarm_id(),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("ready_at", sa.Float(53)),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    _index_some("notice_gathering", "notice", ["alarm_id", "kind"], "ready_at IS NOT NULL")


def _make_deliveries() -> None:
    op.create_table(
        "delivery",
        sa.Column("id", sa.String(128), primary_key=True),
        _alarm_id(),
        sa.Column("notice_id", sa.String(128), sa.ForeignKey("notice.id", ondelete="CASCADE"), nullable=False),
        sa.Column("source_id", sa.String(128), nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("not_before", sa.Float(53)),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("ended_at", _INSTANT),
        sa.Column("attempts", sa.Text, nullable=False),
    )
    op.create_index("delivery_by_alarm", "delivery", ["alarm_id", "created_at", "id"])
    op.create_index("delivery_by_notice", "delivery", ["notice_id"])
    op.create_index("delivery_open", "delivery", ["not_before"])


def _alarm_id() -> sa.Column[str]:
    return sa.Column("alarm_id", sa.String(128), sa.ForeignKey("alarm.id", ondelete="CASCADE"), nullable=False)


def _index_some(name: str, table: str, columns: list[str], where: str) -> None:
    some = sa.text(where)
    op.create_index(name, table, columns, unique=True, sqlite_where=some, postgresql_where=some)
