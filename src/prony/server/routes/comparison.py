"""Comparisons over HTTP: how experiments or jobs stand against the first of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.comparison import Comparison
from prony.server.operation import Operation, fleet_of
from prony.server.query_params import ComparisonAsked
from prony.server.responses import respond_measurements

router = APIRouter(prefix="/api/v1/comparison", tags=["experiments"], route_class=Operation)


@router.get("", operation_id="comparison", response_model=Comparison, summary="Compare experiments or jobs")
async def comparison(request: Request, query: Annotated[ComparisonAsked, Query()]) -> Response:
    """Each metric with its effect, interval and conclusion. What is not comparable is refused, with the reason."""
    return respond_measurements(await fleet_of(request).results.compare(query.names, query.terms))
