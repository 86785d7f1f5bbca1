"""The results of one benchmark on one kind of machine over time, and what changed among them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from prony.errors import NotFoundError
from prony.model.base import Noun
from prony.model.estimate import Grade
from prony.model.git import Git
from prony.model.metric import Better, Metric


class SeriesState(StrEnum):
    """How a series stands after its last result; `learning`: there are too few to judge the next by."""

    LEARNING = "learning"
    STEADY = "steady"
    SUSPECT = "suspect"
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    DRIFT = "drift"
    ENVIRONMENT = "environment"


class ChangeState(StrEnum):
    """`suspect`: not sure, and worth runs that would tell; `found`: the history alone is sure; `confirmed`: runs of
    both versions side by side said so, and `rejected`: they said no. `acknowledged`: a person knows; `resolved`: the
    level came back."""

    SUSPECT = "suspect"
    FOUND = "found"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


_MOST_NAMED = 8
OPEN = (ChangeState.SUSPECT, ChangeState.FOUND, ChangeState.CONFIRMED)
ChangeKind = Literal["regression", "improvement", "drift", "environment"]


class Point(Noun):
    """One result in its series. `values` by the key of the estimate; `facts` is what may explain a change."""

    series_id: str
    job_id: str
    experiment_id: str
    measured_at: datetime
    grade: Grade
    value: float | None = None
    values: dict[str, float] = {}
    facts: dict[str, str] = {}
    # Where the recipe came from, and, of a branch that is judged against another, the series of that one.
    git: Git | None = None
    base_series_id: str | None = None
    # Of a script: the metrics that are its own.
    metrics: dict[str, Metric] = {}
    # How long a fixed piece of work took beside it, in ms: how fast the machine itself was then.
    canary: dict[str, float] = {}
    # What is watched besides the headline, as the recipe said then.
    watch: tuple[str, ...] = ()


class SeriesLevel(Noun):
    """Where results lie: the median, and the interval of it where there are enough."""

    median: float
    low: float | None = None
    high: float | None = None
    runs: int


class Segment(Noun):
    """Results from one to another, both named by their jobs, that are at one level."""

    first_job_id: str
    last_job_id: str
    begin: int
    end: int
    level: SeriesLevel


class Acknowledgement(Noun):
    """`expected`: the change is intended."""

    reason: Annotated[str, Field(max_length=1000)] = ""
    expected: bool = False
    who: str = ""
    at: datetime | None = None


class SeriesNoise(Noun):
    """What the runs before a change were like. `sees` is the smallest change that as many runs again would show."""

    cv: float | None = None
    grade: Literal["quiet", "normal", "noisy", "unusable"] | None = None
    correlation: float | None = None
    sees: float | None = None


class Change(Noun):
    """`effect` is relative, 0.05 is five per cent more, with its interval; `job_id` is the first result after it."""

    id: str
    series_id: str
    name: str
    title: str
    branch: str = ""
    machine: str
    metric: str
    unit: str
    better: Better
    kind: ChangeKind
    state: ChangeState
    job_id: str
    experiment_id: str
    measured_at: datetime
    last_good_job_id: str | None = None
    noticed_at: datetime
    commits: tuple[str | None, str | None] = (None, None)
    before: SeriesLevel
    after: SeriesLevel
    effect: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    noise: SeriesNoise = SeriesNoise()
    # What else differs between the results before and after, `kernel: 6.1 -> 6.5`.
    facts: tuple[str, ...] = ()
    # How the other metrics moved with it, relative.
    beside: dict[str, float] = {}
    path: tuple[str, ...] = ()
    settle: str = ""
    sentence: str = ""
    acknowledgement: Acknowledgement | None = None
    # A suspect that the history cannot tell from a machine with two speeds, and that no runs are going to decide.
    unsettled: bool = False
    # The canary beside the confirming runs says that the machine changed too.
    machine_changed: bool = False
    # The newest result that was known when a person, or runs side by side, decided of it.
    decided_after: str | None = None


class Series(Noun):
    """`learned` of `wanted` results are at the present level; more than that, and it is judged.

    `branch` is empty where it is the series of the default branch, or of results without a repository;
    `default_branch` is what that is called in the newest result's repository.
    """

    id: str
    name: str
    title: str
    branch: str = ""
    default_branch: str | None = None
    machine: str
    hardware_id: str
    metric: str
    unit: str
    better: Better
    state: SeriesState = SeriesState.LEARNING
    learned: int = 0
    wanted: int = 20
    runs: int = 0
    last_at: datetime | None = None
    last_value: float | None = None
    last_grade: Grade | None = None
    note: str = ""

    def is_of(self, branch: str | None) -> bool:
        """Is it a series of this branch? Empty is the default branch, which may be named too; None is any."""
        return branch is None or branch == self.branch or (not self.branch and branch == self.default_branch)


def select_branch(found: Sequence[Series], name: str, branch: str | None) -> tuple[Series, ...]:
    """Return those of a branch; None is any.

    Raises:
        NotFoundError: There are some, and all of other branches, which the hint names.
    """
    mine = tuple(one for one in found if one.is_of(branch))
    if mine or not found:
        return mine
    others = sorted({one.branch or one.default_branch or "the default branch" for one in found})
    shown = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
    raise NotFoundError(
        f"{name} has no results on {f'branch {branch}' if branch else 'the default branch'}",
        hint=f"it has some on {shown}: name one with --branch",
        code="no_series",
    )


class Baseline(Noun):
    """A result that later ones are held against."""

    series_id: str
    job_id: str
    experiment_id: str
    value: float | None = None
    set_at: datetime
    who: str = ""
    reason: str = ""


class NewBaseline(Noun):
    """Without a job it is the newest result that may be quoted."""

    job_id: Annotated[str, Field(max_length=128)] | None = None
    reason: Annotated[str, Field(max_length=1000)] = ""


class ForkResult(Noun):
    """The result that a branch is held against: the latest of its base at or before the commit it forked at.

    Where no result there is known to be that, `is_known` is False, `note` says why, and it is the latest of the base.
    `against` relates the branch's newest result to it, 0.05 is five per cent more.
    """

    base: str
    commit: str | None = None
    is_known: bool
    note: str = ""
    series_id: str
    job_id: str
    experiment_id: str
    measured_at: datetime
    value: float | None = None
    against: float | None = None


class History(Noun):
    """One series under one metric: every result, the levels with hindsight, what was told at the time."""

    series: Series
    metric: str
    unit: str
    better: Better
    points: tuple[Point, ...]
    segments: tuple[Segment, ...]
    changes: tuple[Change, ...]
    baseline: Baseline | None = None
    against_baseline: float | None = None
    # Of a branch's series, where its base has results.
    fork: ForkResult | None = None
    sentence: str = ""
