"""Edge middleware: give every answer an id, safe headers, a count and a log line."""

from __future__ import annotations

import logging
import re
import secrets
import time

import structlog
from starlette.types import Message, Receive, Scope, Send

from prony.errors import AccessError, PronyError
from prony.ports.tracing import TRACEPARENT, set_trace
from prony.server import web
from prony.server.auth import Authenticator, address_of
from prony.server.body import header
from prony.server.forwarded import Proxies
from prony.server.login import LoginPages
from prony.server.metrics import Metrics
from prony.server.problems import GONE, ClientGoneError, fault, refusal
from prony.server.router import Directory

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
HEADERS: dict[bytes, bytes] = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
}
_log = structlog.get_logger("prony.server")
_lines = logging.getLogger("prony.server")


class Edge:
    """The outermost of our own layers: whatever happens inside, a client gets an answer that tells nothing of it."""

    def __init__(
        self, gate: Authenticator, metrics: Metrics, directory: Directory, *, login: LoginPages, proxies: Proxies
    ) -> None:
        self._gate = gate
        self._metrics = metrics
        self._directory = directory
        self._login = login
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin = time.perf_counter()
        self._proxies.resolve(scope)
        answer = _Answer(send, _request_id(scope))
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=answer.request_id)
        set_trace(header(scope, TRACEPARENT.encode()).decode("latin-1"))
        try:
            await self._answer(scope, receive, answer)
        finally:
            self._note(scope, answer.status or GONE, time.perf_counter() - begin)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            if self._login.is_mine(scope):
                await self._login.serve(scope, receive, answer.send)
                return
            if web.is_page(scope):
                await web.serve(scope, receive, answer.send)
                return
            scope.setdefault("state", {})["who"] = await self._gate.admit(scope)
            await self._directory.find(scope).serve(scope, receive, answer.send)
        except ClientGoneError:
            return
        except PronyError as exc:  # the gate's or the directory's: an operation renders its own
            if isinstance(exc, AccessError):
                _log.warning("refused", code=exc.code, address=address_of(scope))
            await refusal(exc)(scope, receive, answer.send)
        except Exception as exc:
            _log.error("fault", exc_info=exc)
            if answer.status is None:
                await fault()(scope, receive, answer.send)
                return
            # Half an answer is out: only closing the connection tells that it is not whole.
            raise

    def _note(self, scope: Scope, status: int, took_s: float) -> None:
        operation = getattr(scope.get("route"), "operation_id", None) or "other"
        self._metrics.count_answer(operation, status, took_s)
        if _lines.isEnabledFor(logging.DEBUG):
            _log.debug("request", operation=operation, status=status, took_ms=round(took_s * 1000, 2),
                       method=scope["method"], address=address_of(scope))  # fmt: skip


class _Answer:
    """What goes out, and what is known of it."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self.request_id = request_id
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            headers = list(message["headers"])
            said = {name for name, _ in headers}
            headers += [pair for pair in HEADERS.items() if pair[0] not in said]
            headers.append((b"x-request-id", self.request_id.encode()))
            message = {**message, "headers": headers}
        await self._send(message)


def _request_id(scope: Scope) -> str:
    """Return the client's own id of this request, where it has a sane one."""
    said = header(scope, b"x-request-id")
    return said.decode() if _REQUEST_ID.fullmatch(said) else secrets.token_hex(8)
