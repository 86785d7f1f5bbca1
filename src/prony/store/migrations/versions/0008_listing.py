"""What lists of experiments are searched by, and what became of their gates."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_experiment = sa.table("experiment", sa.column("id"), sa.column("document"))
_listed = sa.table("listed", *(sa.column(name) for name in ("experiment_id", "kind", "labels", "submitted_by")))


def upgrade() -> None:
    op.create_table(
        "listed",
        sa.Column(
            "experiment_id", sa.String(128), sa.ForeignKey("experiment.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("submitted_by", sa.String(128), nullable=False),
        sa.Column("gates", sa.String(16)),
        sa.Column("gates_text", sa.Text),
    )
    op.create_index("listed_by_gates", "listed", ["gates"])
    connection = op.get_bind()
    # One document at a time: there may be many, and some are long.
    for one in connection.execute(sa.select(_experiment.c.id)).scalars().all():
        text = connection.execute(sa.select(_experiment.c.document).where(_experiment.c.id == one)).scalar_one()
        connection.execute(sa.insert(_listed).values(_search_columns(one, json.loads(text))))


def downgrade() -> None:
    op.drop_table("listed")


def _search_columns(experiment_id: str, experiment: dict[str, Any]) -> dict[str, str]:
    recipe = experiment.get("recipe", {})
    lines = [_line(f"{key}={value}") for key, value in recipe.get("labels", {}).items()]
    return {
        "experiment_id": experiment_id,
        "kind": str(recipe.get("workload", {}).get("kind", ""))[:16],
        "labels": "\n".join(["", *lines, ""]) if lines else "",
        "submitted_by": _line(str(experiment.get("submitted_by", "")))[:128],
    }


def _line(text: str) -> str:
    return text.replace("\0", "\ufffd").replace("\n", " ")
