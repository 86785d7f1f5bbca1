"""Operations on the server itself: what waits, who could run it, how it is, who may use it."""

from __future__ import annotations

from collections.abc import Iterator

from prony.client import wire
from prony.client.connection import Call
from prony.client.request_shapes import Asking
from prony.client.watching import changes
from prony.model.about import About
from prony.model.access import AuditEntry, LoginLink, MadeToken, NewToken, Token
from prony.model.event import Changed
from prony.model.gang import ClockReading
from prony.model.queue import Compatibility, Health, Page, Queue, Stats, Submission


class House(Asking):
    def compatibility(self, submission: Submission) -> Compatibility:
        """Say which agents could run a recipe, and what each of the others lacks; nothing is submitted."""
        return self._send(Compatibility, "POST", "compatibility", body=submission)

    def events(self) -> Iterator[Changed | None]:
        """Yield what changes anywhere, until the connection is lost; None: anything may have changed."""
        return changes(self._connection)

    def queue(self) -> Queue:
        return self._get(Queue, "queue")

    def health(self) -> Health:
        """Say which parts of the server work; an answer of one that fails is an answer too."""
        call = Call("GET", ("health",), is_safe=True, expected=frozenset({503}))
        return wire.read(Health, self._connection.send(call).content, self._connection.base)

    def clock(self) -> ClockReading:
        """Return what the server's monotonic clock says."""
        return self._get(ClockReading, "clock")

    def about(self) -> About:
        """Return what the server is, and who we are to it."""
        return self._get(About, "about")

    def stats(self) -> Stats:
        return self._get(Stats, "stats")

    def add_token(self, token: NewToken) -> MadeToken:
        """Make a token; its secret is in this answer and never again."""
        return self._send(MadeToken, "POST", "tokens", body=token)

    def tokens(self, *, limit: int = 100, cursor: str | None = None) -> Page[Token]:
        return self._get(Page[Token], "tokens", limit=limit, cursor=cursor)

    def revoke_token(self, token_id: str) -> None:
        self._do("DELETE", "tokens", token_id)

    def login_link(self) -> LoginLink:
        """Make a link that logs a browser in, one time."""
        return self._send(LoginLink, "POST", "login-links")

    def audit(self, *, limit: int = 100, cursor: str | None = None) -> Page[AuditEntry]:
        return self._get(Page[AuditEntry], "audit", limit=limit, cursor=cursor)
