"""Targets that stand-in agents go to: which there are, and how the jobs fare that were placed there."""

from __future__ import annotations

from prony.app.fleet.agents import Agents
from prony.app.fleet.context import FleetContext
from prony.model.agent import Agent
from prony.model.queue import Page
from prony.model.target import PlacementView, ServedTarget
from prony.store import placement_rows
from prony.store.cursors import read_number_cursor
from prony.store.database import Connection

_AT_ONCE = 500


class Targets:
    """Show targets and placements; what is there is told by the agents, and nothing is asked of a target here."""

    def __init__(self, context: FleetContext, agents: Agents) -> None:
        self._context = context
        self._agents = agents

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[ServedTarget]:
        """Return the targets of all stand-in agents in the order of the agents, each as often as it has agents."""
        found: list[Agent] = []
        after = cursor
        while True:
            part = await self._agents.page(limit=_AT_ONCE, cursor=after)
            found += [agent for agent in part.items if agent.capabilities.target is not None]
            after = part.next
            if after is None or len(found) > limit:
                break
        shown = found[:limit]
        names = {agent.capabilities.target.name for agent in shown if agent.capabilities.target is not None}
        counts = await self._context.read(lambda connection: placement_rows.count_open(connection, names))
        items = tuple(
            ServedTarget(
                name=target.name,
                kind=target.kind,
                slots=target.slots,
                agent_id=agent.id,
                agent_state=agent.state,
                placed=counts.get((target.name, agent.id), {}),
            )
            for agent in shown
            if (target := agent.capabilities.target) is not None
        )
        return Page(items=items, next=shown[-1].id if len(found) > limit else None)

    async def placements(self, target: str, *, limit: int = 50, cursor: str | None = None) -> Page[PlacementView]:
        """Return what was placed at a target, the newest first; what has ended too."""
        before = None if cursor is None else read_number_cursor(cursor)

        def ask(connection: Connection) -> list[PlacementView]:
            return placement_rows.page_of_placements(connection, target=target, limit=limit + 1, before=before)

        found = await self._context.read(ask)
        shown = found[:limit]
        return Page(items=tuple(shown), next=str(shown[-1].number) if len(found) > limit else None)
