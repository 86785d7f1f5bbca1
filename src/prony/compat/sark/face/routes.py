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


def queues_of(known_agent: KnownAgent) -> list[str]:
    """Return the lists that a worker looks into."""
    words = build_registration(known_agent.capabilities).capabilities
    return [worker_queue(known_agent.id), *map(capability_queue, words)]


def every_queue(known_agents: Iterable[KnownAgent]) -> list[str]:
    """Return all lists that workers may look into."""
    known = [capability_queue(word) for word in (*COMPUTE_UNITS, PLAIN_CPU)]
    own = [
        name for known_agent in known_agents if is_worker(known_agent.capabilities) for name in queues_of(known_agent)
    ]
    return list(dict.fromkeys([*known, *own]))


def served_queues(known_agents: Iterable[KnownAgent]) -> set[str]:
    """Return the lists that a living worker looks into."""
    living = [
        known_agent
        for known_agent in known_agents
        if is_worker(known_agent.capabilities) and known_agent.state not in IDLE_ONLY
    ]
    return {name for known_agent in living for name in queues_of(known_agent)}
