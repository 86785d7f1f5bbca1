"""The two addresses of a browser's session: `/login` turns a link into one, `/logout` ends it."""

from __future__ import annotations

from html import escape
from urllib.parse import parse_qs

import structlog
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from prony.app.fleet.fleet import Fleet
from prony.app.login import Logins
from prony.errors import AccessError, StoreError
from prony.model.access import AuditEntry
from prony.server.auth import Authenticator, address_of
from prony.server.session import read_session, session_cookie
from prony.server.web import POLICY
from prony.store import audit

LOGIN, LOGOUT = "/login", "/logout"
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Prony: log in</title></head>
<body>
<h1>Not logged in</h1>
<p>{message}.</p>
<p>{hint}. Or <a href="/">paste a token</a>.</p>
</body>
</html>
"""
_log = structlog.get_logger("prony.server")


class LoginPages:
    def __init__(self, fleet: Fleet, gate: Authenticator, logins: Logins) -> None:
        self._fleet = fleet
        self._gate = gate
        self._logins = logins

    def is_mine(self, scope: Scope) -> bool:
        """Does this ask to log in or out? A preview that asks for a head alone does not use a link up."""
        return (scope["method"], scope["path"]) in (("GET", LOGIN), ("POST", LOGOUT))

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._log_in if scope["path"] == LOGIN else self._log_out
        response = await answer(scope)
        await response(scope, receive, send)

    async def _log_in(self, scope: Scope) -> Response:
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        code = asked.get("code", [""])[0]
        if not code:
            return RedirectResponse("/", status_code=303)
        try:
            made = await self._gate.blocking(self._logins.redeem, code)
        except AccessError as exc:
            _log.warning("refused", code=exc.code, address=address_of(scope), reason="login link")
            page = _PAGE.format(message=escape(exc.message.capitalize()), hint=escape(exc.hint))
            headers = {"Content-Security-Policy": POLICY}
            return Response(page, status_code=403, media_type="text/html", headers=headers)
        await self._record(scope, made.token.name, made.token.role.value, "log_in")
        return RedirectResponse("/", status_code=303, headers={"Set-Cookie": session_cookie(scope, made.secret)})

    async def _log_out(self, scope: Scope) -> Response:
        if read_session(scope):
            await self._end_session(scope)
        return Response(status_code=204, headers={"Set-Cookie": session_cookie(scope, "")})

    async def _end_session(self, scope: Scope) -> None:
        try:
            who = await self._gate.admit_session(scope)
        except AccessError as exc:
            if exc.code != "unauthorized":
                raise
            return  # it has ended already
        if who.token_id is not None:
            await self._gate.blocking(self._gate.access.revoke_token, who.token_id)
            self._gate.forget()
            await self._record(scope, who.name, who.role.value, "log_out")

    async def _record(self, scope: Scope, who: str, role: str, action: str) -> None:
        entry = AuditEntry(
            id=0,
            at=self._fleet.context.clock.now(),
            who=who,
            role=role,
            action=action,
            address=address_of(scope),
            status=200,
        )
        try:
            await self._fleet.context.write(lambda transaction: audit.add(transaction.connection, entry))
        except StoreError as exc:
            _log.error("audit entry not recorded", error=exc.message, **entry.model_dump(mode="json", exclude={"id"}))
