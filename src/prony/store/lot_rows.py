"""Rows of lots: store, find and count them in an open transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, case, exists, func, select, update

from prony.model.place import Demand
from prony.model.queue import JobState, Lot
from prony.store import tables

_Q, _L = tables.queue, tables.lot
_WAITING, _LEASED = JobState.WAITING.value, JobState.LEASED.value
UNENDED_EXPERIMENTS = ("pending", "running")
_TOGETHER = 500


def row_of(lot: Lot) -> dict[str, Any]:
    return {
        "id": lot.id,
        "experiment_id": lot.experiment_id,
        "demand_id": lot.demand.id,
        "demand": lot.demand.model_dump_json(exclude_defaults=True),
        "agent_id": lot.agent_id,
        "priority": lot.priority,
        "created_at": lot.created_at,
    }


def waiting(connection: Connection) -> tuple[Lot, ...]:
    """Return the lots of unended experiments that have a waiting job, due or not."""
    has_waiting = exists().where(_Q.c.lot_id == _L.c.id, _Q.c.state == _WAITING)
    query = select(_L).join(tables.experiment, tables.experiment.c.id == _L.c.experiment_id)
    query = query.where(tables.experiment.c.state.in_(UNENDED_EXPERIMENTS), has_waiting)
    return tuple(_lot_of(row) for row in connection.execute(query))


def by_id(connection: Connection, lot_id: str) -> Lot | None:
    row = connection.execute(select(_L).where(_L.c.id == lot_id)).first()
    return None if row is None else _lot_of(row)


def of_ids(connection: Connection, lot_ids: Collection[str]) -> tuple[Lot, ...]:
    """Return those that there are, a few hundred with each statement: databases limit how many values it may have."""
    ids = list(lot_ids)
    parts = [ids[begin : begin + _TOGETHER] for begin in range(0, len(ids), _TOGETHER)]
    return tuple(_lot_of(row) for part in parts for row in connection.execute(select(_L).where(_L.c.id.in_(part))))


@dataclass(frozen=True)
class LotCount:
    """How many jobs of a lot wait and how many are leased; and when the first of those that wait is due."""

    waiting: int
    leased: int
    not_before: float


def counts(connection: Connection) -> dict[str, LotCount]:
    """Return for each lot that has jobs which have not ended how many there are."""
    waits, runs = case((_Q.c.state == _WAITING, 1), else_=0), case((_Q.c.state == _LEASED, 1), else_=0)
    due = func.min(case((_Q.c.state == _WAITING, _Q.c.not_before)))
    # That they have not ended says no more, but there is an index for it that leaves all others out.
    open_ = _Q.c.state.in_((_WAITING, _LEASED)), _Q.c.ended_at.is_(None), _Q.c.part_of.is_(None)
    query = select(_Q.c.lot_id, func.sum(waits), func.sum(runs), due).where(*open_)
    rows = connection.execute(query.group_by(_Q.c.lot_id))
    return {row[0]: LotCount(int(row[1]), int(row[2]), row[3] or 0.0) for row in rows}


def priorities(connection: Connection, experiment_ids: Sequence[str]) -> dict[str, int]:
    query = select(_L.c.experiment_id, func.max(_L.c.priority)).where(_L.c.experiment_id.in_(experiment_ids))
    return {row[0]: int(row[1]) for row in connection.execute(query.group_by(_L.c.experiment_id))}


def prioritise(connection: Connection, experiment_id: str, priority: int) -> None:
    connection.execute(update(_L).where(_L.c.experiment_id == experiment_id).values(priority=priority))


def _lot_of(row: Row[Any]) -> Lot:
    return Lot(
        id=row.id,
        experiment_id=row.experiment_id,
        demand=Demand.read_json(row.demand),
        agent_id=row.agent_id,
        priority=row.priority,
        created_at=row.created_at,
    )


def find_unclosed(connection: Connection) -> list[str]:
    """Return the experiments that are called unended though every job of theirs has ended."""
    table = tables.experiment
    queued = exists().where(_Q.c.experiment_id == table.c.id)
    open_ = exists().where(_Q.c.experiment_id == table.c.id, _Q.c.ended_at.is_(None))
    query = select(table.c.id).where(table.c.state.in_(UNENDED_EXPERIMENTS), queued, ~open_)
    return list(connection.execute(query).scalars())
