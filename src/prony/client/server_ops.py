"""The server itself: what waits there, how it is, what changes; and the tokens of those who may use it."""

from __future__ import annotations

from collections.abc import Iterator

from prony.client import wire
from prony.client.connection import ApiCall, ApiRequests
from prony.client.watching import watch_changes
from prony.model.access import AuditEntry, LoginLink, MadeToken, NewToken, Token
from prony.model.event import Changed
from prony.model.experiment_data import StoreCheck
from prony.model.gang import ClockReading
from prony.model.listing import About
from prony.model.queue import Health, Page, Queue, Stats


class RemoteServer:
    """The server as a whole."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests
        self._connection = requests.connection

    def events(self) -> Iterator[Changed | None]:
        """Yield what changes anywhere, until the connection is lost; None: anything may have changed."""
        return watch_changes(self._connection)

    def queue(self) -> Queue:
        """Return what waits, and why."""
        return self._requests.get(Queue, "queue")

    def health(self) -> Health:
        """Say which parts of the server work; an answer of one that fails is an answer too."""
        call = ApiCall("GET", ("health",), is_safe=True, expected=frozenset({503}))
        return wire.read_answer(Health, self._connection.send(call).content, self._connection.base)

    def clock(self) -> ClockReading:
        """Return what the server's monotonic clock says."""
        return self._requests.get(ClockReading, "clock")

    def about(self) -> About:
        """Return what the server is, and who we are to it."""
        return self._requests.get(About, "about")

    def stats(self) -> Stats:
        """Return how many jobs, agents and experiments there are."""
        return self._requests.get(Stats, "stats")

    def check_store(self) -> StoreCheck:
        """Have the server hold every stored sample file against its checksum."""
        return self._requests.send(StoreCheck, "POST", "store", "check")

    def login_link(self) -> LoginLink:
        """Make a link that logs a browser in, one time."""
        return self._requests.send(LoginLink, "POST", "login-links")


class RemoteTokens:
    """Tokens, by which a server knows who asks, and the trail of what they did."""

    def __init__(self, requests: ApiRequests) -> None:
        self._requests = requests

    def add(self, token: NewToken) -> MadeToken:
        """Make a token; its secret is in this answer and never again."""
        return self._requests.send(MadeToken, "POST", "tokens", body=token)

    def page(self, *, limit: int = 100, cursor: str | None = None) -> Page[Token]:
        """Return tokens without their secrets, the newest first."""
        return self._requests.get(Page[Token], "tokens", limit=limit, cursor=cursor)

    def revoke(self, token_id: str) -> None:
        """End a token."""
        self._requests.do("DELETE", "tokens", token_id)

    def audit(self, *, limit: int = 100, cursor: str | None = None) -> Page[AuditEntry]:
        """Return who did what, the newest first."""
        return self._requests.get(Page[AuditEntry], "audit", limit=limit, cursor=cursor)
