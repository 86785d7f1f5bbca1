"""Enrol the agent at its server, keep its capabilities up to date, and drain it at the end."""

from __future__ import annotations

import asyncio
import secrets

from prony.agent.capabilities import CapabilityScanner
from prony.agent.identity import Identity, Slot, agent_name, device_key, new_incarnation
from prony.agent.logs import AgentLog
from prony.agent.server_client import Refused, ask_again_for
from prony.agent.settings import AgentSettings
from prony.agent.target_scanner import TargetScanner
from prony.errors import TransportError
from prony.model.agent import Capabilities, Enrolled, Enrolment
from prony.ports.agent_link import ServerLink

_REFRESH_S = 60.0
_TTL_S = 30.0


class AgentEnrolment:
    """Who this agent is at its server. `given` is the token that its owner gave it, to enrol with.

    Where none was given, that of the server's owner is looked for: the server may have the same home.
    """

    def __init__(
        self,
        slot: Slot,
        link: ServerLink,
        abilities: CapabilityScanner | TargetScanner,
        settings: AgentSettings,
        *,
        given: str | None,
        log: AgentLog,
    ) -> None:
        self.incarnation = new_incarnation()
        self.ttl_s = _TTL_S
        self.metrics_address = ""
        self._slot = slot
        self._link = link
        self._abilities = abilities
        self._settings = settings
        self._given = given
        self._log = log
        self._offered = Capabilities()
        self._looked_s: float | None = None
        self.name = agent_name(slot, settings.device_name or abilities.device_name)
        known = slot.identity()
        self.is_known = known is not None and known.id is not None
        # Chosen here and written down first: if the answer is lost, the next try is no second agent.
        self.identity = known or Identity(server=link.base, id=f"{self.name[:60]}-{secrets.token_hex(4)}")
        self._link.token = self.identity.token or given

    @property
    def id(self) -> str:
        return self.identity.id or ""

    async def look(self) -> None:
        """Find out what this device offers."""
        offered = await asyncio.to_thread(self._abilities.look)
        self._offered = offered.model_copy(update={"metrics_address": self.metrics_address})
        self._looked_s = asyncio.get_running_loop().time()

    async def enroll(self, holding: tuple[str, ...] = ()) -> Enrolled:
        """Introduce this life of the agent, which goes on with the leases of an earlier one that it is `holding`; from
        now on its own token is used, if it got one."""
        await asyncio.to_thread(self._slot.keep, self.identity)
        if self._link.token is None:
            self._link.token = await self._find_owner_token()
        try:
            enrolled = await self._link.enroll(self._enrolment(holding))
        except Refused as exc:
            given = self._given or await self._find_owner_token()
            if exc.status != 401 or not given or self._link.token == given:
                raise
            self._log.warning("the server rejects the stored token; enrolling with the given one")
            self._link.token = given
            enrolled = await self._link.enroll(self._enrolment(holding))
        token = enrolled.token or (self.identity.token if self._link.token == self.identity.token else None)
        self.identity = Identity(server=self.identity.server, id=enrolled.agent.id, token=token)
        await asyncio.to_thread(self._slot.keep, self.identity)
        self._link.token = token or self._given
        self.ttl_s = enrolled.ttl_s
        self.is_known = True
        return enrolled

    async def _find_owner_token(self) -> str | None:
        return await asyncio.to_thread(self._link.find_owner_token, self._abilities.home)

    def _enrolment(self, holding: tuple[str, ...]) -> Enrolment:
        return Enrolment(
            id=self.id,
            name=self.name,
            device_key=device_key(
                self._slot, is_shared=self._settings.share_device or self._settings.target is not None
            ),
            incarnation=self.incarnation,
            capabilities=self._offered,
            holding=holding,
        )

    def close(self) -> None:
        """Look at nothing more: what is being asked of another machine is given up."""
        self._abilities.close()

    async def refresh(self) -> None:
        """Tell the server where something has changed; looked at once a minute at most, between jobs."""
        now_s = asyncio.get_running_loop().time()
        if self._looked_s is not None and now_s - self._looked_s < _REFRESH_S:
            return
        before = self._offered
        await self.look()
        if self._offered == before:
            return
        try:
            await self._link.capabilities(self.id, self._offered)
            self._log.info("reported the changes on this device to the server")
        except (TransportError, Refused):
            self._offered = before  # tried again with the next look

    async def drain(self, most_s: float) -> None:
        """Ask for nothing more; a server that does not hear it will see that nobody asks."""
        try:
            await ask_again_for(lambda: self._link.drain(self.id), most_s)
        except (TransportError, Refused) as exc:
            self._log.debug("could not report the drain", reason=str(exc))
