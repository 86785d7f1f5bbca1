"""Machines that Prony goes to but does not own, and what was placed on them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.event import Event

TARGET_NAME = r"^[a-z0-9][a-z0-9-]{0,31}$"
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

    key: str = Field(pattern=r"^[a-z0-9-]{1,63}$")
    folder: str
    avoid: tuple[str, ...] = ()  # nodes on which it failed before


class Handle(Noun):
    """All that a new process needs to find a submitted payload again."""

    key: str
    native_id: str = ""  # the scheduler's own, where there is one
    submitted_at: datetime | None = None


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


class Placement(Noun):
    """One try to run jobs of an experiment at a target; written before anything is sent."""

    key: str
    experiment_id: str
    job_ids: tuple[str, ...]
    target: Target
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
