"""The fleet as a whole: what waits and why, who could run what, how it goes, whether all parts work."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState, KnownAgent, PendingLot
from prony.app.fleet.wait_reasons import explain_lot
from prony.app.shown_results import kind_cards
from prony.model.agent import AgentState
from prony.model.kind_card import Kinds
from prony.model.listing import AgentTrouble, FailedExperiment, FailedGates, Filters, Glance, Listing, Sort
from prony.model.queue import (
    JobState,
    Lot,
    LotView,
    Queue,
    Stats,
)
from prony.ports.workload import kind_names
from prony.store import agents as agent_rows
from prony.store import alarms, experiments, listing, lot_rows, queue, series
from prony.store.database import Connection
from prony.store.lot_rows import LotCount

_NEWS = timedelta(days=14)
_MOST = 12
_UNTOLD = "some of its jobs have only a part of their results"
_TROUBLED = frozenset({AgentState.LOST, AgentState.FAULTY, AgentState.DISK_FULL})
_ABLE = frozenset({AgentState.ACTIVE, AgentState.BUSY, AgentState.CLEANUP})


class Queries:
    """Show the whole fleet: its queue, figures, health and lists."""

    def __init__(self, context: FleetContext, state: FleetState) -> None:
        self._context = context
        self._state = state

    async def queue(self) -> Queue:
        def ask(connection: Connection) -> tuple[tuple[Lot, ...], dict[str, LotCount], dict[str, str]]:
            counts = lot_rows.counts(connection)
            found = lot_rows.of_ids(connection, counts)
            return found, counts, experiments.names(connection, {lot.experiment_id for lot in found})

        open_lots, counts, names = await self._context.read(ask)
        known_agents = list(self._state.agents.values())

        def look() -> list[LotView]:
            return [self._lot_view(lot, known_agents, counts[lot.id], names) for lot in open_lots]

        # Each lot is held against each agent: with many of both, nobody else is to wait for that.
        views = await asyncio.to_thread(look)
        views.sort(key=lambda view: (-view.lot.priority, view.lot.created_at))
        waiting = sum(count.waiting for count in counts.values())
        leased = sum(count.leased for count in counts.values())
        return Queue(lots=tuple(views), waiting=waiting, leased=leased)

    def _lot_view(self, lot: Lot, known_agents: list[KnownAgent], count: LotCount, names: dict[str, str]) -> LotView:
        pending = PendingLot(lot, lot.demand.id)
        fitting = tuple(known_agent.id for known_agent in known_agents if self._state.could(known_agent, pending))
        return LotView(
            lot=lot,
            experiment_name=names.get(lot.experiment_id, ""),
            waiting=count.waiting,
            leased=count.leased,
            fitting=fitting[:100],
            reason=explain_lot(self._state, lot, known_agents, count, self._context.clock.now().timestamp())
            if count.waiting
            else "",
        )

    async def stats(self) -> Stats:
        now = self._context.clock.now()

        def ask(connection: Connection) -> Stats:
            held = {one.agent_id for one in list(self._state.held.values())}
            states = Counter(
                agent_rows.state_of(AgentState(row.state), has_lease=row.id in held)
                for row in agent_rows.pulses(connection)
            )
            first = [queue.first_at(connection, state) for state in (JobState.WAITING, JobState.LEASED)]
            ages = [(now - one).total_seconds() if one is not None else None for one in first]
            return Stats(
                jobs=queue.counts_by_state(connection),
                agents=dict(states),
                experiments=experiments.count(connection),
                ended_last_hour=queue.count_ended(connection, now - timedelta(hours=1)),
                oldest_waiting_s=ages[0],
                oldest_lease_s=ages[1],
            )

        return await self._context.read(ask)

    async def listing(self, filters: Filters, sort: Sort, *, limit: int, cursor: str | None) -> Listing:
        def ask(connection: Connection) -> Listing:
            rows, following = listing.page(connection, filters, sort, limit=limit, cursor=cursor)
            states = listing.states(connection, filters)
            total = sum(states.values()) if filters.state is None else states.get(filters.state, 0)
            items, labels = listing.show_rows(connection, rows), listing.labels(connection)
            kinds = tuple(dict.fromkeys((*kind_names(), *listing.kinds(connection))))
            return Listing(items=items, next=following, total=total, states=states, labels=labels, kinds=kinds)

        return await self._context.read(ask)

    async def kinds(self) -> Kinds:
        """Return what pages offer of every kind of workload, those that only stored experiments have too."""
        stored = await self._context.read(listing.kinds)
        return Kinds(items=await asyncio.to_thread(kind_cards, stored))

    async def overview(self) -> Glance:
        stats, since = await self.stats(), self._context.clock.now() - _NEWS

        def ask(connection: Connection) -> Glance:
            rows, _ = listing.page(connection, Filters(), "newest", limit=_MOST, cursor=None)
            gates = listing.failed_gates(connection, since, _MOST)
            return Glance(
                running=listing.show_rows(connection, listing.running(connection, _MOST)),
                recent=listing.show_rows(connection, rows),
                changes=series.change_page(connection, limit=_MOST).items,
                failed=_list_failed(connection, since),
                failed_gates=tuple(
                    FailedGates(experiment_id=row.id, name=row.name, ended_at=row.ended_at, text=row.gates_text or "")
                    for row in gates
                ),
                troubles=_troubles(connection),
                incidents=alarms.open_incidents(connection, _MOST),
                stats=stats,
                agents=sum(count for state, count in stats.agents.items() if state in _ABLE),
            )

        return await self._context.read(ask)


def _list_failed(connection: Connection, since: datetime) -> tuple[FailedExperiment, ...]:
    return tuple(
        FailedExperiment(
            experiment_id=row.id, name=row.name, state=row.state, ended_at=row.ended_at,
            text=listing.first_failure_text(connection, row.id) or _UNTOLD,
        )
        for row in listing.list_failed(connection, since, _MOST)
    )  # fmt: skip


def _troubles(connection: Connection) -> tuple[AgentTrouble, ...]:
    rows = agent_rows.in_states(connection, [state.value for state in _TROUBLED], limit=_MOST)
    return tuple(
        AgentTrouble(id=row.id, name=row.name, state=row.state, seen_at=row.seen_at, reason=row.reason) for row in rows
    )
