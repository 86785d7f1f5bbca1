"""What is drawn of a job's result over HTTP: samples in bins and buckets, cold against warm, counters over time."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.picture import Counters, Distribution, LoadSeries, Starts, StepLines, Timeline
from prony.model.section import JobSections
from prony.server.operation import Operation, fleet_of
from prony.server.query_params import CountersAsked, DistributionAsked, Id, LoadSeriesAsked, TimelineAsked
from prony.server.responses import respond_measurements

router = APIRouter(prefix="/api/v1/jobs", tags=["charts"], route_class=Operation)


@router.get(
    "/{job_id}/distribution",
    operation_id="distribution",
    response_model=Distribution,
    summary="Get the distribution of samples",
)
async def distribution(request: Request, job_id: Id, query: Annotated[DistributionAsked, Query()]) -> Response:
    """Each run in the same bins, the share of samples by value, and the estimates with their intervals."""
    return respond_measurements(
        await fleet_of(request).results.distribution(job_id, metric=query.metric, bins=query.bins)
    )


@router.get("/{job_id}/timeline", operation_id="timeline", response_model=Timeline, summary="Get samples over time")
async def timeline(request: Request, job_id: Id, query: Annotated[TimelineAsked, Query()]) -> Response:
    """Lowest, median and highest of each time bucket, including the warm-up, and failures."""
    return respond_measurements(await fleet_of(request).results.timeline(job_id, buckets=query.buckets))


@router.get(
    "/{job_id}/load-series",
    operation_id="load_series",
    response_model=LoadSeries,
    summary="Get a load second by second",
)
async def load_series(request: Request, job_id: Id, query: Annotated[LoadSeriesAsked, Query()]) -> Response:
    """Replies, errors, requests in flight and latencies of each run. While it runs: as its agent reports it."""
    return respond_measurements(await fleet_of(request).results.load_series(job_id, points=query.points))


@router.get("/{job_id}/starts", operation_id="starts", response_model=Starts, summary="Get cold and warm starts")
async def starts(request: Request, job_id: Id) -> Response:
    """Of each fresh process of a model: its load, its first inference, and the median of its warm ones."""
    return respond_measurements(await fleet_of(request).results.starts(job_id))


@router.get("/{job_id}/lines", operation_id="lines", response_model=StepLines, summary="Get metrics by step")
async def lines(request: Request, job_id: Id) -> Response:
    """What a job reported step by step: a line for each metric, set of labels, rank and run."""
    return respond_measurements(await fleet_of(request).results.lines(job_id))


@router.get(
    "/{job_id}/sections", operation_id="sections", response_model=JobSections, summary="Get a result in sections"
)
async def sections(request: Request, job_id: Id) -> Response:
    """What the kind of workload shows of a result besides its numbers: facts, tables, and which charts there are."""
    return respond_measurements(await fleet_of(request).results.sections(job_id))


@router.get(
    "/{job_id}/counters", operation_id="counters", response_model=Counters, summary="Get counters of the machine"
)
async def counters(request: Request, job_id: Id, query: Annotated[CountersAsked, Query()]) -> Response:
    """What probes read, thinned so that no peak is lost; a counter that only grows is shown as its rate."""
    return respond_measurements(await fleet_of(request).results.counters(job_id, most=query.most, points=query.points))
