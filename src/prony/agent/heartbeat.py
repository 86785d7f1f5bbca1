"""Send heartbeats to the server every few seconds and handle its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prony.agent.logs import AgentLog
from prony.agent.metrics import AgentMetrics
from prony.agent.server_client import Refused
from prony.client.wire import delays
from prony.errors import TransportError
from prony.model.agent import Heartbeat, HeartbeatAnswer
from prony.ports.agent_link import ServerLink

_MOST_S = 2.0
_LONGEST_PAUSE_S = 30.0


class Heartbeats:
    """`say` returns what to tell, None while a long poll tells it; `hear` is called with the answer.

    `dismissed` is called when the server knows this agent, or this life of it, no more.
    """

    def __init__(
        self,
        link: ServerLink,
        *,
        say: Callable[[], Heartbeat | None],
        hear: Callable[[HeartbeatAnswer], None],
        dismissed: Callable[[Refused], None],
        metrics: AgentMetrics,
        log: AgentLog,
    ) -> None:
        self._link = link
        self._say = say
        self._hear = hear
        self._dismissed = dismissed
        self._metrics = metrics
        self._log = log
        self._is_connected: bool | None = None

    async def run(self, agent_id: Callable[[], str], ttl_s: Callable[[], float]) -> None:
        """Beat for as long as this is not cancelled. A server that is away is asked more seldom, but a lease that it
        still honours when it is back must not run out before it is asked again."""
        pauses = None
        while True:
            period_s = min(ttl_s() / 6, _MOST_S)
            if await self.beat(agent_id()):
                pauses = None
                await asyncio.sleep(period_s)
            else:
                pauses = pauses or delays(period_s, max(period_s, min(_LONGEST_PAUSE_S, ttl_s() / 4)))
                await asyncio.sleep(next(pauses))

    async def beat(self, agent_id: str) -> bool:
        """Give one sign of life; False where it was not heard."""
        heartbeat = self._say()
        if heartbeat is None:
            return True
        try:
            answer = await self._link.heartbeat(agent_id, heartbeat)
        except TransportError as exc:
            self.lost(exc.message)
            return False
        except Refused as exc:
            self._handle_refusal(exc)
            return False
        self.note_contact()
        self._hear(answer)
        return True

    def _handle_refusal(self, refused: Refused) -> None:
        if refused.is_dismissal:
            self._dismissed(refused)
        else:
            self._log.warning("heartbeat refused", reason=refused.error.message, hint=refused.error.hint)

    def note_contact(self) -> None:
        """The server answered, to whatever it was."""
        if self._is_connected is False:
            self._log.info("the server is back", server=self._link.base)
        self._is_connected = True
        self._metrics.set("connected", 1)

    def lost(self, reason: str) -> None:
        """The server did not answer."""
        self._metrics.count("unreachable_total")
        self._metrics.set("connected", 0)
        if self._is_connected is not False:
            self._log.warning("the server does not answer; still trying", server=self._link.base, reason=reason)
        self._is_connected = False
