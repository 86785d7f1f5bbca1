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

router = APIRouter(prefix="/api/v1", tags=["overview"], route_class=Operation)


@router.get("/listing", operation_id="listing", response_model=Listing, summary="Search experiments")
async def listing(request: Request, query: Annotated[ListingAsked, Query()]) -> Response:
    """Short rows for lists: each with its headline metric and recent trend."""
    found = await fleet_of(request).queries.listing(query.filters, query.sort, limit=query.limit, cursor=query.cursor)
    return respond_tagged(request, found)


@router.get("/overview", operation_id="overview", response_model=Glance, summary="Get the overview")
async def overview(request: Request) -> Response:
    """Running experiments, changes, failures, lost agents and the latest results."""
    return respond_tagged(request, await fleet_of(request).queries.overview())


@router.get("/about", operation_id="about", response_model=About, summary="Get the server's version and your role")
async def about(request: Request) -> Response:
    """Its version and address, links to Prometheus and Grafana, and your name and role."""
    settings, who = fleet_of(request).context.settings, who_of(request)
    found = About(
        version=__version__, url=settings.url, asks_tokens=settings.asks_tokens, name=who.name, role=who.role,
        prometheus=settings.prometheus, grafana=settings.grafana,
    )  # fmt: skip
    return respond_tagged(request, found)
