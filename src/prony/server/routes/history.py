"""Histories over HTTP: series and their changes, listed and looked at; a change acknowledged, a baseline pinned."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.history import Acknowledgement, Baseline, Change, History, NewBaseline, Series
from prony.model.queue import Page
from prony.server.operation import Operation, fleet_of, who_of
from prony.server.query_params import ChangesAsked, HistoryAsked, Id, SeriesAsked
from prony.server.responses import answer, nothing, respond_measurements, respond_tagged

router = APIRouter(prefix="/api/v1", tags=["history"], route_class=Operation)


@router.get("/series", operation_id="series", response_model=Page[Series], summary="List series")
async def series(request: Request, query: Annotated[SeriesAsked, Query()]) -> Response:
    """One for each benchmark with its parameters, kind of machine and branch, by name."""
    found = await fleet_of(request).histories.series(
        name=query.name, state=query.state, branch=query.branch, limit=query.limit, cursor=query.cursor
    )  # fmt: skip
    return respond_tagged(request, found)


@router.get("/series/{series_id}", operation_id="history", response_model=History, summary="Get one history")
async def history(request: Request, series_id: Id, query: Annotated[HistoryAsked, Query()]) -> Response:
    """Every result, the levels, the changes and the baseline; by the headline's metric, or another."""
    return respond_measurements(await fleet_of(request).histories.history(series_id, metric=query.metric))


@router.get(
    "/series/{series_id}/baseline", operation_id="baseline", response_model=Baseline, summary="Get a baseline"
)  # fmt: skip
async def baseline(request: Request, series_id: Id) -> Response:
    """The result that later ones are compared with."""
    return answer(await fleet_of(request).histories.baseline(series_id))


@router.put(
    "/series/{series_id}/baseline", operation_id="set_baseline", response_model=Baseline, summary="Pin a baseline"
)  # fmt: skip
async def set_baseline(request: Request, series_id: Id, body: NewBaseline) -> Response:
    """A result of this series; without a job, the newest that is not void."""
    return answer(await fleet_of(request).histories.set_baseline(series_id, body, who=who_of(request)))


@router.delete(
    "/series/{series_id}/baseline", operation_id="clear_baseline", status_code=204, summary="Clear a baseline"
)  # fmt: skip
async def clear_baseline(request: Request, series_id: Id) -> Response:
    """The result itself stays."""
    await fleet_of(request).histories.clear_baseline(series_id, who=who_of(request))
    return nothing()


@router.get("/changes", operation_id="changes", response_model=Page[Change], summary="List changes")
async def changes(request: Request, query: Annotated[ChangesAsked, Query()]) -> Response:
    """The open changes of all series, or those in one state; the newest first."""
    found = await fleet_of(request).histories.changes(
        state=query.state, kind=query.kind, branch=query.branch, limit=query.limit, cursor=query.cursor
    )  # fmt: skip
    return respond_tagged(request, found)


@router.get("/changes/{change_id}", operation_id="change", response_model=Change, summary="Get one change")
async def change(request: Request, change_id: Id) -> Response:
    """With its evidence, and a sentence that sums it up."""
    return answer(await fleet_of(request).histories.change(change_id))


@router.post("/changes/{change_id}/ack", operation_id="ack", response_model=Change, summary="Acknowledge a change")
async def ack(request: Request, change_id: Id, body: Acknowledgement) -> Response:
    """It is no longer reported, and later results are judged against its level."""
    return answer(await fleet_of(request).histories.ack(change_id, body, who=who_of(request)))
