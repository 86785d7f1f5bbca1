"""Rows of leases: find and renew them in an open transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, literal, select, update

from prony.model.queue import JobState
from prony.store import tables

_Q = tables.queue
_LEASED = JobState.LEASED.value

_LEASE_COLUMNS = (
    _Q.c.lease_id, _Q.c.job_id, _Q.c.experiment_id, _Q.c.agent_id, _Q.c.device_key, _Q.c.attempt, _Q.c.part_of,
)  # fmt: skip
# The state is written out and not bound, so that the partial index is seen to apply.
_ON_DEVICE: Select[Any] = select(*_LEASE_COLUMNS).where(
    _Q.c.device_key == bindparam("device"), _Q.c.state == literal(_LEASED, literal_execute=True)
)


def on_device(connection: Connection, device_key: str) -> Row[Any] | None:
    """Return the lease that occupies a device."""
    return connection.execute(_ON_DEVICE, {"device": device_key}).first()


_OF_AGENT: Select[Any] = (
    select(*_LEASE_COLUMNS)
    .where(_Q.c.agent_id == bindparam("agent"), _Q.c.state == literal(_LEASED, literal_execute=True))
    .order_by(_Q.c.number)
)


def of_agent(connection: Connection, agent_id: str) -> Sequence[Row[Any]]:
    """Return the leases that an agent has."""
    return connection.execute(_OF_AGENT, {"agent": agent_id}).all()


_WANTED_OF: Select[Any] = select(_Q.c.lease_id).where(
    _Q.c.state == literal(_LEASED, literal_execute=True),
    _Q.c.agent_id == bindparam("agent"),
    _Q.c.cancel_asked.is_(False),
)


def wanted_of(connection: Connection, agent_id: str) -> set[str]:
    """Return the leases of an agent that nobody wants to be stopped."""
    return set(connection.execute(_WANTED_OF, {"agent": agent_id}).scalars())


# Made once, as they are asked every second.
_ALL_LEASED: Select[Any] = (
    select(*_LEASE_COLUMNS, _Q.c.beat, _Q.c.leased_at, _Q.c.cancel_asked)
    .where(_Q.c.state == _LEASED, _Q.c.device_key.is_not(None))
    .order_by(_Q.c.number)
)
_RENEWAL = update(_Q).where(_Q.c.lease_id == bindparam("lease")).values(beat=_Q.c.beat + 1)


def list_leases(connection: Connection) -> Sequence[Row[Any]]:
    """Return every lease there is, with the beat that tells whether it is renewed; of a load that several agents send,
    those of its parts, and none that is on no device."""
    return connection.execute(_ALL_LEASED).all()


def renew(connection: Connection, lease_ids: Sequence[str]) -> None:
    connection.execute(_RENEWAL, [{"lease": one} for one in lease_ids])
