"""Devices of agents: what their probes read lately, and what their results say of them over time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from prony.analyse.device_readings import derive_readings
from prony.app.fleet.agents import Agents
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState
from prony.errors import NotFoundError, StoreError
from prony.model.agent import Agent
from prony.model.device import Environment
from prony.model.device_history import DeviceHistory, DeviceResult, RecentReadings
from prony.model.estimate import Summary
from prony.store import agents as rows
from prony.store.agents import AgentResult
from prony.store.folder import ENVIRONMENT, read_noun

_MOST_RESULTS = 200
# Their environments are read from disk, for calibrations and conditions.
_MOST_ENVIRONMENTS = 40


class Devices:
    """Show the device of an agent. Readings are in the memory of the server that the agent speaks to."""

    def __init__(self, context: FleetContext, state: FleetState, agents: Agents) -> None:
        self._context = context
        self._state = state
        self._agents = agents

    async def recent_readings(self, agent_id: str) -> RecentReadings:
        """Return what its probes read in the last minutes.

        Raises:
            NotFoundError: There is no such agent.
        """
        agent = await self._agents.get(agent_id)
        recent = self._state.live.recent.get(agent_id)
        found = [] if recent is None else recent.list_readings()
        device = agent.capabilities.device
        lines = derive_readings(
            [one.heard_s for one in found], [one.values for one in found], None if device is None else device.hardware
        )
        now, now_s = self._context.clock.now(), self._context.now()
        at = tuple(now - timedelta(seconds=now_s - one.heard_s) for one in found)
        return RecentReadings(agent_id=agent_id, at=at, lines=tuple(lines))

    async def history(self, agent_id: str) -> DeviceHistory:
        """Return what its newest results say of the device.

        Raises:
            NotFoundError: There is no such agent.
        """
        agent = await self._agents.get(agent_id)
        found = await self._context.read(lambda connection: rows.newest_results(connection, agent_id, _MOST_RESULTS))
        return await asyncio.to_thread(self._tell, agent, found)

    def _tell(self, agent: Agent, found: list[AgentResult]) -> DeviceHistory:
        environments = [one for row in found[:_MOST_ENVIRONMENTS] if (one := self._environment(row)) is not None]
        told = (agent.capabilities.calibration, *(one.calibration for one in environments))
        calibrations = {one.id: one for one in told if one is not None}
        states = [
            one for one in (agent.capabilities.state, *(one.state for one in environments[:1])) if one is not None
        ]
        newest = max(states, key=lambda one: one.taken_at, default=None)
        return DeviceHistory(
            agent_id=agent.id,
            results=tuple(_result_of(row) for row in reversed(found)),
            calibrations=tuple(sorted(calibrations.values(), key=lambda one: one.taken_at)),
            conditions=() if newest is None else newest.conditions,
            checked_at=None if newest is None else newest.taken_at,
        )

    def _environment(self, row: AgentResult) -> Environment | None:
        """Return what a result says of its machine; None where its folder is gone or damaged, which `doctor` tells."""
        try:
            return read_noun(self._context.home.results / row.folder / ENVIRONMENT, Environment)
        except (NotFoundError, StoreError):
            return None


def _result_of(row: AgentResult) -> DeviceResult:
    summary = Summary.read_json(row.summary)
    varies = summary.sensitivity.get(row.headline or "")
    return DeviceResult(
        job_id=row.job_id,
        experiment_id=row.experiment_id,
        title=summary.title,
        ended_at=row.ended_at,
        grade=summary.verdict.grade,
        canary=summary.canary,
        noise=None if varies is None else varies.noise,
    )
