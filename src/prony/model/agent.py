"""A long-lived process that offers a device, as server and agent tell each other about it."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from prony.model.base import Noun
from prony.model.calibration import Calibration
from prony.model.device import AbilityReport, Device, EngineReport, State
from prony.model.target import TargetOffer

# One fact of a device: a value, or several of which each counts (a machine may have two kinds of GPU).
Fact = bool | int | float | str | tuple[bool | int | float | str, ...]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/@+-]{0,100}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
# What probes read: counters by name. More than this is more than any device has.
MOST_READINGS = 500
Readings = Annotated[
    dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,99}$")], Annotated[float, Field(allow_inf_nan=False)]],
    Field(max_length=MOST_READINGS),
]
# Facts that an agent tells with its abilities; what tells no abilities is older than they are.
OF_ABILITIES = ("service", "container", "launcher", "probe")


class AgentState(StrEnum):
    """What an agent is doing, or why it is lent nothing."""

    ACTIVE = "active"
    BUSY = "busy"
    CLEANUP = "cleanup"
    FAULTY = "faulty"
    LOST = "lost"
    DRAINING = "draining"
    DISK_FULL = "disk_full"
    STOPPED = "stopped"


class Capabilities(Noun):
    """What an agent offers: its device, engines and other abilities in full, and the flat facts that `place.where` asks
    about."""

    device: Device | None = None
    engines: tuple[EngineReport, ...] = ()
    abilities: tuple[AbilityReport, ...] = ()
    facts: dict[str, Fact] = {}
    labels: dict[Label, Label] = {}
    version: str = ""
    target: TargetOffer | None = None  # of a stand-in agent: where its jobs run instead of on its own device
    # Where Prometheus finds the agent's own metrics, as host:port; empty where it serves none that others reach.
    metrics_address: Annotated[str, Field(pattern=r"^[A-Za-z0-9.:\[\]_-]{0,300}$")] = ""
    # How the machine was when the agent began, without the values behind it: what changes all the time is in results.
    state: State | None = None
    calibration: Calibration | None = None  # the machine's newest

    def reason_for(self, fact: str, wanted: Collection[str]) -> str:
        """Return why the agent has none of these, as it says itself; empty where it says nothing of them."""
        if fact in OF_ABILITIES and not self.abilities:
            version = f" of version {self.version}" if self.version else ""
            return f"this agent does not report what it has; its Prony{version} is too old for that: update it"
        found = [one for one in self.abilities if one.kind == fact and one.name in wanted]
        broken = [one for one in found if one.state == "broken"]  # nearer to working than what is not there at all
        return next((one.reason for one in (*broken, *found)), "")


class Enrolment(Noun):
    """An agent introduces itself; `id` is the one that it was given before, if it was.

    `incarnation` names this life of the process: what an earlier life held is put back when a new one speaks.
    `device_key` is the same for all agents of one device, because only one of them may measure at a time.
    `holding` are leases that this life goes on with: their jobs outlived the earlier one, because they run at a target.
    """

    id: Name | None = None
    name: Name
    device_key: Annotated[str, Field(min_length=1, max_length=100)]
    incarnation: Name
    capabilities: Capabilities = Capabilities()
    holding: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()


class Agent(Noun):
    """An agent as the server knows it."""

    id: str
    name: str
    state: AgentState
    device_key: str
    incarnation: str
    capabilities: Capabilities = Capabilities()
    created_at: datetime
    seen_at: datetime
    job_id: str | None = None
    strikes: int = 0
    reason: str = ""


class Enrolled(Noun):
    """`token` is the agent's own from now on, None where the server asks for none; `ttl_s`: how long a lease lasts."""

    agent: Agent
    token: str | None = None
    ttl_s: float


class ScrapeTarget(Noun):
    """Where Prometheus finds metrics of an agent, in the words of its HTTP service discovery."""

    targets: tuple[str, ...]
    labels: dict[str, str] = {}


class DiskShortage(Noun):
    """Too little room on an agent's disk to begin a job."""

    path: Annotated[str, Field(max_length=4096)]
    free_bytes: Annotated[int, Field(ge=0)]
    needed_bytes: Annotated[int, Field(ge=0)]

    def __str__(self) -> str:
        free, needed = self.free_bytes / 2**20, self.needed_bytes / 2**20
        return f"{free:.0f} MiB are free at {self.path}, {needed:.0f} MiB are needed"


class Heartbeat(Noun):
    """`leases` are those that the agent believes to hold; `disk` is why it takes no job now; `readings` are what the
    probes of its device last read."""

    incarnation: Name
    leases: tuple[Name, ...] = ()
    cleaning: bool = False
    disk: DiskShortage | None = None
    readings: Readings = {}


class HeartbeatAnswer(Noun):
    """`cancel` are leases whose jobs are to be stopped: cancelled, or given to somebody else meanwhile."""

    cancel: tuple[str, ...] = ()
    drain: bool = False
