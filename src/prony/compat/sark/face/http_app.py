"""The ASGI application that answers as SARK does: its paths, its statuses, its words."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from prony.compat.sark.face.orchestrator import Orchestrator
from prony.compat.sark.face.shown import CsvFile
from prony.errors import AccessError, InputError, NotFoundError, PronyError, http_status
from prony.model.access import AuditEntry
from prony.server.auth import address_of, check_is_local
from prony.server.body import JSON_LIMIT, octets
from prony.server.problems import ClientGoneError
from prony.store import audit

_SLASHES = re.compile(r"/{2,}")
# Who did what: not the beats of workers, of which there are thousands.
_RECORDED = frozenset({"reset", "register", "create", "reset_worker"})
_VERSION = "0.1.0"  # of the API that this speaks
_log = structlog.get_logger("prony.server")
Answer = dict[str, Any] | CsvFile
Call = Callable[[Request], Awaitable[Answer]]


def create_sark_app(sark: Orchestrator, *, only_local: bool) -> ASGIApp:
    """Return the face; `only_local`: no name but this machine's loopback and no page of another site may use it."""
    routes = [_route(sark, method, path, name, call) for method, path, name, call in _table(sark)]
    if sark.fleet.context.settings.url:  # where SARK has its dashboard
        routes.append(Route("/", lambda _: RedirectResponse(f"{sark.fleet.context.settings.url}/"), methods=["GET"]))
    errors: Mapping[Any, Any] = {HTTPException: _not_found, Exception: _fault}
    app = Starlette(routes=routes, exception_handlers=errors)
    return _Edge(app, only_local=only_local)


def _table(sark: Orchestrator) -> list[tuple[str, str, str, Call]]:
    """Return every call of SARK's: its method, its path and who answers."""

    def plain(answer: Callable[[], Awaitable[Answer]]) -> Call:
        return lambda _: answer()

    def with_id(answer: Callable[[str], Awaitable[Answer]]) -> Call:
        return lambda request: answer(request.path_params["id"])

    async def index(_: Request) -> Answer:
        return _INDEX

    async def register(request: Request) -> Answer:
        return await sark.workers.register(await _body(request))

    async def create(request: Request) -> Answer:
        return await sark.create(await _body(request))

    async def set_status(request: Request) -> Answer:
        asked = request.path_params["id"], await _body(request)
        return await sark.workers.set_status(*asked, address=address_of(request.scope))

    async def job(request: Request) -> Answer:
        return await sark.job(request.path_params["id"], address=address_of(request.scope))

    return [
        ("GET", "/api", "index", index),
        ("GET", "/api/health", "health", plain(sark.health)),
        ("POST", "/api/reset", "reset", plain(sark.reset)),
        ("POST", "/api/register", "register", register),
        ("GET", "/api/workers", "workers", plain(sark.workers.workers)),
        ("GET", "/api/workers/{id}", "worker", with_id(sark.workers.worker)),
        ("PUT", "/api/workers/{id}/status", "set_status", set_status),
        ("POST", "/api/workers/{id}/heartbeat", "heartbeat", with_id(sark.workers.heartbeat)),
        ("GET", "/api/workers/{id}/health", "worker_health", with_id(sark.workers.worker_health)),
        ("GET", "/api/health/workers", "workers_health", plain(sark.workers.workers_health)),
        ("PUT", "/api/workers/{id}/reset", "reset_worker", with_id(sark.workers.reset_worker)),
        ("POST", "/api/campaigns", "create", create),
        ("GET", "/api/campaigns", "campaigns", plain(sark.campaigns)),
        ("GET", "/api/campaigns/{id}", "campaign", with_id(sark.campaign)),
        ("GET", "/api/campaigns/{id}/results", "campaign_csv", with_id(sark.files.campaign_csv)),
        ("GET", "/api/results/all", "every_csv", plain(sark.files.every_csv)),
        ("GET", "/api/results/files", "files", plain(sark.files.list_files)),
        ("GET", "/api/results/download/{id:path}", "file", with_id(sark.files.file)),
        ("GET", "/api/jobs/{id}", "job", job),
        ("GET", "/api/queue/status", "queue_status", plain(sark.queue_status)),
        ("GET", "/api/monitoring/stats", "stats", plain(sark.stats)),
    ]


