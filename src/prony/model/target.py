"""Machines that Prony goes to but does not own, and what was placed on them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.event import Event

TARGET_NAME = r"^[a-z0-9][a-z0-9-]{0,31}$"
PLACEMENT_KEY = r"^[a-z0-9-]{1,63}$"
MOST_SLOTS = 500
OptionValue = str | int | bool | tuple[str, ...]


class Target(Noun):
    """One place of `targets.toml`: which executor goes there, and its options as a person wrote them."""

    name: str
    kind: str
    options: dict[str, OptionValue] = {}


class PlacePhase(StrEnum):
    """How far a placement is. `held`: a person must act; `lost`: it is nowhere, and left nothing."""

    MADE = "made"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    HELD = "held"
    ENDED = "ended"
    LOST = "lost"
    FETCHED = "fetched"
    CLEARED = "cleared"


class PlaceEnding(StrEnum):
    """How it ended. `unstarted`: the runner never came up; `node`: the machine failed, not the job; `preempted`: it had
    to make room for another."""

    DONE = "done"
    KILLED = "killed"
    TIME = "time"
    MEMORY = "memory"
    NODE = "node"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    UNSTARTED = "unstarted"
    LOST = "lost"


class Payload(Noun):
    """What is sent: a folder of job files and inputs, named by a key that is used once."""

    key: str = Field(pattern=PLACEMENT_KEY)
    folder: str
    avoid: tuple[str, ...] = ()  # nodes on which it failed before
    expected_s: float | None = None  # how long it is expected to run; None where nobody knows
    nodes: int = Field(default=1, ge=1)  # that run it together
    others: Target | None = None  # whose nodes all but the first are, where not of the same target


class Handle(Noun):
    """All that a new process needs to find a submitted payload again."""

    key: str
    native_id: str = ""  # the scheduler's own, where there is one
    submitted_at: datetime | None = None
    wall_minutes: int | None = None  # what was asked for, where there is a limit


class Observation(Noun):
    """What was seen of one placement. `state` and `reason` are in the words of the other side."""

    key: str
    phase: PlacePhase
    state: str = ""
    reason: str = ""
    ending: PlaceEnding | None = None
    native_id: str = ""
    nodes: tuple[str, ...] = ()
    started_at: datetime | None = None
    is_suspect: bool = False  # it was stopped and continued while its clock ran
    events: tuple[Event, ...] = ()
    offset: int = 0  # where the next look reads on


class SentFile(Noun):
    """A file of a result folder at a target, so that a copy of it can be checked."""

    size: int
    sha256: str


class DoneNote(Noun):
    """Written last: what came of the folder, and every file of its results, so that a reader knows whole from half."""

    exit_code: int
    node: str = ""
    stopped: bool = False
    error: str = ""
    hint: str = ""
    files: dict[str, SentFile] = {}


class CheckLine(Noun):
    """One thing that was looked for at a target. `failed` stops every run there; `command` is what was tried."""

    title: str
    status: Literal["ok", "warn", "failed"]
    value: str = ""
    hint: str = ""
    command: str = ""


class CleanedTarget(Noun):
    """Keys of what a cleaning found at a target: removed, fetched and then removed, or left because it is in use."""

    removed: tuple[str, ...] = ()
    fetched: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class TargetOffer(Noun):
    """The target that a stand-in agent goes to; `slots`: so many of a server's jobs it has there at once."""

    name: str = Field(pattern=TARGET_NAME)
    kind: str = Field(max_length=100)
    slots: int = Field(ge=1, le=MOST_SLOTS)


class PlacementNote(Noun):
    """How a server's job fares at a target, as the stand-in agent tells it."""

    target: str = Field(pattern=TARGET_NAME)
    kind: str = Field(max_length=100)
    key: str = Field(pattern=PLACEMENT_KEY)
    phase: PlacePhase
    state: str = Field(default="", max_length=100)
    reason: str = Field(default="", max_length=2000)
    ending: PlaceEnding | None = None
    native_id: str = Field(default="", max_length=100)
    wall_minutes: int | None = None
    nodes: tuple[Annotated[str, Field(max_length=1000)], ...] = Field(default=(), max_length=1000)
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def waits_s(self) -> float | None:
        """How long it waited in the queue there before it ran; None while that is not known."""
        if self.submitted_at is None or self.started_at is None:
            return None
        return max(0.0, (self.started_at - self.submitted_at).total_seconds())


class PlacementView(Noun):
    """A placement of a server's job: which job it is, who placed it, and how it fares."""

    number: int
    job_id: str
    experiment_id: str
    agent_id: str
    attempt: int
    note: PlacementNote


class ServedTarget(Noun):
    """A target that a stand-in agent goes to for a server."""

    name: str
    kind: str
    slots: int
    agent_id: str
    agent_state: str
    placed: dict[PlacePhase, int] = {}  # what is there now


class Placement(Noun):
    """One try to run jobs of an experiment at a target; written before anything is sent."""

    key: str
    experiment_id: str
    job_ids: tuple[str, ...]
    target: Target
    clients: Target | None = None  # whose nodes send the load, where not those of the same target
    attempt: int = 1
    avoid: tuple[str, ...] = ()
    phase: PlacePhase = PlacePhase.MADE
    handle: Handle | None = None
    state: str = ""
    reason: str = ""
    ending: PlaceEnding | None = None
    nodes: tuple[str, ...] = ()
    is_suspect: bool = False
    made_at: datetime
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    offset: int = 0

    def note(self) -> PlacementNote:
        """Return what a server is told of it."""
        return PlacementNote(
            target=self.target.name,
            kind=self.target.kind,
            key=self.key,
            phase=self.phase,
            state=self.state[:100],
            reason=self.reason[:2000],
            ending=self.ending,
            native_id=self.handle.native_id[:100] if self.handle else "",
            wall_minutes=self.handle.wall_minutes if self.handle else None,
            nodes=self.nodes,
            submitted_at=self.submitted_at,
            started_at=self.started_at,
            ended_at=self.ended_at,
        )
