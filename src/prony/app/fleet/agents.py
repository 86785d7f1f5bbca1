"""Agents of a fleet: enrolled, listened to, drained, reset, removed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from prony.app.access import Access
from prony.app.check_jobs import new_id
from prony.app.fleet.alarm_engine import AlarmEngine, agent_found, agent_lost
from prony.app.fleet.context import FleetContext
from prony.app.fleet.state import FleetState, KnownAgent
from prony.app.fleet.transitions import Transitions
from prony.dispatch.liveness import quiet_after_s
from prony.errors import AccessError, ConflictError
from prony.model.access import Principal, Role
from prony.model.agent import (
    Agent,
    AgentState,
    Capabilities,
    DiskShortage,
    Enrolled,
    Enrolment,
    Heartbeat,
    HeartbeatAnswer,
    ScrapeTarget,
)
from prony.model.queue import Page
from prony.model.states import AGENT, check_transition
from prony.store import agents as rows
from prony.store import leases as lease_rows
from prony.store.database import Connection, Row
from prony.store.writer import Transaction

_DRAINED = "drained by"
_SILENT = frozenset({AgentState.LOST, AgentState.STOPPED})


class Agents:
    """Enrol agents, hear their heartbeats, drain, reset and remove them."""

    def __init__(
        self,
        context: FleetContext,
        state: FleetState,
        alarm_engine: AlarmEngine,
        access: Access,
        transitions: Transitions,
    ) -> None:
        self._context = context
        self._state = state
        self._alarm_engine = alarm_engine
        self._access = access
        self._transitions = transitions
        self._news: Counter[str] = Counter()  # agent -> how often something newer of it was asked for or learnt

    async def enroll(self, enrolment: Enrolment, *, who: Principal) -> Enrolled:
        """Take in an agent, or a new life of one: what its earlier life held waits again."""
        if who.agent_id is not None and enrolment.id != who.agent_id:
            raise AccessError(
                f"this token belongs to agent {who.agent_id}", hint="enrol with its id, or with another token"
            )
        if who.role is Role.AGENT and who.agent_id is None:
            enrolment = enrolment.model_copy(update={"id": None})  # whose id it would take is not its to say
        agent_id = enrolment.id or f"{enrolment.name[:60]}-{new_id(self._context.clock.now().timestamp(), chance=4)}"

        token = None
        if who.token_id is not None and who.agent_id is None:
            token = await asyncio.to_thread(self._access.exchange, who, agent_id, enrolment.name)

        def keep(transaction: Transaction) -> Row[Any]:
            life = rows.enrol(transaction.connection, agent_id, enrolment, now=self._context.clock.now())
            if life not in (None, enrolment.incarnation):
                self._put_back_all(transaction, agent_id, "the agent was restarted", kept=enrolment.holding)
            for lease_id in enrolment.holding:
                self._transitions.take_up(transaction, lease_id, agent_id)
            self._alarm_engine.report(transaction, agent_found(agent_id, "is back", self._context.clock.now()))
            transaction.publish("agent", agent_id)
            return rows.row(transaction.connection, agent_id)

        row = await self._context.write(keep)
        await self.sign_of_life(self.remember(row))
        self._context.hook("enrolled", agent=agent_id)
        return Enrolled(agent=self._show([row])[0], token=token, ttl_s=self._context.settings.ttl_s)

    async def page(self, *, state: AgentState | None = None, limit: int = 50, cursor: str | None = None) -> Page[Agent]:
        def ask(connection: Connection) -> Page[Agent]:
            kept: list[Agent] = []
            after = cursor
            while len(kept) <= limit:
                found = rows.rows(connection, limit=limit + 1, after=after)
                kept += [one for one in self._show(found) if state is None or one.state is state]
                if len(found) <= limit:
                    break
                after = found[-1].id
            shown = kept[:limit]
            return Page(items=tuple(shown), next=shown[-1].id if len(kept) > limit else None)

        return await self._context.read(ask)

    async def get(self, agent_id: str) -> Agent:
        return await self._context.read(lambda connection: self._show([rows.row(connection, agent_id)])[0])

    async def heartbeat(self, agent_id: str, heartbeat: Heartbeat, *, who: Principal) -> HeartbeatAnswer:
        """Renew the leases that it names; answer which of them are not its any more, or not wanted any more."""
        known_agent = await self.sign_of_life(await self.identify(agent_id, heartbeat.incarnation, who))
        known_agent.is_cleaning = heartbeat.cleaning
        self._state.live.note_readings(agent_id, heartbeat.readings, self._context.now())
        known_agent = await self._note_disk(known_agent, heartbeat.disk)
        unsure = [lease_id for lease_id in heartbeat.leases if not self.is_wanted(lease_id, agent_id)]
        # Not in mind: another server may have lent them, or they are fresher than the last round.
        wanted = (
            await self._context.read(lambda connection: lease_rows.wanted_of(connection, agent_id)) if unsure else set()
        )
        stop = [lease_id for lease_id in unsure if lease_id not in wanted or lease_id in self._state.unwanted]
        self._state.renewed |= dict.fromkeys(set(heartbeat.leases).difference(stop), self._context.now())
        return HeartbeatAnswer(cancel=tuple(stop), drain=known_agent.state is AgentState.DRAINING)

    async def _note_disk(self, known_agent: KnownAgent, shortage: DiskShortage | None) -> KnownAgent:
        """Lend nothing to an agent whose disk is full, and go on when it says that there is room."""
        before = AgentState.DISK_FULL if shortage is None else AgentState.ACTIVE
        if known_agent.state is not before:
            return known_agent
        after, reason = (
            (AgentState.ACTIVE, "") if shortage is None else (AgentState.DISK_FULL, f"disk full: {shortage}")
        )

        def act(transaction: Transaction) -> Row[Any]:
            row = rows.row(transaction.connection, known_agent.id, locked=True)
            if row.state == before:  # else somebody drained it meanwhile, or called it faulty
                rows.change(transaction.connection, known_agent.id, state=after.value, reason=reason)
                transaction.publish("agent", known_agent.id)
            return rows.row(transaction.connection, known_agent.id)

        return self.remember(await self._context.write(act))

    def is_wanted(self, lease_id: str, agent_id: str) -> bool:
        held = self._state.held.get(lease_id)
        return held is not None and held.agent_id == agent_id and lease_id not in self._state.unwanted

    async def set_capabilities(self, agent_id: str, capabilities: Capabilities, *, who: Principal) -> Agent:
        check_self(agent_id, who)

        def keep(transaction: Transaction) -> Row[Any]:
            rows.row(transaction.connection, agent_id)
            rows.change(transaction.connection, agent_id, document=capabilities.model_dump_json())
            transaction.publish("agent", agent_id)
            return rows.row(transaction.connection, agent_id)

        row = await self._context.write(keep)
        self.remember(row)
        self._state.rouse(agent_id)  # what it waits for may be another now
        return self._show([row])[0]

    async def drain(self, agent_id: str, *, who: Principal) -> Agent:
        """Give it nothing more; what it runs may end."""
        if who.role is Role.AGENT:
            check_self(agent_id, who)
        return await self._move(agent_id, AgentState.DRAINING, reason=f"{_DRAINED} {who.name}")

    async def reset(self, agent_id: str, *, who: Principal) -> Agent:
        """Trust a faulty agent again, or stop draining it."""
        self._context.hook("reset", agent=agent_id, who=who.name)
        return await self._move(agent_id, AgentState.ACTIVE, reason="", strikes=0)

    async def _move(self, agent_id: str, state: AgentState, **also: Any) -> Agent:
        def act(transaction: Transaction) -> Row[Any]:
            row = rows.row(transaction.connection, agent_id, locked=True)
            if row.state != state:
                check_transition(AGENT, f"agent {agent_id}", AgentState(row.state), state)
            rows.change(transaction.connection, agent_id, state=state.value, **also)
            transaction.publish("agent", agent_id)
            return rows.row(transaction.connection, agent_id)

        row = await self._context.write(act)
        self.remember(row)
        self._state.rouse(agent_id)
        return self._show([row])[0]

    async def remove(self, agent_id: str, *, who: Principal) -> None:
        """Forget an agent; its token ends, and what it ran waits for another."""

        def act(transaction: Transaction) -> None:
            self._put_back_all(transaction, agent_id, "the agent was removed")
            rows.remove(transaction.connection, agent_id, now=self._context.clock.now())
            self._alarm_engine.report(transaction, agent_found(agent_id, "was removed", self._context.clock.now()))
            transaction.publish("agent", agent_id)

        await self._context.write(act)
        self._context.hook("removed", agent=agent_id, who=who.name)
        self._state.forget(agent_id)
        self._state.rouse(agent_id)

    def scrape_targets(self) -> tuple[ScrapeTarget, ...]:
        """Return the agents that serve metrics and were heard lately, from memory."""
        since_s = self._context.now() - quiet_after_s(self._context.settings.ttl_s)
        seen = self._state.seen  # an agent that speaks to another server of this database is not in it
        found = []
        for known_agent in list(self._state.agents.values()):
            address = known_agent.capabilities.metrics_address
            is_silent = seen.get(known_agent.id, since_s) < since_s or known_agent.state is AgentState.LOST
            if address and not is_silent:
                device = known_agent.capabilities.device
                labels = {
                    "agent": known_agent.name,
                    "agent_id": known_agent.id,
                    "device": device.name if device else "",
                }
                found.append(ScrapeTarget(targets=(address,), labels=labels))
        return tuple(found)

    # Inside

    async def load(self, agent_id: str) -> None:
        await self.load_all([agent_id])

    async def load_all(self, agent_ids: Sequence[str]) -> None:
        """Have in mind what the database knows of these agents; whoever waits is to look again at what it may do."""
        self._news.update(agent_ids)
        begun = {agent_id: self._news[agent_id] for agent_id in agent_ids}
        found = await self._context.read(lambda connection: rows.find_agents(connection, agent_ids))
        # Several may be under way at once: what one that began earlier brings last is old.
        newest = {agent_id for agent_id, number in begun.items() if self._news[agent_id] == number}
        for row in found:
            if row.id in newest:
                self.remember(row)
        for agent_id in newest - {row.id for row in found}:
            self._state.forget(agent_id)
            self._state.live.forget_agent(agent_id)
        for agent_id in agent_ids:
            self._state.rouse(agent_id)

    def remember(self, row: Row[Any]) -> KnownAgent:
        """Have an agent in mind as the database knows it."""
        self._news[row.id] += 1
        known = self._state.agents.get(row.id)
        known_agent = KnownAgent(
            id=row.id,
            name=row.name,
            state=AgentState(row.state),
            device_key=row.device_key,
            incarnation=row.incarnation,
            capabilities=Capabilities.read_json(row.document),
            strikes=row.strikes,
            is_cleaning=known.is_cleaning if known else False,
        )
        self._state.keep(known_agent)
        return known_agent

    async def sign_of_life(self, known_agent: KnownAgent) -> KnownAgent:
        """Note that it was heard; return it as it is now, found where it was lost."""
        self._state.seen[known_agent.id] = self._context.now()
        self._state.alive.add(known_agent.id)
        return await self.find(known_agent.id) if known_agent.state in _SILENT else known_agent

    async def find(self, agent_id: str) -> KnownAgent:
        """Call an agent that was silent what it was before: draining, or else active."""

        def act(transaction: Transaction) -> Row[Any]:
            row = rows.row(transaction.connection, agent_id, locked=True)
            if row.state in _SILENT:
                was_drained = row.reason.startswith(_DRAINED)
                state, reason = (AgentState.DRAINING, row.reason) if was_drained else (AgentState.ACTIVE, "")
                rows.change(transaction.connection, agent_id, state=state.value, reason=reason)
                self._alarm_engine.report(
                    transaction, agent_found(agent_id, "is connected again", self._context.clock.now())
                )
                transaction.publish("agent", agent_id)
            return rows.row(transaction.connection, agent_id)

        return self.remember(await self._context.write(act))

    async def lose(self, agent_id: str, reason: str) -> None:
        """Call an agent lost that was silent for long, or stopped where it was draining and had nothing in hand.

        That it was draining stays written with it.
        """

        def act(transaction: Transaction) -> None:
            row = rows.row(transaction.connection, agent_id, locked=True)
            if row.state == AgentState.DRAINING and not rows.has_lost_work(transaction.connection, agent_id):
                rows.change(transaction.connection, agent_id, state=AgentState.STOPPED.value)
                transaction.publish("agent", agent_id)
            elif row.state in (AgentState.ACTIVE, AgentState.DRAINING, AgentState.DISK_FULL):
                why = f"{row.reason}; {reason}" if row.reason else reason
                rows.change(transaction.connection, agent_id, state=AgentState.LOST.value, reason=why)
                self._alarm_engine.report(transaction, agent_lost(agent_id, why, self._context.clock.now()))
                transaction.publish("agent", agent_id)

        await self._context.write(act)

    async def identify(self, agent_id: str, incarnation: str, who: Principal) -> KnownAgent:
        """Return the agent that speaks, if it is the life that we know."""
        check_self(agent_id, who)
        known_agent = self._state.agents.get(agent_id)
        if known_agent is None or known_agent.incarnation != incarnation:
            known_agent = self.remember(await self._context.read(lambda connection: rows.row(connection, agent_id)))
        if known_agent.incarnation != incarnation:
            raise ConflictError(
                f"agent {agent_id} was enrolled by another process than this one ({incarnation})",
                hint="enrol again; only one process may be this agent",
                code="agent_replaced",
            )
        return known_agent

    def _put_back_all(
        self, transaction: Transaction, agent_id: str, reason: str, *, kept: Collection[str] = ()
    ) -> None:
        for row in lease_rows.list_leases(transaction.connection):
            if row.agent_id == agent_id and row.lease_id not in kept:
                self._transitions.put_back(transaction, row.lease_id, "lost", reason, counts=True)

    def _show(self, found: Sequence[Row[Any]]) -> list[Agent]:
        leases = {held.agent_id: held.job_id for held in list(self._state.held.values())}
        known_agents = [self._state.agents.get(row.id) for row in found]
        return [
            rows.agent_of(row, leases, is_cleaning=known_agent is not None and known_agent.is_cleaning)
            for row, known_agent in zip(found, known_agents, strict=True)
        ]


def check_self(agent_id: str, who: Principal) -> None:
    """An agent may speak only for itself."""
    if who.role is Role.AGENT and who.agent_id != agent_id:
        whose = f"belongs to agent {who.agent_id}" if who.agent_id else "is for enrolling"
        raise AccessError(
            f"this token {whose}; it does not work for agent {agent_id}", hint="use the agent's own token"
        )
