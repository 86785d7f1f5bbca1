"""Targets over HTTP: where stand-in agents go, and how the jobs fare that they placed there."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.queue import Page
from prony.model.target import PlacementView, ServedTarget
from prony.server.operation import Operation, fleet_of
from prony.server.query_params import Id, PageAsked
from prony.server.responses import respond_tagged

router = APIRouter(prefix="/api/v1/targets", tags=["targets"], route_class=Operation)


@router.get("", operation_id="targets", response_model=Page[ServedTarget], summary="List targets")
async def targets(request: Request, query: Annotated[PageAsked, Query()]) -> Response:
    """Machines and clusters that stand-in agents (`prony agent start --on`) go to, with how many jobs are there."""
    return respond_tagged(request, await fleet_of(request).targets.page(limit=query.limit, cursor=query.cursor))


@router.get(
    "/{target}/placements", operation_id="placements", response_model=Page[PlacementView],
    summary="List jobs placed at a target",
)  # fmt: skip
async def placements(request: Request, target: Id, query: Annotated[PageAsked, Query()]) -> Response:
    """The newest first: phase, the scheduler's own id and reason, nodes and times of each job."""
    found = await fleet_of(request).targets.placements(target, limit=query.limit, cursor=query.cursor)
    return respond_tagged(request, found)
