"""A job of a campaign in, the list that it waits in out, and who may take it from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row

from prony.app.fleet.floor import Card
from prony.app.sark.workers import is_worker, registered
from prony.model.place import Demand
from prony.model.sark import COMPUTE_UNITS, PLAIN_CPU, capability_queue, worker_queue
from prony.model.states import IDLE_ONLY


def queue_of(row: Row[Any]) -> str:
    """Return the list of a job: that of its worker, or else that of its compute unit."""
    if row.pinned is not None:
        return worker_queue(row.pinned)
    return capability_queue(Demand.read_json(row.demand).engine or "")


def every_queue(cards: Iterable[Card]) -> list[str]:
    """Return all lists that workers may look into."""
    words = dict.fromkeys((*COMPUTE_UNITS, PLAIN_CPU))
    named = []
    for card in cards:
        if is_worker(card.capabilities):
            words |= dict.fromkeys(registered(card.capabilities).capabilities)
            named.append(worker_queue(card.id))
    return [*dict.fromkeys(capability_queue(word) for word in words), *named]


def may_take(card: Card, row: Row[Any]) -> bool:
    """Does the worker look into the job's list?"""
    if not is_worker(card.capabilities):
        return False
    if row.pinned is not None:
        return bool(row.pinned == card.id)
    queues = {capability_queue(word) for word in registered(card.capabilities).capabilities}
    return queue_of(row) in queues


def is_served(row: Row[Any], cards: Iterable[Card]) -> bool:
    """Is there a living worker that would take it?"""
    return any(card.state not in IDLE_ONLY and may_take(card, row) for card in cards)
