"""A fleet at a glance: its experiments as lists show them, and all that a person should look at first."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from prony.app.fleet.check_recipe import Checking
from prony.model.agent import AgentState
from prony.model.listing import AgentTrouble, FailedGates, Filters, Glance, Listing, Sort
from prony.store import agents as agent_rows
from prony.store import alarms, listing, series

_NEWS = timedelta(days=14)
_MOST = 12
_TROUBLED = frozenset({AgentState.LOST, AgentState.FAULTY, AgentState.DISK_FULL})
_ABLE = frozenset({AgentState.ACTIVE, AgentState.BUSY, AgentState.CLEANUP})


class Glancing(Checking):
    """Listed, and looked over."""

    async def listing(self, filters: Filters, sort: Sort, *, limit: int, cursor: str | None) -> Listing:
        def ask(connection: Connection) -> Listing:
            rows, following = listing.page(connection, filters, sort, limit=limit, cursor=cursor)
            states = listing.states(connection, filters)
            total = sum(states.values()) if filters.state is None else states.get(filters.state, 0)
            items, labels = listing.show_rows(connection, rows), listing.labels(connection)
            return Listing(items=items, next=following, total=total, states=states, labels=labels)

        return await self.read(ask)

    async def overview(self) -> Glance:
        stats, since = await self.stats(), self.clock.now() - _NEWS

        def ask(connection: Connection) -> Glance:
            rows, _ = listing.page(connection, Filters(), "newest", limit=_MOST, cursor=None)
            gates = listing.failed_gates(connection, since, _MOST)
            return Glance(
                running=listing.show_rows(connection, listing.running(connection, _MOST)),
                recent=listing.show_rows(connection, rows),
                changes=series.change_page(connection, limit=_MOST).items,
                failed_gates=tuple(
                    FailedGates(experiment_id=row.id, name=row.name, ended_at=row.ended_at, text=row.gates_text or "")
                    for row in gates
                ),
                troubles=_troubles(connection),
                incidents=alarms.open_incidents(connection, _MOST),
                stats=stats,
                agents=sum(count for state, count in stats.agents.items() if state in _ABLE),
            )

        return await self.read(ask)


def _troubles(connection: Connection) -> tuple[AgentTrouble, ...]:
    rows = agent_rows.in_states(connection, [state.value for state in _TROUBLED], limit=_MOST)
    return tuple(
        AgentTrouble(id=row.id, name=row.name, state=row.state, seen_at=row.seen_at, reason=row.reason) for row in rows
    )
