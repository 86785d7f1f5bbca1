"""Build the view of a queued job from its row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from prony.model.queue import JobState, QueuedJob
from prony.model.result import Failure


def queued_of(row: Row[Any], *, reason: str) -> QueuedJob:
    pause = row.not_before if row.state == JobState.WAITING and row.not_before else 0
    return QueuedJob(
        id=row.job_id,
        experiment_id=row.experiment_id,
        title=row.title,
        state=JobState(row.state),
        priority=row.priority,
        attempt=row.attempt,
        agent_id=row.agent_id,
        created_at=row.created_at,
        leased_at=row.leased_at,
        ended_at=row.ended_at,
        not_before=datetime.fromtimestamp(pause, UTC) if pause else None,
        cancel_asked=row.cancel_asked,
        reason=reason,
        failure=Failure.read_json(row.failure) if row.failure else None,
        labels=json.loads(row.labels),
    )
