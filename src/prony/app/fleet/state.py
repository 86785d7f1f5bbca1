"""What one server process has in mind: who offers a device, which lots may have work, who waits for some.

Nothing here is true, it is only likely: a lot that is thought to have work is asked, and one that is thought to have
none is found again by the next round. Belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prony.app.fleet.current_figures import CurrentFigures
from prony.dispatch import fairness
from prony.dispatch.gangs import choose_offers, pick_gang
from prony.dispatch.matching import lacks
from prony.model.agent import AgentState, Capabilities
from prony.model.place import Demand, Lack
from prony.model.queue import Lot
from prony.model.states import IDLE_ONLY

_MOST_FITS = 10_000


@dataclass
class KnownAgent:
    """An agent as this process knows it."""

    id: str
    name: str
    state: AgentState
    device_key: str
    incarnation: str
    capabilities: Capabilities
    strikes: int = 0
    is_cleaning: bool = False
    fits: dict[str, tuple[Lack, ...]] = field(default_factory=dict)

    @property
    def slots(self) -> int | None:
        """How many leases it may have at once; None of an agent whose device measures one job at a time."""
        target = self.capabilities.target
        return None if target is None else target.slots

    def device_key_for(self, lease_id: str) -> str:
        """Return what a lease occupies: the device, or of a stand-in, whose jobs run elsewhere, a name of its own."""
        return self.device_key if self.slots is None else own_device_key(self.id, lease_id)

    def lacks(self, demand: Demand, demand_id: str) -> tuple[Lack, ...]:
        found = self.fits.get(demand_id)
        if found is None:
            if len(self.fits) >= _MOST_FITS:
                self.fits.clear()
            found = self.fits[demand_id] = lacks(demand, self.capabilities.facts, self.capabilities.reason_for)
        return found


def own_device_key(agent_id: str, lease_id: str) -> str:
    """Return what a lease occupies that is on no device of its agent's."""
    return f"{agent_id}/{lease_id}"[:128]


@dataclass
class PendingLot:
    """A lot that may have work; `generation` grows whenever it is said to have some."""

    lot: Lot
    demand_id: str
    generation: int = 0


@dataclass(frozen=True)
class HeldLease:
    """A lease as the last round saw it."""

    lease_id: str
    job_id: str
    experiment_id: str
    agent_id: str
    device_key: str
    attempt: int
    part_of: str | None = None  # the load that it is a part of


