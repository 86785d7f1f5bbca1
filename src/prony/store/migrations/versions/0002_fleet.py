"""What a server hands out and to whom: lots, the queue, attempts, agents, tokens and the audit trail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_index("experiment_by_state", "experiment", ["state"])
    _make_queue()
    _make_agents()
    _make_access()


def downgrade() -> None:
    for table in ("audit", "token", "creation", "agent", "label", "attempt", "queue", "lot"):
        op.drop_table(table)
    op.drop_index("experiment_by_state", "experiment")


def _make_queue() -> None:
    op.create_table(
        "lot",
        sa.Column("id", sa.String(128), primary_key=True),
        _parent("experiment"),
        sa.Column("demand_id", sa.String(64), nullable=False),
        sa.Column("demand", sa.Text, nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
    )
    op.create_index("lot_by_experiment", "lot", ["experiment_id"])
    op.create_table(
        "queue",
        sa.Column("number", _NUMBER, primary_key=True, autoincrement=True),
        _parent("job", unique=True),
        _parent("experiment"),
        _parent("lot"),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tries_left", sa.Integer, nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("device_key", sa.String(128)),
        sa.Column("lease_id", sa.String(128)),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("avoid", sa.String(128)),
        sa.Column("cancel_asked", sa.Boolean, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("leased_at", _INSTANT),
        sa.Column("ended_at", _INSTANT),
        sa.Column("not_before", sa.Float(53), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("labels", sa.Text, nullable=False),
    )
    op.create_index("queue_by_lot", "queue", ["lot_id", "state", "number"])
    _index_some("queue_device", ["device_key"], "state = 'leased'", unique=True)
    _index_some("queue_unended", ["experiment_id"], "ended_at IS NULL")
    op.create_index("queue_by_lease", "queue", ["lease_id"])
    op.create_index("queue_by_end", "queue", ["ended_at"])
    for column in ("experiment", "state", "agent"):
        name = column if column == "state" else f"{column}_id"
        op.create_index(f"queue_by_{column}", "queue", [name, "number"])
    _make_attempts()


def _make_attempts() -> None:
    op.create_table(
        "attempt",
        _parent("job", primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("lease_id", sa.String(128), nullable=False, unique=True),
        sa.Column("agent_id", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("leased_at", _INSTANT, nullable=False),
        sa.Column("ended_at", _INSTANT),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("attempt_by_agent", "attempt", ["agent_id", "leased_at"])
    op.create_table(
        "label",
        _parent("job", primary_key=True),
        sa.Column("key", sa.String(128), primary_key=True),
        sa.Column("value", sa.String(128), nullable=False),
        sa.Column("number", _NUMBER, nullable=False),
    )
    op.create_index("label_by_value", "label", ["key", "value", "number"])


def _make_agents() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("device_key", sa.String(128), nullable=False),
        sa.Column("incarnation", sa.String(128), nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("seen_at", _INSTANT, nullable=False),
        sa.Column("strikes", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )


def _make_access() -> None:
    op.create_table(
        "creation",
        sa.Column("who", sa.String(128), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("experiment_id", sa.String(128), nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("once", sa.Boolean, nullable=False),
        sa.Column("agent_id", sa.String(128)),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("expires_at", _INSTANT),
        sa.Column("last_used_at", _INSTANT),
        sa.Column("revoked_at", _INSTANT),
    )
    op.create_table(
        "audit",
        sa.Column("id", _NUMBER, primary_key=True, autoincrement=True),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("who", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
    )


def _parent(table: str, *, unique: bool = False, primary_key: bool = False) -> sa.Column[str]:
    target = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(
        f"{table}_id", sa.String(128), target, nullable=False, unique=unique or None, primary_key=primary_key
    )


def _index_some(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, "queue", columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
