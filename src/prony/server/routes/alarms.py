"""Alarms over HTTP: made, looked at, tried out; what they found, and what became of the telling."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.model.alarm import Alarm, Delivery, Incident, MadeAlarm, NewAlarm, TestAnswer
from prony.model.queue import Page
from prony.server.openapi import header_of
from prony.server.operation import Operation, fleet_of, who_of
from prony.server.query_params import Id, PageAsked
from prony.server.responses import answer, nothing, respond_tagged

router = APIRouter(prefix="/api/v1/alarms", tags=["alarms"], route_class=Operation)


@router.post(
    "", operation_id="add_alarm", status_code=201, response_model=MadeAlarm, summary="Make an alarm",
    responses={201: {"headers": header_of("Location", "URL of the alarm")}},
)  # fmt: skip
async def add_alarm(request: Request, body: NewAlarm) -> Response:
    """The secret that signs its webhooks is only in this answer. Secret parts of its addresses are hidden, too."""
    made = await fleet_of(request).alarms.add(body, who=who_of(request))
    return answer(made, 201, {"Location": f"/api/v1/alarms/{made.alarm.id}"})


@router.get("", operation_id="alarms", response_model=Page[Alarm], summary="List alarms")
async def alarms(request: Request, query: Annotated[PageAsked, Query()]) -> Response:
    """By name, with the number of open incidents. Secret parts of addresses are hidden."""
    return respond_tagged(request, await fleet_of(request).alarms.page(limit=query.limit, cursor=query.cursor))


@router.get("/{alarm_id}", operation_id="alarm", response_model=Alarm, summary="Get one alarm")
async def alarm(request: Request, alarm_id: Id) -> Response:
    """By its id or its name."""
    return respond_tagged(request, await fleet_of(request).alarms.get(alarm_id))


@router.get(
    "/{alarm_id}/incidents",
    operation_id="incidents",
    response_model=Page[Incident],
    summary="List incidents of an alarm",
)
async def incidents(request: Request, alarm_id: Id, query: Annotated[PageAsked, Query()]) -> Response:
    """The newest first; one without `closed_at` is open."""
    return respond_tagged(
        request, await fleet_of(request).alarms.incidents(alarm_id, limit=query.limit, cursor=query.cursor)
    )


@router.get(
    "/{alarm_id}/deliveries",
    operation_id="deliveries",
    response_model=Page[Delivery],
    summary="List deliveries of an alarm",
)
async def deliveries(request: Request, alarm_id: Id, query: Annotated[PageAsked, Query()]) -> Response:
    """The newest first, with every try."""
    return respond_tagged(
        request, await fleet_of(request).alarms.deliveries(alarm_id, limit=query.limit, cursor=query.cursor)
    )


@router.post("/{alarm_id}/test", operation_id="test_alarm", response_model=TestAnswer, summary="Test an alarm")
async def test_alarm(request: Request, alarm_id: Id) -> Response:
    """Really sends a message to each of its addresses, once."""
    return answer(await fleet_of(request).alarms.send_test(alarm_id, who=who_of(request)))


@router.delete("/{alarm_id}", operation_id="remove_alarm", status_code=204, summary="Remove an alarm")
async def remove_alarm(request: Request, alarm_id: Id) -> Response:
    """Its incidents and deliveries are deleted too."""
    await fleet_of(request).alarms.remove(alarm_id, who=who_of(request))
    return nothing()
