"""Log browsers in by a one-time link, and keep their sessions."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock

from prony.app.access import Access
from prony.errors import AccessError
from prony.model.access import LoginLink, MadeToken, Role
from prony.ports.clock import Clock
from prony.store import tokens

LINK_S = 15 * 60
SESSION_S = 30 * 86400
_MOST_LINKS = 100
_LONGEST_NAME = 90


@dataclass(frozen=True)
class _Open:
    """A link that nobody has followed yet, and who asked for it."""

    name: str
    until_ns: int


class Logins:
    """The links of one server, kept in its memory. A session is a token, so it outlives the server and can be revoked.

    Whoever has a link is an admin, and only an admin is given one.
    """

    def __init__(self, access: Access, clock: Clock, *, public_url: str = "") -> None:
        self._access = access
        self._clock = clock
        self._public_url = public_url.rstrip("/")
        self._lock = Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()

    def make_link(self, name: str) -> LoginLink:
        """Return a link for whoever is called so; the oldest is forgotten where there are very many."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            self._open[tokens.hash_secret(code)] = _Open(name, self._clock.monotonic_ns() + LINK_S * 10**9)
            if len(self._open) > _MOST_LINKS:
                self._open.popitem(last=False)
        path = f"/login?code={code}"
        return LoginLink(
            path=path,
            url=self._public_url and self._public_url + path,
            expires_at=self._clock.now() + timedelta(seconds=LINK_S),
        )

    def redeem(self, code: str) -> MadeToken:
        """Return a session for a link's code, which is used up by this."""
        with self._lock:
            found = self._open.pop(tokens.hash_secret(code), None)
        if found is None or found.until_ns <= self._clock.monotonic_ns():
            raise AccessError(
                "this link was used already, or it has expired",
                hint="`prony server link` on the server's machine prints a new one",
                code="unauthorized",
            )
        name = f"{found.name[:_LONGEST_NAME]}-browser"
        return self._access.add_session(name, Role.ADMIN, SESSION_S)
