"""Jobs as a server sees them: what state each is in, why it waits, and what was tried."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field

from prony.model.agent import AgentState, Label
from prony.model.base import Noun
from prony.model.experiment import Experiment
from prony.model.git import Git
from prony.model.job import Job
from prony.model.place import Demand, Lack
from prony.model.result import Failure
from prony.model.workload import Scalar

T = TypeVar("T")
Priority = Annotated[int, Field(ge=-100, le=100)]


class JobState(StrEnum):
    """How far a job is, or how it ended."""

    WAITING = "waiting"
    LEASED = "leased"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Attempt(Noun):
    """One lease of a job. `lost`: nothing was heard of it; `returned`: handed back; else how it ended."""

    number: int
    agent_id: str
    state: Literal["leased", "complete", "partial", "failed", "lost", "returned", "cancelled"]
    leased_at: datetime
    ended_at: datetime | None = None
    reason: str = ""


class QueuedJob(Noun):
    """`reason` says why it waits, or why it failed."""

    id: str
    experiment_id: str
    title: str
    state: JobState
    priority: int
    attempt: int
    agent_id: str | None = None
    created_at: datetime
    leased_at: datetime | None = None
    ended_at: datetime | None = None
    not_before: datetime | None = None
    cancel_asked: bool = False
    reason: str = ""
    failure: Failure | None = None
    labels: dict[str, str] = {}
    cell: dict[str, Scalar] = {}


class JobDetail(Noun):
    """A job with its place in the queue and all its attempts."""

    queued: QueuedJob
    job: Job
    attempts: tuple[Attempt, ...] = ()


class ExperimentView(Noun):
    """An experiment with how many of its jobs are in which state."""

    experiment: Experiment
    counts: dict[JobState, int]
    priority: int = 0
    submitted_by: str = ""


class Submission(Noun):
    """A recipe as text, in the format that `name` ends in, with overrides as `prony run --set` takes them."""

    text: Annotated[str, Field(max_length=512 * 1024)]
    name: Annotated[str, Field(pattern=r"^[^/\\\x00]{1,200}\.(yaml|yml|toml|json)$")] = "recipe.yaml"
    overrides: Annotated[tuple[Annotated[str, Field(max_length=10_000)], ...], Field(max_length=100)] = ()
    priority: Priority | None = None
    # The repository that the recipe lies in, as it is where it is submitted.
    git: Git | None = None


class Modification(Noun):
    """What is given is changed, the rest stays. Recipe and labels only while no job was leased."""

    priority: Priority | None = None
    labels: Annotated[dict[Label, Label], Field(max_length=100)] | None = None
    submission: Submission | None = None


class JobBatch(Noun):
    """The same for many jobs: those named, or those that the filters leave; at least one of them must be given."""

    action: Literal["cancel", "retry"]
    ids: Annotated[tuple[str, ...], Field(max_length=10_000)] = ()
    experiment: str | None = None
    state: JobState | None = None


class JobBatchAnswer(Noun):
    """`skipped` tells of each job that was not changed why not."""

    changed: tuple[str, ...]
    skipped: dict[str, str] = {}


class Lot(Noun):
    """The jobs of one experiment that want the same kind of device. `agent_id`: only this one may run them."""

    id: str
    experiment_id: str
    demand: Demand
    agent_id: str | None = None
    priority: int = 0
    created_at: datetime


class LotView(Noun):
    """`reason` says why its jobs wait: nobody fits (and what each lacks), everybody who fits is busy, or a back-off."""

    lot: Lot
    experiment_name: str
    waiting: int
    leased: int
    fitting: tuple[str, ...] = ()
    reason: str = ""


class Queue(Noun):
    """The lots that have jobs which wait, or are lent."""

    lots: tuple[LotView, ...]
    waiting: int
    leased: int


class Fit(Noun):
    """Whether one agent could run one lot, and what it lacks."""

    agent_id: str
    agent_name: str
    state: AgentState
    fits: bool
    lacks: tuple[Lack, ...] = ()


class LotFit(Noun):
    """Which agents could run the jobs of one lot."""

    demand: Demand
    jobs: int
    agents: tuple[Fit, ...]


class Compatibility(Noun):
    """Whether there is an agent for every lot of a recipe."""

    lots: tuple[LotFit, ...]
    runnable: bool


class Page(Noun, Generic[T]):
    """Part of a list; `next` is the cursor of the part that follows."""

    items: tuple[T, ...]
    next: str | None = None


class HealthPart(Noun):
    """One thing that a server needs, and whether it works."""

    name: str
    ok: bool
    detail: str = ""


class Health(Noun):
    """Whether a server can do its work."""

    ok: bool
    version: str
    parts: tuple[HealthPart, ...]


class Stats(Noun):
    """How many jobs, agents and experiments there are, and how long the oldest jobs have waited or been lent."""

    jobs: dict[JobState, int]
    agents: dict[AgentState, int]
    experiments: int
    ended_last_hour: int
    oldest_waiting_s: float | None = None
    oldest_lease_s: float | None = None
