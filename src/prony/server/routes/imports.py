"""Experiments over HTTP that were measured elsewhere."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from prony.model.queue import ExperimentView
from prony.server.body import octets, require_length
from prony.server.openapi import octets_body
from prony.server.operation import Operation, fleet_of, who_of
from prony.server.query_params import Id
from prony.server.responses import answer

router = APIRouter(prefix="/api/v1/imports", tags=["experiments"], route_class=Operation)


@router.put(
    "/{sha256}", operation_id="import_results", response_model=ExperimentView, summary="Import results",
    openapi_extra=octets_body("application/x-tar", "the files of an export as a tar, whose SHA-256 is its name"),
)  # fmt: skip
async def import_results(request: Request, sha256: Id) -> Response:
    """An export or result folders: checksums are verified, and the numbers computed again. A repeat does no harm."""
    require_length(request.scope)
    fleet = fleet_of(request)
    body = octets(request, fleet.context.settings.max_upload_bytes)
    return answer(await fleet.imports.add(sha256, body, who=who_of(request)))
