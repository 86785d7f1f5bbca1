"""Who may do what: roles, tokens without their secrets, and the trail of what was done."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from prony.model.agent import Name
from prony.model.base import Noun


class Role(StrEnum):
    """An admin may do everything, a submitter what a viewer may and run recipes, an agent only its own work."""

    ADMIN = "admin"
    SUBMITTER = "submitter"
    VIEWER = "viewer"
    AGENT = "agent"


class Principal(Noun):
    """Who asks: a token's name and role; `agent_id` for an agent's own token. `once`: it only enrols, one time."""

    name: str
    role: Role
    token_id: str | None = None
    agent_id: str | None = None
    once: bool = False


class NewToken(Noun):
    """`once` makes an enrolment token: it turns into the agent's own token at its first use."""

    name: Name
    role: Role
    once: bool = False
    expires_in_s: Annotated[float, Field(gt=0, le=10 * 366 * 86400, allow_inf_nan=False)] | None = None


class Token(Noun):
    """A token without its secret. `once`: it only enrols, one time."""

    id: str
    name: str
    role: Role
    once: bool = False
    agent_id: str | None = None
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


class MadeToken(Noun):
    """The secret is told this one time; the server keeps only its hash."""

    token: Token
    secret: str


class LoginLink(Noun):
    """Where a browser logs in, one time: `path` follows the server's address, and `url` is the whole of it where the
    server was told by which address others reach it."""

    path: str
    url: str = ""
    expires_at: datetime

    def at(self, address: str) -> str:
        """Return the whole link, for who reaches the server by this address where no other is known."""
        return self.url or address + self.path


class AuditEntry(Noun):
    """What somebody changed through the API, and how the server answered."""

    id: int
    at: datetime
    who: str
    role: str
    action: str
    target: str = ""
    address: str = ""
    status: int
