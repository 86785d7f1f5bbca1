"""Translate between a worker that registers and an agent of the fleet, and name the lists where jobs wait for it."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prony.app.fleet.state import KnownAgent
from prony.compat.sark.face.campaigns import KIND
from prony.compat.sark.nouns import (
    COMPUTE_UNITS,
    PLAIN_CPU,
    Registration,
    WorkerStatus,
    capability_queue,
    worker_id_of,
    worker_queue,
)
from prony.errors import InputError
from prony.model.agent import Agent, AgentState, Capabilities, Enrolment, Fact
from prony.model.place import Demand
from prony.model.states import IDLE_ONLY

if TYPE_CHECKING:
    from prony.store.database import Row


_FIELDS: tuple[tuple[str, type], ...] = (
    ("device_name", str),
    ("ip_address", str),
    ("capabilities", list),
    ("device_info", dict),
)
_MOST_CAPABILITIES = 100
_LONGEST_TEXT = 500
_LONGEST_INFO = 64 * 1024
_REGISTRATION = "sark.registration"


def registration_of(body: Mapping[str, Any]) -> Registration:
    """Check who registers; all four fields are required, as SARK says."""
    for name, kind in _FIELDS:
        if name not in body:
            raise InputError(f"Missing field: {name}")
        if not isinstance(body[name], kind):
            raise InputError(f"Invalid field: {name}")
    words = body["capabilities"]
    are_words = all(isinstance(word, str) and 0 < len(word) <= _LONGEST_TEXT for word in words)
    if len(words) > _MOST_CAPABILITIES or not are_words:
        raise InputError("Invalid field: capabilities")
    if len(body["device_name"]) > _LONGEST_TEXT or len(body["ip_address"]) > _LONGEST_TEXT:
        raise InputError("Invalid field: device_name or ip_address")
    if len(json.dumps(body["device_info"])) > _LONGEST_INFO:
        raise InputError("Invalid field: device_info")
    return Registration(
        device_name=body["device_name"],
        ip_address=body["ip_address"],
        capabilities=tuple(dict.fromkeys(words)),
        device_info=body["device_info"],
    )


def enrolment_of(registration: Registration) -> Enrolment:
    """Return how the fleet is told of it: as a new life, because a Dumont registers when its process begins."""
    worker_id = worker_id_of(registration.device_info)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", registration.device_name).strip("-._")[:100] or worker_id
    facts: dict[str, Fact] = {
        "kinds": (KIND,),
        "engine": registration.capabilities,
        "device": registration.device_name,
        "os": str(registration.device_info.get("DeviceOs") or "").lower(),
        _REGISTRATION: registration.model_dump_json(),
    }
    known = {key: value for key, value in facts.items() if value not in ("", ())}
    return Enrolment(
        id=worker_id,
        name=name,
        device_key=worker_id,
        incarnation=secrets.token_hex(8),
        capabilities=Capabilities(facts=known),
    )


def is_worker(capabilities: Capabilities) -> bool:
    """Did it come by this way?"""
    return isinstance(capabilities.facts.get(_REGISTRATION), str)


def build_registration(capabilities: Capabilities) -> Registration:
    return _read(str(capabilities.facts[_REGISTRATION]))


@lru_cache(maxsize=1024)
def _read(text: str) -> Registration:
    return Registration.read_json(text)


_ABSENT = frozenset({AgentState.FAULTY, AgentState.LOST, AgentState.STOPPED})


def is_faulty(agent: Agent, *, now: datetime, silence_s: float) -> bool:
    return agent.state in _ABSENT or _silence_of(agent, now) > silence_s


def _silence_of(agent: Agent, now: datetime) -> float:
    return max(0.0, (now - agent.seen_at).total_seconds())


def status_of(agent: Agent, said: WorkerStatus | None, *, now: datetime, silence_s: float) -> WorkerStatus:
    """Return what a worker is called: faulty by what we see, else what it said of itself, else what it holds."""
    if is_faulty(agent, now=now, silence_s=silence_s):
        return WorkerStatus.FAULTY
    if said is not None and said is not WorkerStatus.FAULTY:
        return said
    return WorkerStatus.BUSY if agent.state is AgentState.BUSY else WorkerStatus.ACTIVE


def shown_worker(agent: Agent, status: WorkerStatus) -> dict[str, Any]:
    told = build_registration(agent.capabilities)
    info = told.device_info
    return {
        "worker_id": agent.id,
        "device_name": told.device_name,
        "ip_address": told.ip_address,
        "capabilities": list(told.capabilities),
        "device_info": info,
        "soc": info.get("Soc"),
        "ram_gb": _number(info.get("Ram")),
        "os": info.get("DeviceOs"),
        "os_version": info.get("DeviceOsVersion"),
        "udid": info.get("UDID"),
        "registered_at": agent.created_at.timestamp(),
        "status": status.value,
        "last_seen": agent.seen_at.timestamp(),
    }


def shown_health(agent: Agent, status: WorkerStatus, *, now: datetime, silence_s: float) -> dict[str, Any]:
    silence = round(_silence_of(agent, now), 3)
    return {
        "worker_id": agent.id,
        "status": status.value,
        "is_healthy": status is not WorkerStatus.FAULTY,
        "last_heartbeat": agent.seen_at.timestamp(),
        "seconds_since_heartbeat": silence,
        "time_since_heartbeat": silence,
        "heartbeat_timeout": silence_s,
    }


def _number(value: object) -> object:
    """Return gigabytes as a number where they are one."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
        if not math.isfinite(number):  # JSON has no number for it
            return value
        return int(number) if number.is_integer() else number
    return value


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
