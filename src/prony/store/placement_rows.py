"""Rows of placements: how a server's jobs fare at targets, written and read in an open transaction."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, Row, Select, func, insert, select, update

from prony.model.queue import JobState
from prony.model.target import PlacementNote, PlacementView, PlacePhase
from prony.store import tables

_P, _A, _Q = tables.placement, tables.attempt, tables.queue
_SHOWN = (_P.c.number, _P.c.document, _A.c.job_id, _A.c.agent_id, _A.c.number.label("attempt"), _Q.c.experiment_id)


def note_placement(connection: Connection, lease_id: str, note: PlacementNote) -> None:
    """Write how the job of a lease fares, and while it is lent also why as the job's own reason."""
    values = {"target": note.target, "phase": note.phase.value, "document": note.model_dump_json()}
    if connection.execute(update(_P).where(_P.c.lease_id == lease_id).values(values)).rowcount == 0:
        connection.execute(insert(_P).values(values | {"lease_id": lease_id}))
    told = f"{note.phase} at {note.target}" + (f": {note.reason}" if note.reason else "")
    lent = (_Q.c.lease_id == lease_id, _Q.c.state == JobState.LEASED.value)
    connection.execute(update(_Q).where(*lent).values(reason=told))


def page_of_placements(
    connection: Connection, *, target: str | None = None, limit: int, before: int | None = None
) -> list[PlacementView]:
    """Return the newest placements first, those before a number where one is given."""
    query = _join_jobs(select(*_SHOWN))
    query = query if target is None else query.where(_P.c.target == target)
    query = query if before is None else query.where(_P.c.number < before)
    return [_view(row) for row in connection.execute(query.order_by(_P.c.number.desc()).limit(limit))]


def count_open(connection: Connection, targets: Collection[str]) -> dict[tuple[str, str], dict[PlacePhase, int]]:
    """Return for each target and agent how many of the agent's jobs are there in which phase."""
    query = _join_jobs(select(_P.c.target, _A.c.agent_id, _P.c.phase, func.count().label("jobs"))).where(
        _P.c.target.in_(targets), _A.c.ended_at.is_(None)
    )
    found: dict[tuple[str, str], dict[PlacePhase, int]] = {}
    for row in connection.execute(query.group_by(_P.c.target, _A.c.agent_id, _P.c.phase)):
        found.setdefault((row.target, row.agent_id), {})[PlacePhase(row.phase)] = row.jobs
    return found


def _join_jobs(query: Select[tuple[object, ...]]) -> Select[tuple[object, ...]]:
    joined = query.join_from(_P, _A, _A.c.lease_id == _P.c.lease_id)
    return joined.join(_Q, _Q.c.job_id == _A.c.job_id)


def _view(row: Row[tuple[object, ...]]) -> PlacementView:
    return PlacementView(
        number=row.number,
        job_id=row.job_id,
        experiment_id=row.experiment_id,
        agent_id=row.agent_id,
        attempt=row.attempt,
        note=PlacementNote.read_json(row.document),
    )
