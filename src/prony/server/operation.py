"""Serve a route as an operation: check the role, bind arguments, render refusals, record the audit trail.

FastAPI describes the operations for OpenAPI; the way from a request to the use case is our own, because agents by the
thousand go it, and the general one costs several times as much.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import structlog
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from prony.errors import NotFoundError, PronyError, StoreError
from prony.model.access import AuditEntry, Principal
from prony.model.base import Noun
from prony.ports.clock import SystemClock
from prony.server.auth import Authenticator, address_of, allow
from prony.server.body import json_body
from prony.server.long_poll import Waits
from prony.server.problems import GONE, ClientGoneError, refusal
from prony.server.query_params import ID_PATTERN, QueryParams, read_query
from prony.store import audit

if TYPE_CHECKING:
    from prony.app.fleet.fleet import Fleet

T = TypeVar("T")
_ID = re.compile(ID_PATTERN)
# Strict for people, lenient for peers: an agent may be newer than its server.
_PEERS = frozenset({"enroll", "heartbeat", "capabilities", "lease", "progress", "meet"})
# Without parameters of their own, these pass over whatever is asked: newer agents, and monitors that add their own.
_ANY_QUERY = _PEERS | {"hand_back", "upload_offset", "clock", "scripts", "health", "metrics", "metrics_targets"}
# Too many to be kept, and nobody's decision; the attempts of a job tell the same.
_UNRECORDED = frozenset(
    {"heartbeat", "progress", "lease", "upload", "finish", "compatibility", "meet", "check", "draft"}
)
_CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_log = structlog.get_logger("prony.server")


def fleet_of(request: Request) -> Fleet:
    fleet: Fleet = request.app.state.fleet
    return fleet


def gate_of(request: Request) -> Authenticator:
    gate: Authenticator = request.app.state.gate
    return gate


def waits_of(request: Request) -> Waits:
    waits: Waits = request.app.state.waits
    return waits


async def while_asked(request: Request, work: Awaitable[T]) -> T:
    """Return what the work returns; it is cancelled where whoever asked goes away before."""
    return await waits_of(request).attend(request.receive, work, till_closing=False)


def who_of(request: Request) -> Principal:
    who: Principal = request.scope["state"]["who"]
    return who


class Operation(APIRoute):
    """A function of the request, with arguments named as in the path, `query` and `body` as their types say."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        hints = get_type_hints(endpoint)
        self._takes_request = "request" in hints
        self._query: type[QueryParams] | None = hints.get("query")
        self._body: type[Noun] | None = hints.get("body")
        self._id = self.operation_id or ""
        self._is_recorded = bool((self.methods or set()) & _CHANGING) and self._id not in _UNRECORDED
        self.app = self.serve

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._answer(request)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            allow(who_of(request), self._id)
            response: Response = await self.endpoint(**await self._arguments(request))
        except ClientGoneError:
            if self._is_recorded:  # it may have been done all the same
                await self._record(request, Response(status_code=GONE))
            raise
        except PronyError as exc:
            response = refusal(exc)
        if self._is_recorded:
            await self._record(request, response)
        return response

    async def _arguments(self, request: Request) -> dict[str, Any]:
        found: dict[str, Any] = {"request": request} if self._takes_request else {}
        ids = request.scope["path_params"]
        if ids:
            for name, value in ids.items():
                if not _ID.fullmatch(value):
                    raise NotFoundError(
                        f"{value[:200]!r} is not a valid {name.replace('_', ' ')}", hint="take it from a list"
                    )
            structlog.contextvars.bind_contextvars(**ids)
            found |= ids
        if self._query is not None:
            found["query"] = read_query(request, self._query)
        elif self._id not in _ANY_QUERY:
            read_query(request, QueryParams)  # refuses whatever there is
        if self._body is not None:
            found["body"] = await json_body(request, self._body, lenient=self._id in _PEERS)
        return found

    async def _record(self, request: Request, response: Response) -> None:
        """Add to the audit trail who did this to what, or was refused it."""
        who = who_of(request)
        made = response.headers.get("location", "").rpartition("/")[2]
        entry = AuditEntry(
            id=0,
            at=SystemClock().now(),
            who=who.name,
            role=who.role.value,
            action=self._id,
            target=made or " ".join(request.scope["path_params"].values()),
            address=address_of(request.scope),
            status=response.status_code,
        )
        try:
            # By the fleet's own writer, with whatever else it commits: a second one would wait for it, and it for them.
            await fleet_of(request).context.write(lambda transaction: audit.add(transaction.connection, entry))
        except StoreError as exc:
            # It has been done all the same; a client that is told otherwise would do it again.
            _log.error("audit entry not recorded", error=exc.message, **entry.model_dump(mode="json", exclude={"id"}))
