"""The fleet as a whole over HTTP: what waits and why, who could run a recipe, how it all stands."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from prony.model.agent import ScrapeTarget
from prony.model.experiment_data import StoreCheck
from prony.model.failures import FailureReport
from prony.model.gang import ClockReading
from prony.model.queue import Compatibility, Health, Queue, Stats, Submission
from prony.server.body import header
from prony.server.events import EventStream
from prony.server.metrics import Metrics
from prony.server.openapi import text
from prony.server.operation import Operation, fleet_of, waits_of, while_asked
from prony.server.query_params import LAST_EVENT_ID, FailuresAsked
from prony.server.responses import answer, respond_tagged
from prony.store.owner_token import CHALLENGE, PROOF, prove

_LONGEST_NONCE = 200

router = APIRouter(tags=["fleet"], route_class=Operation)


@router.post(
    "/api/v1/compatibility", operation_id="compatibility", response_model=Compatibility,
    summary="List agents that could run a recipe",
)  # fmt: skip
async def compatibility(request: Request, body: Submission) -> Response:
    """For each agent and kind of job: whether it fits, or what it lacks. Nothing is stored."""
    return answer(await while_asked(request, fleet_of(request).recipes.compatibility(body)))


@router.get("/api/v1/queue", operation_id="queue", response_model=Queue, summary="List waiting jobs and reasons")
async def queue(request: Request) -> Response:
    """Groups of waiting or leased jobs, in the order in which they are served."""
    return respond_tagged(request, await fleet_of(request).queries.queue())


@router.get("/api/v1/failures", operation_id="failures", response_model=FailureReport, summary="Get failures by cause")
async def failures(request: Request, query: Annotated[FailuresAsked, Query()]) -> Response:
    """Failed results and lost leases of the last `days`, with the agents, recipes and days of each cause."""
    return answer(await fleet_of(request).jobs.failures(days=query.days))


@router.post(
    "/api/v1/store/check", operation_id="check_store", response_model=StoreCheck, summary="Check stored results"
)
async def check_store(request: Request) -> Response:
    """Checks every sample file against its checksum, as `prony doctor --store`. Takes minutes for many results."""
    return answer(await while_asked(request, fleet_of(request).results.check_store()))


@router.get(
    "/api/v1/events", operation_id="events", response_class=Response, summary="Follow changes",
    responses={200: text("text/event-stream", of="events `changed`, with JSON, and `anew`: anything may have changed")},
    openapi_extra=LAST_EVENT_ID,
)  # fmt: skip
async def events(request: Request) -> Response:
    """Names what changed (experiments, agents and more), without the new state. The stream does not end."""
    source = fleet_of(request).events.follow(header(request.scope, b"last-event-id")[:100].decode("latin-1"))
    return EventStream(await anext(source), source, waits_of(request))


@router.get("/api/v1/clock", operation_id="clock", response_model=ClockReading, summary="Get the server's clock")
async def clock() -> Response:
    """The server's monotonic clock: agents that run a job together use it to start at once."""
    received_ns = time.perf_counter_ns()
    return answer(ClockReading(received_ns=received_ns, answered_ns=time.perf_counter_ns()))


@router.get("/api/v1/stats", operation_id="stats", response_model=Stats, summary="Get counts of jobs and agents")
async def stats(request: Request) -> Response:
    """Jobs and agents by state, and how long the oldest have waited."""
    return respond_tagged(request, await fleet_of(request).queries.stats())


@router.get(
    "/api/v1/health", operation_id="health", response_model=Health, summary="Get the server's health",
    responses={503: {"model": Health, "description": "a part of the server fails"}},
)  # fmt: skip
async def health(request: Request) -> Response:
    """Checks each part. Needs no token."""
    found = await fleet_of(request).health.check()
    return answer(found, 200 if found.ok else 503, _proof(request))


def _proof(request: Request) -> dict[str, str]:
    """Prove to a command of the server's own user that this is the server to which it may send the owner's token."""
    nonce = header(request.scope, CHALLENGE.lower().encode()).decode("latin-1")
    secret: str = request.app.state.owner_token
    here = request.scope.get("server")
    if not nonce or not secret or here is None or here[1] is None:
        return {}
    return {PROOF: prove(secret, nonce[:_LONGEST_NONCE], here[0], here[1])}


@router.get(
    "/metrics", operation_id="metrics", response_class=Response, summary="Get metrics for Prometheus",
    responses={200: text("text/plain", of="figures in Prometheus' text format")},
)  # fmt: skip
async def metrics(request: Request) -> Response:
    """Queue, agents, devices, running jobs, the newest results, requests and their durations."""
    counted: Metrics = request.app.state.metrics
    return Response(await counted.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get(
    "/metrics/targets", operation_id="metrics_targets", response_model=tuple[ScrapeTarget, ...],
    summary="Get the agents for Prometheus to read",
)  # fmt: skip
async def metrics_targets(request: Request) -> Response:
    """The agents that serve their own metrics, in the format of Prometheus' HTTP service discovery."""
    found = TypeAdapter(tuple[ScrapeTarget, ...]).dump_json(fleet_of(request).agents.scrape_targets())
    return Response(found, media_type="application/json")
