"""Say why jobs wait: no agent fits, all that fit are busy, a pause is not over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any

from prony.app.fleet.state import FleetState, KnownAgent, PendingLot
from prony.dispatch.outcomes import is_due
from prony.model.agent import AgentState
from prony.model.place import Demand
from prony.model.queue import JobState, Lot, QueuedJob
from prony.store.database import Row
from prony.store.job_view import queued_of
from prony.store.lot_rows import LotCount

_MOST_NAMED = 3
_SOON = "an agent is about to get it"
# States that a sentence has other words for than their names.
_STATES = {AgentState.DISK_FULL: "out of disk space"}


def show_jobs(state: FleetState, rows: Sequence[Row[Any]], now: datetime) -> list[QueuedJob]:
    """Return jobs with why each waits; may be asked from any thread."""
    # The same for all jobs of a lot, and it looks at every agent.
    explain: Callable[[str], str] = cache(partial(explain_wait, state))
    return [queued_of(row, reason=_job_reason(row, now.timestamp(), explain)) for row in rows]


def _job_reason(row: Row[Any], now: float, explain: Callable[[str], str]) -> str:
    """Say what became of a job's last attempt, and why it waits now; in a pause, it waits for nothing else."""
    if row.state != JobState.WAITING or not is_due(row.not_before, now):
        return str(row.reason)
    return "; ".join(part for part in (row.reason, explain(row.lot_id)) if part)


def explain_wait(state: FleetState, lot_id: str) -> str:
    """Say why a lot's jobs wait; may be asked from any thread."""
    pending = state.lots.get(lot_id)
    return "" if pending is None else _reason(state, pending.lot, list(state.agents.values()))


def explain_lot(state: FleetState, lot: Lot, agents: list[KnownAgent], count: LotCount, now: float) -> str:
    """Say why all of a lot waits: for its turn, or for the end of a pause."""
    reason = _reason(state, lot, agents)
    if reason != _SOON or is_due(count.not_before, now):
        return reason
    return f"failed before; the next try is in {count.not_before - now:.0f} s"


def _reason(state: FleetState, lot: Lot, known_agents: list[KnownAgent]) -> str:
    if lot.agent_id is not None:
        return _reason_pinned(state, lot, known_agents)
    demand_id = lot.demand.id
    fitting = [known_agent for known_agent in known_agents if state.could(known_agent, PendingLot(lot, demand_id))]
    if not known_agents:
        return "no agent is enrolled: `prony agent start --server URL`"
    if not fitting:
        return f"no agent fits: {_lacking(lot.demand, known_agents)}"
    working = [known_agent for known_agent in fitting if known_agent.state in (AgentState.ACTIVE, AgentState.BUSY)]
    if not working:
        states = Counter(known_agent.state for known_agent in fitting)
        told = ", ".join(f"{count} {_STATES.get(one, one)}" for one, count in states.items())
        return f"no agent that fits is available: {told}"
    # One that takes jobs by other means than asking holds them under names of their own.
    holding = {held.agent_id for held in list(state.held.values())}
    busy = [one for one in working if state.is_full(one) or (one.slots is None and one.id in holding)]
    if lot.demand.agents > 1:
        return _reason_gang(state, lot.demand.agents, {known_agent.device_key for known_agent in working})
    full = sum(known_agent.state is AgentState.DISK_FULL for known_agent in fitting)
    more = f", {full} more out of disk space" if full else ""
    return f"{len(busy)} of {len(working)} agents that fit are busy{more}" if busy else _SOON


def _reason_gang(state: FleetState, wanted: int, devices: set[str]) -> str:
    there, free = len(devices), len(devices - state.devices.keys())
    if there < wanted:
        return f"needs {wanted} agents at once, each on its own device; {there} that fit are available"
    return f"needs {wanted} agents at once; {free} of {there} are free" if free < wanted else _SOON


def _reason_pinned(state: FleetState, lot: Lot, known_agents: list[KnownAgent]) -> str:
    known_agent = next((one for one in known_agents if one.id == lot.agent_id), None)
    if known_agent is None:
        return f"agent {lot.agent_id} was removed: cancel it, or submit again"
    lacking = known_agent.lacks(lot.demand, lot.demand.id)
    if lacking:
        return f"agent {known_agent.name} no longer fits: {'; '.join(map(str, lacking))}"
    if known_agent.state is not AgentState.ACTIVE:
        return f"agent {known_agent.name} is {_STATES.get(known_agent.state, known_agent.state)}"
    return f"agent {known_agent.name} is busy" if known_agent.device_key in state.devices else _SOON


def _lacking(demand: Demand, known_agents: list[KnownAgent]) -> str:
    demand_id = demand.id
    told = [
        f"{known_agent.name} lacks {'; '.join(map(str, known_agent.lacks(demand, demand_id)))}"
        if known_agent.capabilities.facts
        else f"{known_agent.name} has not reported what it can run: start its agent"
        for known_agent in known_agents[:_MOST_NAMED]
    ]
    more = len(known_agents) - _MOST_NAMED
    return " · ".join(told) + (f" · and {more} more agents" if more > 0 else "")
