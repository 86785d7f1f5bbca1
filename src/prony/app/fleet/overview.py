"""The fleet as a whole: what waits and why, who could run what, how it goes, whether all parts work."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select, text

from prony.app.fleet import submission as submissions
from prony.app.fleet.jobs import Jobs
from prony.app.fleet.leases import Leases
from prony.app.fleet.state import KnownAgent, PendingLot
from prony.dispatch.matching import lacks
from prony.dispatch.retry import is_due
from prony.errors import PronyError
from prony.model.agent import AgentState
from prony.model.job import Job
from prony.model.place import Demand
from prony.model.queue import (
    Compatibility,
    Fit,
    Health,
    HealthPart,
    JobState,
    Lot,
    LotFit,
    LotView,
    Queue,
    Stats,
    Submission,
)
from prony.recipe import LoadedRecipe
from prony.store import agents as agent_rows
from prony.store import lot_rows, tables
from prony.store.lot_rows import LotCount

_LEAST_FREE = 100 * 2**20
_MOST_NAMED = 3
_SOON = "about to be leased"
# States that a sentence has other words for than their names.
_STATES = {AgentState.DISK_FULL: "out of disk space"}


class Overview(Jobs, Leases):
    """Looked at as a whole."""

    def why(self, lot_id: str) -> str:
        """Say why a lot's jobs wait; may be asked from any thread."""
        tray = self.floor.trays.get(lot_id)
        return "" if tray is None else self._reason(tray.lot, list(self.floor.cards.values()))

    def _reason(self, lot: Lot, cards: list[KnownAgent]) -> str:
        if lot.agent_id is not None:
            return self._reason_pinned(lot, cards)
        demand_id = lot.demand.id
        fitting = [card for card in cards if not card.lacks(lot.demand, demand_id)]
        if not cards:
            return "no agent is enrolled: `prony agent start`"
        if not fitting:
            return f"no agent fits: {_lacking(lot.demand, cards)}"
        working = [card for card in fitting if card.state in (AgentState.ACTIVE, AgentState.BUSY)]
        if not working:
            states = Counter(card.state for card in fitting)
            told = ", ".join(f"{count} {_STATES.get(state, state)}" for state, count in states.items())
            return f"no agent that fits is there: {told}"
        # One that takes jobs by other means than asking holds them under names of their own.
        holding = {held.agent_id for held in list(self.floor.held.values())}
        busy = [card for card in working if card.device_key in self.floor.devices or card.id in holding]
        if lot.demand.agents > 1:
            return self._reason_gang(lot.demand.agents, {card.device_key for card in working})
        full = sum(card.state is AgentState.DISK_FULL for card in fitting)
        more = f", {full} more out of disk space" if full else ""
        return f"{len(busy)} of {len(working)} agents that fit are busy{more}" if busy else _SOON

    def _reason_gang(self, wanted: int, devices: set[str]) -> str:
        there, free = len(devices), len(devices - self.floor.devices.keys())
        if there < wanted:
            return f"wants {wanted} agents at once, each on a device of its own, and {there} that fit are there"
        return f"wants {wanted} agents at once, and {free} of {there} are free" if free < wanted else _SOON

    def _reason_pinned(self, lot: Lot, cards: list[KnownAgent]) -> str:
        card = next((one for one in cards if one.id == lot.agent_id), None)
        if card is None:
            return f"agent {lot.agent_id} was removed: cancel it, or submit again"
        lacking = card.lacks(lot.demand, lot.demand.id)
        if lacking:
            return f"agent {card.name} fits no longer: {'; '.join(map(str, lacking))}"
        if card.state is not AgentState.ACTIVE:
            return f"agent {card.name} is {_STATES.get(card.state, card.state)}"
        return f"agent {card.name} is busy" if card.device_key in self.floor.devices else _SOON

    async def queue(self) -> Queue:
        def ask(connection: Connection) -> tuple[tuple[Lot, ...], dict[str, LotCount], dict[str, str]]:
            counts = lot_rows.counts(connection)
            found = lot_rows.of_ids(connection, counts)
            table = tables.experiment
            ids = {lot.experiment_id for lot in found}
            named = connection.execute(select(table.c.id, table.c.name).where(table.c.id.in_(ids)))
            names: dict[str, str] = {row.id: row.name for row in named}
            return found, counts, names

        open_lots, counts, names = await self.read(ask)
        cards = list(self.floor.cards.values())

        def look() -> list[LotView]:
            return [self._lot_view(lot, cards, counts[lot.id], names) for lot in open_lots]

        # Each lot is held against each agent: with many of both, nobody else is to wait for that.
        views = await asyncio.to_thread(look)
        views.sort(key=lambda view: (-view.lot.priority, view.lot.created_at))
        waiting = sum(count.waiting for count in counts.values())
        leased = sum(count.leased for count in counts.values())
        return Queue(lots=tuple(views), waiting=waiting, leased=leased)

    def _lot_view(self, lot: Lot, cards: list[KnownAgent], count: LotCount, names: dict[str, str]) -> LotView:
        tray = PendingLot(lot, lot.demand.id)
        fitting = tuple(card.id for card in cards if self.floor.could(card, tray))
        return LotView(
            lot=lot,
            experiment_name=names.get(lot.experiment_id, ""),
            waiting=count.waiting,
            leased=count.leased,
            fitting=fitting[:100],
            reason=self._reason_all(lot, cards, count) if count.waiting else "",
        )

    def _reason_all(self, lot: Lot, cards: list[KnownAgent], count: LotCount) -> str:
        """Say why all of a lot waits: for its turn, or for the end of a pause."""
        reason, now = self._reason(lot, cards), self.clock.now().timestamp()
        if reason != _SOON or is_due(count.not_before, now):
            return reason
        return f"failed before, and is tried again in {count.not_before - now:.0f} s"

    async def compatibility(self, submission: Submission) -> Compatibility:
        """Say for each agent whether it could run each lot of a recipe, and what it lacks."""
        read = await self.read_recipe(submissions.ReadOrder(submission), is_check=True)
        cards = list(self.floor.cards.values())
        lots, runnable = await self.checkers.in_thread(self.fits, read.loaded, read.cells, cards)
        return Compatibility(lots=lots, runnable=runnable)

    def fits(
        self, loaded: LoadedRecipe, cells: Sequence[Job], cards: Sequence[KnownAgent]
    ) -> tuple[tuple[LotFit, ...], bool]:
        """Hold each lot against each agent; True where all lots could run. May be asked from any thread."""
        wants = tuple(
            LotFit(demand=demand, jobs=count, agents=tuple(_fit(card, demand) for card in cards))
            for demand, count in submissions.demands(loaded, cells)
        )
        return wants, all(_devices(cards, lot) >= lot.demand.agents for lot in wants)

    async def stats(self) -> Stats:
        now = self.clock.now()

        def ask(connection: Connection) -> Stats:
            table = tables.queue
            counting = select(table.c.state, func.count()).where(table.c.part_of.is_(None))
            rows = connection.execute(counting.group_by(table.c.state)).all()
            jobs = {JobState(state): count for state, count in rows}
            held = {one.agent_id for one in list(self.floor.held.values())}
            states = Counter(
                agent_rows.state_of(AgentState(row.state), has_lease=row.id in held)
                for row in agent_rows.pulses(connection)
            )
            hour = select(func.count()).where(table.c.ended_at > now - timedelta(hours=1))
            first = _first(connection, JobState.WAITING), _first(connection, JobState.LEASED)
            ages = [(now - one).total_seconds() if one is not None else None for one in first]
            return Stats(
                jobs=jobs,
                agents=dict(states),
                experiments=connection.execute(select(func.count()).select_from(tables.experiment)).scalar_one(),
                ended_last_hour=connection.execute(hour).scalar_one(),
                oldest_waiting_s=ages[0],
                oldest_lease_s=ages[1],
            )

        return await self.read(ask)

    async def health(self) -> Health:
        """Try every part for real: a read, a write, the disk, the round that looks after leases."""
        from prony import __version__

        parts = [await self._database_reads(), await self._database_writes(), self._disk(), self._round()]
        return Health(ok=all(part.ok for part in parts), version=__version__, parts=tuple(parts))

    async def _database_reads(self) -> HealthPart:
        try:
            await asyncio.wait_for(self.read(lambda connection: connection.execute(text("SELECT 1")).scalar()), 5)
        except (PronyError, TimeoutError) as exc:
            return HealthPart(name="database", ok=False, detail=str(exc) or "no answer in 5 s")
        return HealthPart(name="database", ok=True, detail=self.engine.dialect.name)

    async def _database_writes(self) -> HealthPart:
        def touch(desk: object) -> None:
            """An empty transaction is still one that the writer began and committed."""

        try:
            await asyncio.wait_for(self.write(touch), 5)
        except (PronyError, TimeoutError) as exc:
            return HealthPart(name="writer", ok=False, detail=str(exc) or "no answer in 5 s")
        return HealthPart(name="writer", ok=self.writer.lives, detail=f"{self.writer.backlog} wait")

    def _disk(self) -> HealthPart:
        free = shutil.disk_usage(self.home.root).free
        writable = os.access(self.home.results, os.W_OK)
        ok = writable and free >= _LEAST_FREE
        return HealthPart(
            name="disk", ok=ok, detail=f"{free / 2**30:.1f} GiB free" + ("" if writable else ", read-only")
        )

    def _round(self) -> HealthPart:
        age = self.now() - self.last_round
        ok = age < 10 * self.settings.sweep_s + 10
        return HealthPart(name="round", ok=ok, detail=f"{age:.1f} s ago")


def _fit(card: KnownAgent, demand: Demand) -> Fit:
    offered = card.capabilities
    lacking = lacks(demand, offered.facts, offered.reason_for)  # not remembered: it is only a question
    return Fit(agent_id=card.id, agent_name=card.name, state=card.state, fits=not lacking, lacks=lacking)


def _devices(cards: Sequence[KnownAgent], lot: LotFit) -> int:
    """Return on how many devices the lot could run at once."""
    fitting = {one.agent_id for one in lot.agents if one.fits}
    return len({card.device_key for card in cards if card.id in fitting})


def _lacking(demand: Demand, cards: list[KnownAgent]) -> str:
    demand_id = demand.id
    told = [f"{card.name} lacks {'; '.join(map(str, card.lacks(demand, demand_id)))}" for card in cards[:_MOST_NAMED]]
    more = len(cards) - _MOST_NAMED
    return " · ".join(told) + (f" · and {more} more agents" if more > 0 else "")


def _first(connection: Connection, state: JobState) -> datetime | None:
    table = tables.queue
    column = table.c.leased_at if state is JobState.LEASED else table.c.created_at
    query = select(column).where(table.c.state == state.value).order_by(table.c.number).limit(1)
    found: datetime | None = connection.execute(query).scalar()
    return found
