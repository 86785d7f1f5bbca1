"""Agents over HTTP: they enrol, beat and tell what they offer; people look at them, drain them, send them away."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from prony.app.access import require_agent
from prony.model.agent import Agent, Capabilities, Enrolled, Enrolment, Heartbeat, HeartbeatAnswer
from prony.model.device_history import DeviceHistory, RecentReadings
from prony.model.queue import Page
from prony.server.openapi import header_of
from prony.server.operation import Operation, fleet_of, gate_of, who_of
from prony.server.query_params import AgentsAsked, Id
from prony.server.responses import answer, nothing, respond_tagged

router = APIRouter(prefix="/api/v1/agents", tags=["agents"], route_class=Operation)


@router.post(
    "/{agent_id}/heartbeat", operation_id="heartbeat", response_model=HeartbeatAnswer, summary="Send a heartbeat"
)
async def heartbeat(request: Request, agent_id: Id, body: Heartbeat) -> Response:
    """Renews every lease that the agent holds, and says which of its jobs to stop."""
    who = who_of(request)
    require_agent(who, agent_id)
    return answer(await fleet_of(request).agents.heartbeat(agent_id, body, who=who))


@router.post(
    "", operation_id="enroll", status_code=201, response_model=Enrolled, summary="Enrol an agent",
    responses={201: {"headers": header_of("Location", "URL of the agent")}},
)  # fmt: skip
async def enroll(request: Request, body: Enrolment) -> Response:
    """With a one-time token it gets its own token; with that one it enrols again as the same agent."""
    enrolled = await fleet_of(request).agents.enroll(body, who=who_of(request))
    gate_of(request).forget()
    return answer(enrolled, 201, {"Location": f"/api/v1/agents/{enrolled.agent.id}"})


@router.get("", operation_id="agents", response_model=Page[Agent], summary="List agents")
async def agents(request: Request, query: Annotated[AgentsAsked, Query()]) -> Response:
    """Each with its state and what it offers."""
    return respond_tagged(
        request, await fleet_of(request).agents.page(state=query.state, limit=query.limit, cursor=query.cursor)
    )


@router.get("/{agent_id}", operation_id="agent", response_model=Agent, summary="Get one agent")
async def agent(request: Request, agent_id: Id) -> Response:
    """With its device, its engines and all facts that `place.where` can ask about."""
    return respond_tagged(request, await fleet_of(request).agents.get(agent_id))


@router.get(
    "/{agent_id}/readings", operation_id="device_readings", response_model=RecentReadings,
    summary="Get recent readings of an agent's device",
)  # fmt: skip
async def device_readings(request: Request, agent_id: Id) -> Response:
    """CPU, memory, disks, network and GPUs in the last minutes, from the memory of the server the agent speaks to."""
    return respond_tagged(request, await fleet_of(request).devices.recent_readings(agent_id))


@router.get(
    "/{agent_id}/history", operation_id="device_history", response_model=DeviceHistory,
    summary="Get the history of an agent's device",
)  # fmt: skip
async def device_history(request: Request, agent_id: Id) -> Response:
    """Canary and noise of its newest 200 results, calibrations, and what would disturb a measurement there."""
    return respond_tagged(request, await fleet_of(request).devices.history(agent_id))


@router.put(
    "/{agent_id}/capabilities", operation_id="capabilities", response_model=Agent, summary="Report capabilities"
)
async def capabilities(request: Request, agent_id: Id, body: Capabilities) -> Response:
    """Replaces what it reported before."""
    who = who_of(request)
    require_agent(who, agent_id)
    return answer(await fleet_of(request).agents.set_capabilities(agent_id, body, who=who))


@router.post("/{agent_id}/drain", operation_id="drain", response_model=Agent, summary="Drain an agent")
async def drain(request: Request, agent_id: Id) -> Response:
    """It gets no more jobs and finishes those it runs. An agent may drain itself; others need role `admin`."""
    who = who_of(request)
    require_agent(who, agent_id)
    return answer(await fleet_of(request).agents.drain(agent_id, who=who))


@router.post("/{agent_id}/reset", operation_id="reset", response_model=Agent, summary="Reset an agent")
async def reset(request: Request, agent_id: Id) -> Response:
    """A faulty or draining agent becomes active again."""
    return answer(await fleet_of(request).agents.reset(agent_id, who=who_of(request)))


@router.delete("/{agent_id}", operation_id="remove", status_code=204, summary="Remove an agent")
async def remove(request: Request, agent_id: Id) -> Response:
    """Its token is revoked, and its jobs go to other agents."""
    await fleet_of(request).agents.remove(agent_id, who=who_of(request))
    gate_of(request).forget()
    return nothing()
