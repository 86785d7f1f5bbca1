"""Leases over HTTP: an agent asks for a job, tells how it goes, brings the result or gives it back."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

import structlog
from fastapi import APIRouter, Query
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from prony.app.access import require_agent
from prony.app.fleet.closing import ClosingError
from prony.model.gang import Meeting, Met
from prony.model.lease import FinishAnswer, Lease, LeaseRequest, LeaseView, Progress, ProgressAnswer, UploadState
from prony.server.body import header, octets, require_length
from prony.server.openapi import octets_body
from prony.server.operation import Operation, fleet_of, waits_of, who_of
from prony.server.problems import RequestError
from prony.server.query_params import FinishAsked, HandBackAsked, Id, UploadAsked, parameter
from prony.server.responses import JSON, answer, nothing

router = APIRouter(prefix="/api/v1/leases", tags=["leases"], route_class=Operation)

_VIEWS = TypeAdapter(tuple[LeaseView, ...])
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FINISH = parameter(
    "Prony-Sha256", "SHA-256 of the whole tar", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, required=True
) | octets_body("application/x-tar", "the files of the result folder as a plain tar; empty if it was uploaded before")


@router.post(
    "", operation_id="lease", response_model=Lease, summary="Ask for a job",
    responses={204: {"description": "no job within the wait"}},
)  # fmt: skip
async def lease(request: Request, body: LeaseRequest) -> Response:
    """Waits up to `wait_s` for one that fits. A client that disconnects meanwhile gets none."""
    structlog.contextvars.bind_contextvars(agent_id=body.agent_id)
    who = who_of(request)
    require_agent(who, body.agent_id)
    work = fleet_of(request).leases.acquire(body, who=who)
    try:
        found = await (waits_of(request).attend(request.receive, work) if body.wait_s else work)
    except ClosingError:
        return nothing()
    return nothing() if found is None else _lent(answer(found), found)


@router.post("/{lease_id}/progress", operation_id="progress", response_model=ProgressAnswer, summary="Report progress")
async def progress(request: Request, lease_id: Id, body: Progress) -> Response:
    """Renews the lease; the answer says whether the job is to be stopped."""
    _name(request, lease_id)
    return answer(await fleet_of(request).leases.renew(lease_id, body, who=who_of(request)))


@router.post(
    "/{lease_id}/meeting", operation_id="meet", response_model=Met, summary="Wait for the other agents of a job",
    responses={204: {"description": "not all agents have arrived yet: ask again"}},
)  # fmt: skip
async def meet(request: Request, lease_id: Id, body: Meeting) -> Response:
    """Waits up to `wait_s` until every agent that runs the same job has reached the meeting of this name."""
    _name(request, lease_id)
    work = fleet_of(request).gangs.meet(lease_id, body, who=who_of(request))
    try:
        met = await (waits_of(request).attend(request.receive, work) if body.wait_s else work)
    except ClosingError:
        return nothing()
    return nothing() if met is None else answer(met)


@router.put(
    "/{lease_id}/result", operation_id="finish", response_model=FinishAnswer, openapi_extra=_FINISH,
    summary="Upload the result",
)  # fmt: skip
async def finish(request: Request, lease_id: Id, query: Annotated[FinishAsked, Query()]) -> Response:
    """After the answer the result is stored. Sending it again does no harm."""
    fleet = fleet_of(request)
    _name(request, lease_id)
    sha256 = header(request.scope, b"prony-sha256").decode("latin-1").lower()
    if not _SHA256.fullmatch(sha256):
        raise RequestError(
            "Prony-Sha256 must be the SHA-256 of the tar, 64 hexadecimal digits",
            field="Prony-Sha256", hint="send it as a header of the request",
        )  # fmt: skip
    arrived = asyncio.Event()
    chunks = octets(request, fleet.context.settings.max_upload_bytes, ended=arrived)
    work = fleet.intake.finish(
        lease_id, chunks, sha256=sha256, next=query.next, wait_s=query.wait_s, who=who_of(request)
    )
    is_waiting = query.next and query.wait_s > 0
    done = await (waits_of(request).attend(request.receive, work, after=arrived) if is_waiting else work)
    return answer(done) if done.lease is None else _lent(answer(done), done.lease)


@router.get("", operation_id="leases", response_model=tuple[LeaseView, ...], summary="List leases")
async def leases(request: Request) -> Response:
    """Who runs what at this moment."""
    return Response(_VIEWS.dump_json(await fleet_of(request).leases.list_leases()), media_type=JSON)


@router.delete("/{lease_id}", operation_id="hand_back", status_code=204, summary="Return a job")
async def hand_back(request: Request, lease_id: Id, query: Annotated[HandBackAsked, Query()]) -> Response:
    """It waits again, for this agent or another."""
    _name(request, lease_id)
    await fleet_of(request).leases.hand_back(lease_id, query.reason, who=who_of(request))
    return nothing()


@router.get(
    "/{lease_id}/upload", operation_id="upload_offset", response_model=UploadState, summary="Get the uploaded size"
)
async def upload_offset(request: Request, lease_id: Id) -> Response:
    """How many bytes of the result's tar have arrived: where to continue."""
    return answer(UploadState(offset=await fleet_of(request).intake.upload_offset(lease_id, who=who_of(request))))


@router.patch(
    "/{lease_id}/upload", operation_id="upload", response_model=UploadState, summary="Upload a part of the result",
    openapi_extra=octets_body("application/octet-stream", "bytes of the result's tar from `offset` on"),
)  # fmt: skip
async def upload(request: Request, lease_id: Id, query: Annotated[UploadAsked, Query()]) -> Response:
    """From where the last part ended; after a broken connection, ask for the offset first."""
    require_length(request.scope)
    fleet = fleet_of(request)
    _name(request, lease_id)
    chunks = octets(request, max(0, fleet.context.settings.max_upload_bytes - query.offset))
    return answer(UploadState(offset=await fleet.intake.upload(lease_id, query.offset, chunks, who=who_of(request))))


def _name(request: Request, lease_id: str) -> None:
    """Have the log say which job this is about, where it is in mind."""
    held = fleet_of(request).state.held.get(lease_id)
    if held is not None:
        structlog.contextvars.bind_contextvars(job_id=held.job_id, experiment_id=held.experiment_id)


def _lent(response: Response, lent: Lease) -> Response:
    structlog.contextvars.bind_contextvars(job_id=lent.job.id, experiment_id=lent.job.experiment_id)
    return response
