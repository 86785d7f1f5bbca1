"""What a server shows at a glance: its experiments, each with the one number that stands for it, and itself."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from prony.model.access import Role
from prony.model.agent import AgentState
from prony.model.alarm import Incident
from prony.model.base import Noun
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.gate import GateState
from prony.model.history import Change
from prony.model.metric import Better
from prony.model.queue import JobState, Stats

Sort = Literal["newest", "oldest", "name", "lowest", "highest"]


class Filters(Noun):
    """Words of `search` must each occur in the id, the name, a label or who submitted it; a label is `key=value`;
    several kinds have commas between them."""

    search: str = ""
    state: ExperimentState | None = None
    kind: str | None = None
    label: str | None = None
    grade: Grade | None = None
    gates: GateState | None = None
    schedule: str | None = None


class Headline(Noun):
    """The number of the best job that may be quoted."""

    job_id: str
    title: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    unit: str
    better: Better


class ExperimentRow(Noun):
    """`trend` are the headlines of the newest results of the same series, the oldest first; `gates` is None where
    nobody judged any."""

    id: str
    name: str
    kind: str
    state: ExperimentState
    created_at: datetime
    ended_at: datetime | None = None
    submitted_by: str = ""
    labels: dict[str, str] = {}
    job_count: int
    counts: dict[JobState, int] = {}
    grade: Grade | None = None
    gates: GateState | None = None
    headline: Headline | None = None
    trend: tuple[float, ...] = ()


class Listing(Noun):
    """`total` are all that the filters leave, and `states` how many of these are in which state, whatever state was
    asked for. `labels` are those that may be asked for, as `key=value`, the most used first; `kinds` likewise, those
    that are installed or that an experiment has."""

    items: tuple[ExperimentRow, ...]
    next: str | None = None
    total: int
    states: dict[ExperimentState, int] = {}
    labels: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


class FailedGates(Noun):
    """An experiment whose gates did not pass; `text` says which."""

    experiment_id: str
    name: str
    ended_at: datetime | None = None
    text: str


class FailedExperiment(Noun):
    """An experiment that failed, or that ended without some of its results; `text` says why."""

    experiment_id: str
    name: str
    state: ExperimentState
    ended_at: datetime | None = None
    text: str


class AgentTrouble(Noun):
    """An agent that is not there, or not fit."""

    id: str
    name: str
    state: AgentState
    seen_at: datetime
    reason: str = ""


class Glance(Noun):
    """What runs, what changed and what came out last. `agents`: how many could work now."""

    running: tuple[ExperimentRow, ...]
    recent: tuple[ExperimentRow, ...]
    changes: tuple[Change, ...] = ()
    failed: tuple[FailedExperiment, ...] = ()
    failed_gates: tuple[FailedGates, ...] = ()
    troubles: tuple[AgentTrouble, ...] = ()
    incidents: tuple[Incident, ...] = ()
    stats: Stats
    agents: int


class About(Noun):
    """`name` and `role` are those of who asks; `prometheus` and `grafana` are where its figures are."""

    version: str
    url: str
    asks_tokens: bool
    name: str
    role: Role
    prometheus: str = ""
    grafana: str = ""
