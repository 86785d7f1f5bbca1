"""Schedules over HTTP: made, looked at, paused, run now; and when each of them fired."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.queue import Page
from prony.model.schedule import Fire, NewSchedule, Schedule
from prony.server.openapi import header_of
from prony.server.operation import Operation, fleet_of, while_asked, who_of
from prony.server.query_params import Id, PageAsked
from prony.server.responses import answer, nothing, respond_tagged

router = APIRouter(prefix="/api/v1/schedules", tags=["schedules"], route_class=Operation)


@router.post(
    "", operation_id="add_schedule", status_code=201, response_model=Schedule, summary="Submit a recipe on a schedule",
    responses={201: {"headers": header_of("Location", "URL of the schedule")}},
)  # fmt: skip
async def add_schedule(request: Request, body: NewSchedule) -> Response:
    """The recipe is checked as if it were submitted now. The name must be free."""
    made = await while_asked(request, fleet_of(request).schedules.add(body, who=who_of(request)))
    return answer(made, 201, {"Location": f"/api/v1/schedules/{made.id}"})


@router.get("", operation_id="schedules", response_model=Page[Schedule], summary="List schedules")
async def schedules(request: Request, query: Annotated[PageAsked, Query()]) -> Response:
    """By name, with the next time of each."""
    return respond_tagged(request, await fleet_of(request).schedules.page(limit=query.limit, cursor=query.cursor))


@router.get("/{schedule_id}", operation_id="schedule", response_model=Schedule, summary="Get one schedule")
async def schedule(request: Request, schedule_id: Id) -> Response:
    """By its id or its name."""
    return respond_tagged(request, await fleet_of(request).schedules.get(schedule_id))


@router.get("/{schedule_id}/fires", operation_id="fires", response_model=Page[Fire], summary="List runs of a schedule")
async def fires(request: Request, schedule_id: Id, query: Annotated[PageAsked, Query()]) -> Response:
    """The newest first, with the experiment that each made and the times that were missed."""
    return respond_tagged(
        request, await fleet_of(request).schedules.fires(schedule_id, limit=query.limit, cursor=query.cursor)
    )


@router.post("/{schedule_id}/pause", operation_id="pause_schedule", response_model=Schedule, summary="Pause a schedule")
async def pause_schedule(request: Request, schedule_id: Id) -> Response:
    """Nothing runs until it is resumed."""
    return answer(await fleet_of(request).schedules.pause(schedule_id, who=who_of(request)))


@router.post(
    "/{schedule_id}/resume", operation_id="resume_schedule", response_model=Schedule, summary="Resume a schedule"
)
async def resume_schedule(request: Request, schedule_id: Id) -> Response:
    """It continues with its next time; times missed in the pause are skipped."""
    return answer(await fleet_of(request).schedules.resume(schedule_id, who=who_of(request)))


@router.post("/{schedule_id}/run", operation_id="run_schedule", response_model=Fire, summary="Run a schedule now")
async def run_schedule(request: Request, schedule_id: Id) -> Response:
    """In addition to its times, which do not change."""
    return answer(await while_asked(request, fleet_of(request).schedules.run_now(schedule_id, who=who_of(request))))


@router.delete("/{schedule_id}", operation_id="remove_schedule", status_code=204, summary="Remove a schedule")
async def remove_schedule(request: Request, schedule_id: Id) -> Response:
    """Its experiments stay."""
    await fleet_of(request).schedules.remove(schedule_id, who=who_of(request))
    return nothing()
