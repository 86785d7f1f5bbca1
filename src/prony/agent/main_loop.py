"""Run an agent until it is stopped: hold its slot, handle signals, serve its metrics."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from prony.agent.agent import Agent
from prony.agent.capabilities import CapabilityScanner
from prony.agent.enrolment import AgentEnrolment
from prony.agent.identity import Slot, hold_slot
from prony.agent.logs import Log
from prony.agent.metrics import serve_metrics
from prony.agent.server_client import Refused, ServerClient
from prony.agent.settings import DEFAULT_SERVER, AgentSettings
from prony.client.wire import base_of
from prony.errors import ConflictError
from prony.model.agent import Enrolled
from prony.ports import plugins
from prony.ports.agent_link import AgentLink, ServerLink
from prony.store.home import Home


@dataclass(frozen=True)
class Owner:
    """Where the agent is to live and whom it is to serve. `server` is None where the slot's own is meant."""

    home: Home
    settings: AgentSettings
    server: str | None = None
    token: str | None = None

    @property
    def base(self) -> str | None:
        if self.settings.other_server is not None:
            return self.settings.other_server.base
        return None if self.server is None else base_of(self.server)

    def server_of(self, slot: Slot) -> str:
        """Return the server that was named, or that the slot belongs to, or the one on this machine."""
        known = slot.identity()
        server = self.base or (known.server if known else DEFAULT_SERVER)
        name, _, url = server.partition("+")
        if self.settings.other_server is None and url and name in plugins.find_plugins(plugins.AGENT_LINKS):
            other: AgentLink = plugins.load(plugins.AGENT_LINKS, name)()
            raise ConflictError(f"the agent {slot.name} serves {other.title}", hint=f"{other.option} {url}")
        return server


def connect_slot(owner: Owner, slot: Slot, log: Log) -> AbstractAsyncContextManager[ServerLink]:
    """Return the link to whom the slot serves."""
    if owner.settings.other_server is not None:
        return owner.settings.other_server.connect(slot, log)
    return ServerClient(owner.server_of(slot))


def live(owner: Owner, log: Log) -> None:
    """Be an agent until SIGTERM or SIGINT."""
    with hold_slot(owner.home, server=owner.base, name=owner.settings.name) as slot:
        asyncio.run(_live(owner, slot, log.bound(slot=slot.name)))


async def _live(owner: Owner, slot: Slot, log: Log) -> None:
    settings = owner.settings
    async with AsyncExitStack() as stack:
        link = await stack.enter_async_context(connect_slot(owner, slot, log))
        agent = Agent(slot, owner.home, link, settings, given=owner.token, log=log)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, agent.ask_to_stop)
            stack.callback(loop.remove_signal_handler, number)
        if settings.metrics_port is not None:
            serving = serve_metrics(agent.metrics, settings.metrics_host, settings.metrics_port)
            port = await stack.enter_async_context(serving)
            log.info("metrics", url=f"http://{settings.metrics_host}:{port}/metrics")
        log.info("agent starts", server=link.base, home=str(owner.home.root))
        await agent.run()


def enroll(owner: Owner, log: Log) -> tuple[Slot, Enrolled]:
    """Enrol and write the identity down; return what the server answered. It is not waited for."""
    with hold_slot(owner.home, server=owner.base, name=owner.settings.name) as slot:
        return slot, asyncio.run(_enroll(owner, slot, log))


async def _enroll(owner: Owner, slot: Slot, log: Log) -> Enrolled:
    async with connect_slot(owner, slot, log) as link:
        abilities = CapabilityScanner(owner.home, owner.settings)
        membership = AgentEnrolment(slot, link, abilities, owner.settings, given=owner.token, log=log)
        await membership.look()
        try:
            return await membership.enroll()
        except Refused as exc:
            raise exc.error from exc
