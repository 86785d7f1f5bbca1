"""A plan in, its rows in an open transaction out, with the notes that tell who waits for such work."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import insert

from prony.app.fleet.submission import Plan
from prony.store import queue, tables
from prony.store.codecs import experiment_row, listed_row
from prony.store.listing_tables import listed
from prony.store.writer import Transaction


def keep(desk: Transaction, made: Plan) -> None:
    """Store the experiment and let its jobs wait."""
    desk.connection.execute(insert(tables.experiment).values(experiment_row(made.experiment) | {"owner": None}))
    desk.connection.execute(insert(listed).values(listed_row(made.experiment)))
    if made.experiment.schedule_id is not None:
        of = {"experiment_id": made.experiment.id, "schedule_id": made.experiment.schedule_id}
        desk.connection.execute(insert(tables.scheduled).values(of))
    desk.tell("job", f"{made.experiment.id}/")
    enqueue(desk, made)


def enqueue(desk: Transaction, made: Plan) -> None:
    """Let its jobs wait; the experiment is stored."""
    queue.add(desk.connection, made.jobs, made.lots, tries=made.tries, now=made.experiment.created_at)
    for lot_id, count in Counter(lot.id for lot in made.lots.values()).items():
        desk.tell("lot", lot_id, count)
