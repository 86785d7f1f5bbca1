"""Experiments, jobs, results, calibrations, and the overview that `prony list` reads.

Types are written out here and not taken from `tables.py`: a migration says what was true when it was written.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_INSTANT = sa.DateTime(timezone=True)

# Only standing results count, and a void number is nobody's headline. Sub-queries and not one big join: with a limit,
# only the experiments that are shown are looked at.
_OVERVIEW = """
CREATE VIEW experiment_overview AS
SELECT
    e.id, e.name, e.state, e.created_at, e.ended_at, e.job_count, e.owner,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'complete') AS jobs_complete,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'partial') AS jobs_partial,
    (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands AND r.state = 'failed') AS jobs_failed,
    e.job_count - (SELECT count(*) FROM result r WHERE r.experiment_id = e.id AND r.stands) AS jobs_waiting,
    (
        SELECT CASE max(CASE r.grade WHEN 'void' THEN 2 WHEN 'suspect' THEN 1 ELSE 0 END)
            WHEN 2 THEN 'void' WHEN 1 THEN 'suspect' WHEN 0 THEN 'valid' END
        FROM result r WHERE r.experiment_id = e.id AND r.stands
    ) AS worst_grade,
    b.job_id AS best_job_id, b.title AS headline_title, b.headline_metric, b.headline_value,
    b.headline_low, b.headline_high, b.headline_unit
FROM experiment e
LEFT JOIN result b ON b.stands AND b.job_id = (
    SELECT r.job_id FROM result r
    WHERE r.experiment_id = e.id AND r.stands AND r.grade <> 'void' AND r.headline_value IS NOT NULL
    ORDER BY r.headline_value, r.job_id LIMIT 1
)
"""


def upgrade() -> None:
    _make_experiments()
    _make_results()
    op.create_table(
        "calibration",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("hardware_id", sa.String(128), nullable=False),
        sa.Column("software_id", sa.String(128), nullable=False),
        sa.Column("taken_at", _INSTANT, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("calibration_by_hardware", "calibration", ["hardware_id", "taken_at"])
    op.create_table("deletion", sa.Column("experiment_id", sa.String(128), primary_key=True))
    op.execute(_OVERVIEW)


def downgrade() -> None:
    op.execute("DROP VIEW experiment_overview")
    for table in ("deletion", "calibration", "result", "job", "experiment"):
        op.drop_table(table)


def _make_experiments() -> None:
    op.create_table(
        "experiment",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("ended_at", _INSTANT),
        sa.Column("job_count", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("owner", sa.Text),
    )
    op.create_index("experiment_by_age", "experiment", ["created_at", "id"])
    op.create_table(
        "job",
        sa.Column("id", sa.String(128), primary_key=True),
        _experiment_id(),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("job_by_experiment", "job", ["experiment_id", "position"])


def _make_results() -> None:
    op.create_table(
        "result",
        sa.Column("job_id", sa.String(128), sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
        _experiment_id(),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("stands", sa.Boolean, nullable=False),
        sa.Column("ended_at", _INSTANT),
        sa.Column("hardware_id", sa.String(128), nullable=False),
        sa.Column("software_id", sa.String(128), nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("grade", sa.String(16), nullable=False),
        sa.Column("headline_metric", sa.String(64)),
        sa.Column("headline_value", sa.Float(53)),
        sa.Column("headline_low", sa.Float(53)),
        sa.Column("headline_high", sa.Float(53)),
        sa.Column("headline_unit", sa.String(16)),
    )
    op.create_index("result_by_experiment", "result", ["experiment_id", "stands"])


def _experiment_id() -> sa.Column[str]:
    return sa.Column(
        "experiment_id", sa.String(128), sa.ForeignKey("experiment.id", ondelete="CASCADE"), nullable=False
    )
