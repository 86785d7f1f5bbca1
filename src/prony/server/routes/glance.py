"""A server at a glance over HTTP: its experiments as lists show them, what to look at first, and what it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony import __version__
from prony.model.listing import About, Glance, Listing
from prony.server.operation import Operation, fleet_of, who_of
from prony.server.query_params import ListingAsked
from prony.server.responses import respond_tagged

router = APIRouter(prefix="/api/v1", tags=["glance"], route_class=Operation)


@router.get("/listing", operation_id="listing", response_model=Listing, summary="Search experiments")
async def listing(request: Request, query: Annotated[ListingAsked, Query()]) -> Response:
    """As a list shows them: light, with the number that stands for each and how it went lately."""
    found = await fleet_of(request).queries.listing(query.filters, query.sort, limit=query.limit, cursor=query.cursor)
    return respond_tagged(request, found)


@router.get("/overview", operation_id="overview", response_model=Glance, summary="What to look at first")
async def overview(request: Request) -> Response:
    """What runs, what changed or failed, who is lost, and what came out last."""
    return respond_tagged(request, await fleet_of(request).queries.overview())


@router.get("/about", operation_id="about", response_model=About, summary="What this server is, and who you are to it")
async def about(request: Request) -> Response:
    """Its version and address, where its figures are drawn, and the name and role of who asks."""
    settings, who = fleet_of(request).context.settings, who_of(request)
    found = About(
        version=__version__, url=settings.url, asks_tokens=settings.asks_tokens, name=who.name, role=who.role,
        prometheus=settings.prometheus, grafana=settings.grafana,
    )  # fmt: skip
    return respond_tagged(request, found)
