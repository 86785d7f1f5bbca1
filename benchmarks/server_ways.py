"""Serve four operations of one fleet in three ways: Prony's own, FastAPI's, and FastAPI's with answers made by hand.

All three stand behind the same edge (request ids, authentication, headers, counts) in one process. The header
`Prony-Way` of a request says which of them answers it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

import uvicorn
import uvloop
from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from prony.app.access import require_agent
from prony.app.fleet.context import FleetSettings
from prony.app.fleet.fleet import Fleet
from prony.errors import NotFoundError, PronyError
from prony.model.access import AuditEntry, Principal
from prony.model.agent import Heartbeat, HeartbeatAnswer
from prony.model.queue import JobBatch, JobBatchAnswer, JobDetail, Page, QueuedJob
from prony.ports.clock import SystemClock
from prony.server.app import create_app
from prony.server.auth import Authenticator, address_of, allow
from prony.server.body import header
from prony.server.forwarded import Proxies
from prony.server.login import LoginPages
from prony.server.middleware import Edge
from prony.server.operation import fleet_of, who_of
from prony.server.problems import RequestError, refusal
from prony.server.protocol import count_connections, protocol_for
from prony.server.query_params import Id, JobsAsked
from prony.server.responses import answer, respond_tagged
from prony.store import audit
from prony.store.home import Home

OURS, NOUNS, RESPONSES = "ours", "fastapi", "fastapi-responses"
WAYS = (OURS, NOUNS, RESPONSES)
_PREFIX = "/api/v1"
_RECORDED = frozenset({"batch"})


async def _fleet(request: Request) -> Fleet:
    """Not a plain function: FastAPI would call that in a thread."""
    return fleet_of(request)


FleetNow = Annotated[Fleet, Depends(_fleet)]
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class RefusingRoute(APIRoute):
    """FastAPI's own seam for what surrounds an operation: refusals as problem documents, and the audit trail."""

    def get_route_handler(self) -> Handler:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                response = await handler(request)
            except RequestValidationError as exc:
                response = refusal(_first_problem(exc))
            except PronyError as exc:
                response = refusal(exc)
            if self.operation_id in _RECORDED:
                await _record(request, self.operation_id or "", response)
            return response

        return handle