class FleetState:
    """What several parts of a fleet share; what one part alone remembers is its own."""

    def __init__(self) -> None:
        self.agents: dict[str, KnownAgent] = {}
        self.lots: dict[str, PendingLot] = {}
        self.held: dict[str, HeldLease] = {}  # by lease
        self.devices: dict[str, str] = {}  # device key -> lease
        self.running: Counter[str] = Counter()  # experiment -> leased jobs
        self.served: dict[str, int] = {}  # experiment -> when it got its last lease, as the number of that lease
        self.waiters: dict[str, asyncio.Future[None]] = {}  # agent -> its long poll
        self.seen: dict[str, float] = {}  # agent -> monotonic time of its last sign of life
        self.alive: set[str] = set()  # agents seen since the last round
        self.renewed: dict[str, float] = {}  # lease -> monotonic time of its last sign of life
        self.repeats: Counter[str] = Counter()  # lease -> how often its agent, which never heard of it, was told again
        self.unwanted: set[str] = set()  # leases whose jobs are to be stopped
        self.live = CurrentFigures()
        self.coming: dict[str, Lot] = {}  # lots that are being stored
        self.ended: set[str] = set()  # experiments whose gates are still to be told of
        self.missed_notes = False  # may other servers have told something that was not heard?
        self.is_stopping = False
        self._sharing: dict[str, set[str]] = defaultdict(set)  # device key -> its agents
        self._leases_made = 0
        self._since_look: dict[str, HeldLease | None] = {}  # what became of leases while the database was asked

    # Agents

    def keep(self, known_agent: KnownAgent) -> None:
        self.forget(known_agent.id)
        self.agents[known_agent.id] = known_agent
        self._sharing[known_agent.device_key].add(known_agent.id)

    def forget(self, agent_id: str) -> None:
        known_agent = self.agents.pop(agent_id, None)
        if known_agent is not None:
            sharing = self._sharing[known_agent.device_key]
            sharing.discard(agent_id)
            if not sharing:
                del self._sharing[known_agent.device_key]

    # Work

    @contextmanager
    def expect_lots(self, lots: Iterable[Lot]) -> Iterator[None]:
        """Have lots in mind while they are stored, so that they are offered as soon as that is committed."""
        fresh = {lot.id: lot for lot in lots}
        self.coming |= fresh
        try:
            yield
        finally:
            for lot_id in fresh:
                self.coming.pop(lot_id, None)

    def offer(self, lot: Lot, count: int) -> None:
        """A lot has so many jobs more; wake as many agents that could run them."""
        pending = self.lots.get(lot.id)
        generation = pending.generation + 1 if pending else 1
        self.lots[lot.id] = PendingLot(lot, lot.demand.id, generation)
        self._wake(self.lots[lot.id], count)

    def again(self, lot_id: str, count: int = 1) -> bool:
        """The same for a lot that is known already; False when it is not."""
        pending = self.lots.get(lot_id)
        if pending is not None:
            pending.generation += 1
            self._wake(pending, count)
        return pending is not None

    def prioritise(self, experiment_id: str, priority: int) -> None:
        for pending in self.lots.values():
            if pending.lot.experiment_id == experiment_id:
                pending.lot = pending.lot.model_copy(update={"priority": priority})

    def offers(self, known_agent: KnownAgent) -> list[tuple[PendingLot, tuple[KnownAgent, ...]]]:
        """Return the lots to ask for this agent, in order, each with those who would be lent it together."""
        return choose_offers(
            self.candidates(known_agent),
            size=lambda pending: pending.lot.demand.agents,
            find_gang=lambda pending: self.gang(known_agent, pending),
            count_devices=self.staff,
        )

    def gang(self, known_agent: KnownAgent, pending: PendingLot) -> tuple[KnownAgent, ...]:
        """Return as many agents as the lot wants, all of them waiting, this one first; none where they are too few."""
        waiting = (self.agents[agent_id] for agent_id in self.waiters if agent_id in self.agents)
        free = (other for other in waiting if self._is_free(other) and self.could(other, pending))
        return pick_gang(known_agent, free, pending.lot.demand.agents, lambda one: one.device_key)

    def _is_free(self, known_agent: KnownAgent) -> bool:
        return known_agent.state not in IDLE_ONLY and not self.is_full(known_agent)

    def is_full(self, known_agent: KnownAgent) -> bool:
        """Has it all the leases that it may have?"""
        if known_agent.slots is None:
            return known_agent.device_key in self.devices
        return len(self.leases_of(known_agent.id)) >= known_agent.slots

    def leases_of(self, agent_id: str) -> list[str]:
        """Return the leases that an agent is thought to have."""
        return [held.lease_id for held in list(self.held.values()) if held.agent_id == agent_id]

    def staff(self, pending: PendingLot) -> int:
        """Return how many devices there are on which a part of the lot could run, busy or not."""
        known_agents = list(self.agents.values())  # may be asked from any thread
        return len({one.device_key for one in known_agents if one.state not in IDLE_ONLY and self.could(one, pending)})

    def candidates(self, known_agent: KnownAgent) -> list[PendingLot]:
        """Return the lots that this agent could serve, in the order in which it should."""
        fitting = [pending for pending in self.lots.values() if self.could(known_agent, pending)]
        if len(fitting) < 2:
            return fitting
        by_id = {pending.lot.id: pending for pending in fitting}
        return [
            by_id[lot.id] for lot in fairness.order((pending.lot for pending in fitting), self.running, self.served)
        ]

    def has_work(self, known_agent: KnownAgent) -> bool:
        """May there be something that this agent could begin now?"""
        if not self._is_free(known_agent):
            return False
        could = [pending for pending in self.lots.values() if self.could(known_agent, pending)]
        if all(pending.lot.demand.agents == 1 for pending in could):
            return bool(could)
        return bool(self.offers(known_agent))

    def forget_empty(self, asked: Iterable[tuple[PendingLot, int]]) -> None:
        """Forget lots that had nothing, unless they were said to have something since they were asked."""
        for pending, generation in asked:
            known = self.lots.get(pending.lot.id)
            if known is not None and known.generation == generation:
                del self.lots[pending.lot.id]

    def lots_with_work(self) -> dict[str, int]:
        """Return the lots that are thought to have work, each with its generation."""
        return {lot_id: pending.generation for lot_id, pending in self.lots.items()}

    def see_lots(self, lots: Iterable[Lot], known: dict[str, int]) -> None:
        """Take over which lots have work; `known` was thought before the database was asked."""
        found = {lot.id: lot for lot in lots}
        gone = known.keys() - found.keys()
        self.forget_empty((self.lots[lot_id], known[lot_id]) for lot_id in gone if lot_id in self.lots)
        for lot in found.values():
            self.offer(lot, count=1)
        waiting = {pending.lot.experiment_id for pending in self.lots.values()}
        self.served = {one: number for one, number in self.served.items() if one in waiting}

    def could(self, known_agent: KnownAgent, pending: PendingLot) -> bool:
        pinned = pending.lot.agent_id
        if known_agent.slots is not None and pending.lot.demand.agents > 1:
            return False  # who runs a part of it must meet the others, and a job at a target reaches nobody
        return (pinned is None or pinned == known_agent.id) and not known_agent.lacks(
            pending.lot.demand, pending.demand_id
        )

    def is_alone(self, known_agent: KnownAgent, pending: PendingLot) -> bool:
        """Is this the only agent that could run the lot now?"""
        if pending.lot.agent_id is not None:
            return True
        others = (other for other in self.agents.values() if other.id != known_agent.id)
        return not any(other.state is AgentState.ACTIVE and self.could(other, pending) for other in others)

    def _wake(self, pending: PendingLot, count: int) -> None:
        """Wake so many agents, of each device one: its others could begin nothing."""
        woken: dict[str, str] = {}
        for agent_id in self.waiters:
            if len(woken) >= count:
                break
            known_agent = self.agents.get(agent_id)
            if known_agent is None or not self._is_free(known_agent):
                continue
            if known_agent.device_key not in woken and self.could(known_agent, pending):
                woken[known_agent.device_key] = agent_id
        for agent_id in woken.values():
            self.rouse(agent_id)

    def rouse(self, agent_id: str) -> None:
        waiter = self.waiters.pop(agent_id, None)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # Leases

    def hold(self, held: HeldLease) -> None:
        if held.lease_id not in self.held:
            self.running[held.experiment_id] += 1
            self._leases_made += 1
            self.served[held.experiment_id] = self._leases_made
        self.held[held.lease_id] = held
        self.devices[held.device_key] = held.lease_id
        self._since_look[held.lease_id] = held

    def release(self, lease_id: str) -> None:
        self._since_look[lease_id] = None
        self.live.forget_lease(lease_id)
        held = self.held.pop(lease_id, None)
        if held is None:
            return
        self.running[held.experiment_id] -= 1
        holder = self.agents.get(held.agent_id)
        if holder is not None and holder.slots is not None:
            self.rouse(holder.id)  # it has a slot more
        if self.devices.get(held.device_key) == lease_id:
            del self.devices[held.device_key]
            self._rouse_device(held.device_key)  # another agent of this device may have waited for it

    def begin_look(self) -> None:
        """The database is about to be asked which leases there are."""
        self._since_look = {}

    def see_leases(self, leases: Iterable[HeldLease]) -> None:
        """Take over what the database said, and what became of leases since it was asked."""
        before = self.devices
        now = {held.lease_id: held for held in leases}
        now |= {lease_id: held for lease_id, held in self._since_look.items() if held is not None}
        self.held = {lease_id: held for lease_id, held in now.items() if self._since_look.get(lease_id, held)}
        self._since_look = {}
        self.live.keep_leases(self.held)
        self.devices = {held.device_key: held.lease_id for held in self.held.values()}
        self.running = Counter(held.experiment_id for held in self.held.values())
        for device_key in before.keys() - self.devices.keys():
            self._rouse_device(device_key)
        for held in self.held.values():
            self.rouse(held.agent_id)  # it waits for a job and has one: the answer that told it so was lost

    def _rouse_device(self, device_key: str) -> None:
        for agent_id in tuple(self._sharing.get(device_key, ())):
            self.rouse(agent_id)