_INDEX: dict[str, Any] = {
    "status": "Orchestrator running",
    "version": _VERSION,
    "endpoints": {
        "health": "/api/health",
        "workers": "/api/workers",
        "campaigns": "/api/campaigns",
        "jobs": "/api/jobs/{job_id}",
    },
}


def _route(sark: Orchestrator, method: str, path: str, name: str, call: Call) -> Route:
    async def answer(request: Request) -> Response:
        try:
            found = await call(request)
        except PronyError as exc:
            response = _refusal(exc)
        else:
            response = _csv(found) if isinstance(found, CsvFile) else _json(found)
        if name in _RECORDED:
            await _record(sark, request, name, response.status_code)
        return response

    return Route(path, answer, methods=[method])


async def _body(request: Request) -> dict[str, Any]:
    """Return what a request brings, whatever it says that it is: SARK's own examples send JSON as a form."""
    raw = b"".join([piece async for piece in octets(request, JSON_LIMIT)])
    try:
        found = json.loads(raw)
        # Half a surrogate pair, or a number without end, could be neither stored nor shown again.
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as exc:
        raise InputError("Invalid JSON", hint="send one JSON object") from exc
    if not isinstance(found, dict):
        raise InputError("Invalid JSON", hint="send one JSON object")
    return found


def _json(found: Mapping[str, Any], status: int = 200) -> Response:
    text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Response(text + "\n", status_code=status, media_type="application/json")


def _csv(found: CsvFile) -> Response:
    headers = {"content-disposition": f"attachment; filename={found.name}"}
    return Response(found.text.encode(), media_type="text/csv", headers=headers)


def _refusal(exc: PronyError) -> Response:
    """SARK calls every mistake of a caller 400, but what is not there 404."""
    is_plain = isinstance(exc, InputError) and not isinstance(exc, AccessError | NotFoundError)
    status = 400 if is_plain and exc.code in (InputError.code, "conflict") else http_status(exc)
    hint = {"hint": exc.hint} if exc.hint else {}
    return _json({"error": exc.message} | hint, status)


async def _not_found(_: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    return _json({"error": "Method not allowed" if status == 405 else "Not found"}, status)


async def _fault(_: Request, exc: Exception) -> Response:
    if not isinstance(exc, ClientGoneError):
        _log.error("fault", exc_info=exc)
    return _json({"error": "Internal error; the server's log has it"}, 500)


async def _record(sark: Orchestrator, request: Request, action: str, status: int) -> None:
    """Add to the audit trail what was done, from where: nobody says who they are."""
    entry = AuditEntry(
        id=0, at=sark.fleet.context.clock.now(), who="sark", role="none", action=f"sark_{action}",
        target=str(request.path_params.get("id", "")), address=address_of(request.scope), status=status,
    )  # fmt: skip
    try:
        await sark.fleet.context.write(lambda transaction: audit.add(transaction.connection, entry))
    except PronyError as exc:
        _log.error("audit entry not recorded", error=exc.message, action=entry.action, address=entry.address)


class _Edge:
    """What comes before the routes: doubled slashes are one, and no web page reaches what has no token."""

    def __init__(self, app: ASGIApp, *, only_local: bool) -> None:
        self._app = app
        self._only_local = only_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, download, name = scope["path"].partition("/download/")  # a name is looked at as it came
            path = _SLASHES.sub("/", path) + download + name
            scope = {**scope, "path": path.rstrip("/") or "/", "raw_path": b""}
            try:
                check_is_local(scope, any_host=not self._only_local, takes_tokens=False)
            except AccessError as exc:
                await _refusal(exc)(scope, receive, send)
                return
        await self._app(scope, receive, send)
