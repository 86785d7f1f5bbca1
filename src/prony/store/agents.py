"""Rows of agents: enrol, read and change them in an open transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from prony.errors import NotFoundError
from prony.model.agent import Agent, AgentState, Capabilities, Enrolment
from prony.store import tables

_T, _A = tables.agent, tables.attempt


def enrol(connection: Connection, agent_id: str, enrolment: Enrolment, *, now: datetime) -> str | None:
    """Keep a new agent, or the new life of a known one; return which life was known, None where the agent was not.

    A faulty one stays faulty: restarting it is no repair. One that was lost is active again, and so is a new life of
    one that was draining.
    """
    values: dict[str, Any] = {
        "name": enrolment.name,
        "device_key": enrolment.device_key,
        "incarnation": enrolment.incarnation,
        "seen_at": now,
        "document": enrolment.capabilities.model_dump_json(),
    }
    query = select(_T.c.state, _T.c.incarnation).where(_T.c.id == agent_id).with_for_update()
    found = connection.execute(query).first()
    if found is None:
        fresh = {"id": agent_id, "state": AgentState.ACTIVE.value, "beat": 1, "created_at": now, "strikes": 0}
        connection.execute(insert(_T).values(values | fresh | {"reason": ""}))
        return None
    is_told_to_end = found.state == AgentState.DRAINING and found.incarnation == enrolment.incarnation
    if found.state != AgentState.FAULTY and not is_told_to_end:
        values |= {"state": AgentState.ACTIVE.value, "reason": ""}
    connection.execute(update(_T).where(_T.c.id == agent_id).values(values | {"beat": _T.c.beat + 1}))
    return str(found.incarnation)


def row(connection: Connection, agent_id: str, *, locked: bool = False) -> Row[Any]:
    query = select(_T).where(_T.c.id == agent_id)
    found = connection.execute(query.with_for_update() if locked else query).first()
    if found is None:
        raise NotFoundError(f"no agent {agent_id!r} is enrolled", hint="`prony agents` lists them", code="no_agent")
    return found


def rows(connection: Connection, *, limit: int | None = None, after: str | None = None) -> Sequence[Row[Any]]:
    query = select(_T).order_by(_T.c.id).limit(limit)
    return connection.execute(query if after is None else query.where(_T.c.id > after)).all()


def find_agents(connection: Connection, agent_ids: Sequence[str]) -> Sequence[Row[Any]]:
    """Return those of these agents that there are."""
    return connection.execute(select(_T).where(_T.c.id.in_(agent_ids))).all()


def pulses(connection: Connection) -> Sequence[Row[Any]]:
    """Return of every agent what changes, and not what it can do, which is long."""
    columns: Select[Any] = select(_T.c.id, _T.c.state, _T.c.incarnation, _T.c.strikes, _T.c.beat)
    return connection.execute(columns.order_by(_T.c.id)).all()


def in_states(connection: Connection, states: Sequence[str], *, limit: int) -> Sequence[Row[Any]]:
    """Return agents in these states without what they can do, those first that were seen last."""
    columns: Select[Any] = select(_T.c.id, _T.c.name, _T.c.state, _T.c.seen_at, _T.c.reason)
    return connection.execute(columns.where(_T.c.state.in_(states)).order_by(_T.c.seen_at.desc()).limit(limit)).all()


def change(connection: Connection, agent_id: str, **values: Any) -> None:
    connection.execute(update(_T).where(_T.c.id == agent_id).values(**values))


_BEAT = update(_T).where(_T.c.id == bindparam("which")).values(beat=_T.c.beat + 1, seen_at=bindparam("at"))


def beat(connection: Connection, agent_ids: Sequence[str], *, now: datetime) -> None:
    """Note signs of life of many agents at once."""
    connection.execute(_BEAT, [{"which": one, "at": now} for one in agent_ids])


def remove(connection: Connection, agent_id: str, *, now: datetime) -> None:
    row(connection, agent_id)
    connection.execute(delete(_T).where(_T.c.id == agent_id))
    held = tables.token
    connection.execute(
        update(held).where(held.c.agent_id == agent_id, held.c.revoked_at.is_(None)).values(revoked_at=now)
    )


def has_lost_work(connection: Connection, agent_id: str) -> bool:
    """Was the last job that this agent was lent taken from it because nothing was heard?"""
    query = select(_A.c.state).where(_A.c.agent_id == agent_id).order_by(_A.c.leased_at.desc()).limit(1)
    return connection.execute(query).scalar() == "lost"


def strike(connection: Connection, agent_id: str) -> int:
    """Count one more failure against an agent; return how many there are in a row."""
    connection.execute(update(_T).where(_T.c.id == agent_id).values(strikes=_T.c.strikes + 1))
    return int(connection.execute(select(_T.c.strikes).where(_T.c.id == agent_id)).scalar() or 0)


def agent_of(found: Row[Any], leases: Mapping[str, str], *, is_cleaning: bool = False) -> Agent:
    """Return the noun; `leases` maps the agents that have one to their job."""
    state = state_of(AgentState(found.state), has_lease=found.id in leases, is_cleaning=is_cleaning)
    return Agent(
        id=found.id,
        name=found.name,
        state=state,
        device_key=found.device_key,
        incarnation=found.incarnation,
        capabilities=Capabilities.read_json(found.document),
        created_at=found.created_at,
        seen_at=found.seen_at,
        job_id=leases.get(found.id),
        strikes=found.strikes,
        reason=found.reason,
    )


def state_of(kept: AgentState, *, has_lease: bool, is_cleaning: bool = False) -> AgentState:
    """Return the state as people see it: an active agent is busy with a lease, and cleans up after one."""
    if kept is not AgentState.ACTIVE:
        return kept
    if is_cleaning:
        return AgentState.CLEANUP
    return AgentState.BUSY if has_lease else kept


class AgentResult(NamedTuple):
    """A result that an agent measured, as its row has it."""

    job_id: str
    experiment_id: str
    ended_at: datetime | None
    folder: str
    summary: str
    headline: str | None


def newest_results(connection: Connection, agent_id: str, limit: int) -> list[AgentResult]:
    """Return the results of an agent that stand for their jobs, the newest first."""
    result = tables.result
    shown = (result.c.job_id, result.c.experiment_id, result.c.ended_at, result.c.folder, result.c.summary)
    query = (
        select(*shown, result.c.headline_metric)
        .join_from(_A, result, (result.c.job_id == _A.c.job_id) & (result.c.attempt == _A.c.number))
        .where(_A.c.agent_id == agent_id, result.c.stands)
        .order_by(_A.c.leased_at.desc())
        .limit(limit)
    )
    return [AgentResult(*row) for row in connection.execute(query)]
