"""A job lent to an agent: asked for, held by heartbeats, given back with a result."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from prony.model.agent import Name, Readings
from prony.model.base import Noun
from prony.model.event import Event
from prony.model.job import Job
from prony.model.target import PlacementNote


class LeaseRequest(Noun):
    """`holding` are the leases that the agent knows of: one that it was given and never heard of is given again.
    `readings` are what the probes of its device last read: an agent that waits sends no heartbeats."""

    agent_id: Name
    incarnation: Name
    holding: tuple[Name, ...] = ()
    wait_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = 30
    readings: Readings = {}


class Lease(Noun):
    """`ttl_s` is how long the server waits for a sign of life before it gives the job to another agent.
    `traceparent` is what the agent's spans follow from."""

    id: str
    job: Job
    attempt: int
    ttl_s: float
    traceparent: str = ""


class LeaseView(Noun):
    """A lease as people see it."""

    id: str
    job_id: str
    experiment_id: str
    agent_id: str
    attempt: int
    leased_at: datetime


class Progress(Noun):
    """Events since the last call, and a piece of the job's log with its place in it, so that a repeat does no harm."""

    events: Annotated[tuple[Event, ...], Field(max_length=1000)] = ()
    log_offset: Annotated[int, Field(ge=0, le=2**40)] = 0
    log: Annotated[str, Field(max_length=256 * 1024)] = ""
    placement: PlacementNote | None = None  # where the job runs at a target, and how it fares there


class ProgressAnswer(Noun):
    """`cancel` says that the job is to be stopped, because it was cancelled or is no longer this agent's."""

    cancel: bool = False


class UploadState(Noun):
    """How many bytes of the result have arrived."""

    offset: int


class FinishAnswer(Noun):
    """`accepted` is False when this attempt's result was here already; `lease` is the next job, where asked for."""

    accepted: bool
    lease: Lease | None = None
