"""Folders of scripts over HTTP: brought by who submits them, fetched by the agents that run them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from prony.runner.script_folders import MOST_TAR_BYTES
from prony.server.body import octets, require_length
from prony.server.openapi import binary, octets_body
from prony.server.operation import Operation, fleet_of
from prony.server.query_params import Id
from prony.server.responses import nothing

router = APIRouter(prefix="/api/v1/scripts", tags=["scripts"], route_class=Operation)

_TAR = "application/x-tar"


@router.put(
    "/{sha256}", operation_id="keep_scripts", status_code=204, summary="Upload a script folder",
    openapi_extra=octets_body(_TAR, "the folder's files as a tar, whose SHA-256 is its name"),
)  # fmt: skip
async def keep_scripts(request: Request, sha256: Id) -> Response:
    """A recipe then names it: `workload.directory: sha256:...`. A repeat does no harm."""
    require_length(request.scope)
    await fleet_of(request).scripts.add(sha256, octets(request, MOST_TAR_BYTES))
    return nothing()


@router.get(
    "/{sha256}", operation_id="scripts", response_class=Response, summary="Get a script folder",
    responses={200: binary(_TAR, "the folder's files")},
)  # fmt: skip
async def scripts(request: Request, sha256: Id) -> Response:
    """As it was uploaded."""
    return FileResponse(await fleet_of(request).scripts.get(sha256), media_type=_TAR)
