"""Workers: registered, listened to, called faulty, trusted again; agents of the fleet all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prony.compat.sark.face.bridge import Bridge
from prony.compat.sark.face.settings import WHO
from prony.compat.sark.face.workers import (
    build_registration,
    enrolment_of,
    is_faulty,
    is_worker,
    registration_of,
    shown_health,
    shown_worker,
    status_of,
)
from prony.compat.sark.nouns import WorkerStatus
from prony.errors import InputError, NotFoundError
from prony.model.agent import Agent, AgentState, Enrolment, Heartbeat
from prony.store import agents as rows
from prony.store.writer import Transaction

_PAGE = 500


class WorkerRegistry:
    """`_said` is what each said of itself, and `_dismissed` who was deleted and may still be there."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.fleet = bridge.fleet
        self.settings = bridge.settings
        self._said: dict[str, WorkerStatus] = {}
        self._dismissed: dict[str, Enrolment] = {}

    async def register(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take in a worker, or a new life of one: what its earlier life held waits again."""
        enrolment = enrolment_of(registration_of(body))
        worker_id = str(enrolment.id)
        known = await self._find_agent(worker_id)
        was_faulty = known is not None and self._is_faulty(known)
        await self._enrol(enrolment)
        if known is None:
            return {"worker_id": worker_id, "status": "registered", "action": "created"}
        return {"worker_id": worker_id, "status": "updated", "action": "recovered" if was_faulty else "updated"}

    async def _enrol(self, enrolment: Enrolment) -> None:
        worker_id = str(enrolment.id)
        self.bridge.claims.reborn(worker_id)
        self._said.pop(worker_id, None)
        self._dismissed.pop(worker_id, None)
        enrolled = await self.fleet.agents.enroll(enrolment, who=WHO)
        if enrolled.agent.state is AgentState.FAULTY:
            await self.fleet.agents.reset(worker_id, who=WHO)

    async def workers(self) -> dict[str, Any]:
        listed = await self.workers_known()
        return {"count": len(listed), "workers": listed}

    async def workers_known(self) -> list[dict[str, Any]]:
        return [self._show_worker(agent) for agent in await self._agents()]

    async def worker(self, worker_id: str) -> dict[str, Any]:
        return self._show_worker(await self._agent(worker_id))

    async def set_status(self, worker_id: str, body: Mapping[str, Any], *, address: str) -> dict[str, Any]:
        try:
            status = WorkerStatus(str(body.get("status")))
        except ValueError as exc:
            raise InputError("Invalid status") from exc
        await self._hear(worker_id, await self._incarnation(worker_id))
        self._said[worker_id] = status
        if status is WorkerStatus.BUSY:
            await self.bridge.worker_is_busy(worker_id, address)
        elif status is WorkerStatus.ACTIVE:
            await self.bridge.worker_is_idle(worker_id)
        elif status is WorkerStatus.FAULTY:
            await self._call_faulty(worker_id)
        return {"worker_id": worker_id, "status": status.value}

    async def heartbeat(self, worker_id: str) -> dict[str, Any]:
        """Note that it lives, with whatever it runs; one that was faulty is trusted again."""
        agent = await self._find_agent(worker_id)
        if agent is None and worker_id in self._dismissed:  # it does not know, and would never register again
            await self._enrol(self._dismissed[worker_id])
        agent = agent or await self._agent(worker_id)
        before = self._status(agent)
        await self._hear(worker_id, agent.incarnation)
        if agent.state is AgentState.FAULTY:
            self._said.pop(worker_id, None)
            await self.fleet.agents.reset(worker_id, who=WHO)
        return {
            "worker_id": worker_id,
            "timestamp": self.fleet.context.clock.now().timestamp(),
            "status": "active",
            "previous_status": before.value,
            "action": "recovered" if before is WorkerStatus.FAULTY else "updated",
        }

    async def worker_health(self, worker_id: str) -> dict[str, Any]:
        return self._health(await self._agent(worker_id))

    async def workers_health(self) -> dict[str, Any]:
        listed = [self._health(agent) for agent in await self._agents()]
        healthy = sum(one["is_healthy"] for one in listed)
        return {"total": len(listed), "healthy": healthy, "unhealthy": len(listed) - healthy, "workers": listed}

    async def reset_worker(self, worker_id: str) -> dict[str, Any]:
        agent = await self._agent(worker_id)
        if not self._is_faulty(agent):
            raise InputError("Worker is not in faulty state")
        self._said.pop(worker_id, None)
        if agent.state in (AgentState.FAULTY, AgentState.LOST, AgentState.STOPPED):
            await self.fleet.agents.reset(worker_id, who=WHO)
        await self._hear(worker_id, agent.incarnation)
        return {"worker_id": worker_id, "status": "active", "message": "Worker reset successfully"}

    async def dismiss(self, worker_id: str) -> None:
        """Forget a worker; its next sign of life brings it back, because nobody can tell it to register."""
        agent = await self._agent(worker_id)
        enrolment = enrolment_of(build_registration(agent.capabilities))
        await self.fleet.agents.remove(worker_id, who=WHO)
        self._said.pop(worker_id, None)
        self._dismissed[worker_id] = enrolment

    def names(self) -> dict[str, str]:
        """Return the names of the workers' devices that are in mind."""
        known_agents = [
            known_agent for known_agent in list(self.fleet.state.agents.values()) if is_worker(known_agent.capabilities)
        ]
        return {
            known_agent.id: build_registration(known_agent.capabilities).device_name for known_agent in known_agents
        }

    # Inside

    async def _incarnation(self, worker_id: str) -> str:
        """Return the life of a worker that is known: as this process has it in mind, or as the database has it."""
        known_agent = self.fleet.state.agents.get(worker_id)
        if known_agent is not None and is_worker(known_agent.capabilities):
            return known_agent.incarnation
        return (await self._agent(worker_id)).incarnation

    async def _hear(self, worker_id: str, incarnation: str) -> None:
        """Renew what it holds; what of it was cancelled ends, because it cannot be told."""
        beat = Heartbeat(incarnation=incarnation, leases=self.bridge.leases_of(worker_id))
        answer = await self.fleet.agents.heartbeat(worker_id, beat, who=WHO)
        await self.bridge.release_cancelled(answer.cancel)

    async def _call_faulty(self, worker_id: str) -> None:
        def act(transaction: Transaction) -> None:
            rows.change(
                transaction.connection, worker_id, state=AgentState.FAULTY.value, reason="the worker reported it"
            )
            transaction.publish("agent", worker_id)

        await self.fleet.context.write(act)
        await self.fleet.agents.load(worker_id)

    async def _agents(self) -> list[Agent]:
        found: list[Agent] = []
        cursor: str | None = None
        while True:
            page = await self.fleet.agents.page(limit=_PAGE, cursor=cursor)
            found += [agent for agent in page.items if is_worker(agent.capabilities)]
            if page.next is None:
                return found
            cursor = page.next

    async def _agent(self, worker_id: str) -> Agent:
        found = await self._find_agent(worker_id)
        if found is None:
            raise NotFoundError("Worker not found")
        return found

    async def _find_agent(self, worker_id: str) -> Agent | None:
        try:
            agent = await self.fleet.agents.get(worker_id)
        except NotFoundError:
            return None
        return agent if is_worker(agent.capabilities) else None

    def _is_faulty(self, agent: Agent) -> bool:
        return is_faulty(agent, now=self.fleet.context.clock.now(), silence_s=self.settings.silence_s)

    def _status(self, agent: Agent) -> WorkerStatus:
        said = self._said.get(agent.id)
        return status_of(agent, said, now=self.fleet.context.clock.now(), silence_s=self.settings.silence_s)

    def _show_worker(self, agent: Agent) -> dict[str, Any]:
        return shown_worker(agent, self._status(agent))

    def _health(self, agent: Agent) -> dict[str, Any]:
        now, silence_s = self.fleet.context.clock.now(), self.settings.silence_s
        return shown_health(agent, self._status(agent), now=now, silence_s=silence_s)
