"""Which list a job of a campaign waits in, and which lists a worker looks into."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prony.app.fleet.state import KnownAgent
from prony.compat.sark.face.workers import build_registration, is_worker
from prony.compat.sark.nouns import COMPUTE_UNITS, PLAIN_CPU, capability_queue, worker_queue
from prony.model.place import Demand
from prony.model.states import IDLE_ONLY

if TYPE_CHECKING:
    from sqlalchemy import Row


def queue_of(row: Row[Any]) -> str:
    """Return the list of a job: that of its worker, or else that of its compute unit."""
    return worker_queue(row.pinned) if row.pinned is not None else _unit_queue(row.demand)


@lru_cache(maxsize=1024)
def _unit_queue(demand: str) -> str:
    return capability_queue(Demand.read_json(demand).engine or "")


def queues_of(card: KnownAgent) -> list[str]:
    """Return the lists that a worker looks into."""
    words = build_registration(card.capabilities).capabilities
    return [worker_queue(card.id), *map(capability_queue, words)]


def every_queue(cards: Iterable[KnownAgent]) -> list[str]:
    """Return all lists that workers may look into."""
    known = [capability_queue(word) for word in (*COMPUTE_UNITS, PLAIN_CPU)]
    own = [name for card in cards if is_worker(card.capabilities) for name in queues_of(card)]
    return list(dict.fromkeys([*known, *own]))


def served_queues(cards: Iterable[KnownAgent]) -> set[str]:
    """Return the lists that a living worker looks into."""
    living = [card for card in cards if is_worker(card.capabilities) and card.state not in IDLE_ONLY]
    return {name for card in living for name in queues_of(card)}