def _first_problem(error: RequestValidationError) -> RequestError:
    first, *_ = error.errors()
    return RequestError(f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")


async def _record(request: Request, action: str, response: Response) -> None:
    who = who_of(request)
    entry = AuditEntry(
        id=0, at=SystemClock().now(), who=who.name, role=who.role.value, action=action,
        target=" ".join(request.path_params.values()), address=address_of(request.scope), status=response.status_code,
    )  # fmt: skip
    await fleet_of(request).context.write(lambda transaction: audit.add(transaction.connection, entry))


def _allowed(operation: str) -> Any:
    async def check(request: Request) -> Principal:
        who = who_of(request)
        allow(who, operation)
        return who

    return Depends(check)


def _routes_of_nouns() -> APIRouter:
    """Return operations that return nouns, as FastAPI's tutorial has them; FastAPI checks and writes them."""
    router = APIRouter(prefix=_PREFIX, route_class=RefusingRoute)

    @router.post("/agents/{agent_id}/heartbeat", operation_id="heartbeat", response_model=HeartbeatAnswer)
    async def heartbeat(
        fleet: FleetNow, agent_id: Id, body: Heartbeat, who: Annotated[Principal, _allowed("heartbeat")]
    ) -> HeartbeatAnswer:
        require_agent(who, agent_id)
        return await fleet.agents.heartbeat(agent_id, body, who=who)

    @router.get("/jobs", operation_id="jobs", response_model=Page[QueuedJob], dependencies=[_allowed("jobs")])
    async def jobs(fleet: FleetNow, query: Annotated[JobsAsked, Query()]) -> Page[QueuedJob]:
        return await _page(fleet, query)

    @router.get("/jobs/{job_id}", operation_id="job", response_model=JobDetail, dependencies=[_allowed("job")])
    async def job(fleet: FleetNow, job_id: Id) -> JobDetail:
        return await fleet.jobs.get(job_id)

    @router.post("/jobs/batch", operation_id="batch", response_model=JobBatchAnswer)
    async def batch(fleet: FleetNow, body: JobBatch, who: Annotated[Principal, _allowed("batch")]) -> JobBatchAnswer:
        return await fleet.jobs.batch(body, who=who)

    return router


def _routes_of_responses() -> APIRouter:
    """Return operations that FastAPI finds and binds, and that write their answers as Prony's own do."""
    router = APIRouter(prefix=_PREFIX, route_class=RefusingRoute)

    @router.post("/agents/{agent_id}/heartbeat", operation_id="heartbeat", response_model=HeartbeatAnswer)
    async def heartbeat(
        fleet: FleetNow, agent_id: Id, body: Heartbeat, who: Annotated[Principal, _allowed("heartbeat")]
    ) -> Response:
        require_agent(who, agent_id)
        return answer(await fleet.agents.heartbeat(agent_id, body, who=who))

    @router.get("/jobs", operation_id="jobs", response_model=Page[QueuedJob], dependencies=[_allowed("jobs")])
    async def jobs(request: Request, fleet: FleetNow, query: Annotated[JobsAsked, Query()]) -> Response:
        return respond_tagged(request, await _page(fleet, query))

    @router.get("/jobs/{job_id}", operation_id="job", response_model=JobDetail, dependencies=[_allowed("job")])
    async def job(request: Request, fleet: FleetNow, job_id: Id) -> Response:
        return respond_tagged(request, await fleet.jobs.get(job_id))

    @router.post("/jobs/batch", operation_id="batch", response_model=JobBatchAnswer)
    async def batch(fleet: FleetNow, body: JobBatch, who: Annotated[Principal, _allowed("batch")]) -> Response:
        return answer(await fleet.jobs.batch(body, who=who))

    return router


async def _page(fleet: Fleet, query: JobsAsked) -> Page[QueuedJob]:
    return await fleet.jobs.page(
        state=query.state, experiment=query.experiment, agent=query.agent, label=query.label_pair,
        limit=query.limit, cursor=query.cursor,
    )  # fmt: skip


class _Found:
    """What the edge asks for an operation: here all of FastAPI's own application."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def find(self, _: Scope) -> _Found:
        return self

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _add_others(router: APIRouter, ours: FastAPI) -> None:
    """Let a request pass as many routes, in the same order, as if FastAPI served every operation."""
    places: dict[str | None, int] = {}
    for place, operation in enumerate(one for one in ours.routes if isinstance(one, APIRoute)):
        places[operation.operation_id] = place
    served = {route.operation_id for route in router.routes if isinstance(route, APIRoute)}
    for operation in [one for one in ours.routes if isinstance(one, APIRoute)]:
        if operation.operation_id not in served and operation.path.startswith(_PREFIX):
            path, methods = operation.path.removeprefix(_PREFIX), list(operation.methods or ())
            router.add_api_route(path, _elsewhere, methods=methods, operation_id=operation.operation_id)
    router.routes.sort(key=lambda route: places[getattr(route, "operation_id", None)])


async def _elsewhere() -> Response:
    raise NotFoundError("this operation is not measured")


def _plain_edge(ours: FastAPI, router: APIRouter, *, few_routes: bool) -> Edge:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.fleet = ours.state.fleet
    if not few_routes:
        _add_others(router, ours)
    app.include_router(router)

    @app.exception_handler(404)
    async def nothing_there(request: Request, _: Exception) -> Response:
        return refusal(NotFoundError(f"there is nothing at {request.url.path[:200]}"))

    gate = Authenticator(ours.state.fleet.access, is_open=True)
    login = LoginPages(ours.state.fleet, gate, ours.state.logins)
    return Edge(gate, ours.state.metrics, _Found(app), login=login, proxies=Proxies(()))  # type: ignore[arg-type]


class Ways:
    """The application: each request goes the way that its header names."""

    def __init__(self, fleet: Fleet, *, few_routes: bool) -> None:
        ours = create_app(fleet, open_to_all=True)
        self._ways: dict[bytes, Callable[[Scope, Receive, Send], Awaitable[None]]] = {
            b"": ours,
            OURS.encode(): ours,
            NOUNS.encode(): _plain_edge(ours, _routes_of_nouns(), few_routes=few_routes),
            RESPONSES.encode(): _plain_edge(ours, _routes_of_responses(), few_routes=few_routes),
        }
        self.close = ours.state.waits.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._ways[header(scope, b"prony-way")](scope, receive, send)


async def serve(home: Path, *, few_routes: bool) -> None:
    """Serve a fleet until the process is ended; `server.json` in its home says where."""
    fleet = Fleet.open(Home(home).create(), url="", settings=FleetSettings(asks_tokens=False))
    ways = Ways(fleet, few_routes=few_routes)
    await fleet.start()
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    config = uvicorn.Config(
        ways, http=protocol_for(count_connections()), ws="none", lifespan="off", log_config=None, access_log=False,
        proxy_headers=False, server_header=False,
    )  # fmt: skip
    fresh = home / "server.json.new"
    fresh.write_text(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}))
    fresh.replace(home / "server.json")
    try:
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        ways.close()
        await fleet.stop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Path(sys.argv[1]), few_routes="few" in sys.argv[2:]))
