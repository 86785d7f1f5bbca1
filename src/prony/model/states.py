"""The state machines of a fleet, as tables: what may become what, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

from prony.errors import ConflictError
from prony.model.agent import AgentState
from prony.model.experiment import ExperimentState
from prony.model.queue import JobState
from prony.model.result import ResultState
from prony.model.target import PlacePhase

S = TypeVar("S", bound=StrEnum)

JOB: dict[JobState, frozenset[JobState]] = {
    # A result may come for a job that waits again: its lease was lost and its agent was not.
    JobState.WAITING: frozenset(JobState) - {JobState.WAITING},
    JobState.LEASED: frozenset(JobState) - {JobState.LEASED},
    # A complete job stays so. The others may be tried again, and a late result that is better than theirs counts.
    JobState.COMPLETE: frozenset(),
    JobState.PARTIAL: frozenset({JobState.WAITING, JobState.COMPLETE}),
    JobState.FAILED: frozenset({JobState.WAITING, JobState.COMPLETE, JobState.PARTIAL}),
    JobState.CANCELLED: frozenset({JobState.WAITING}),
}

EXPERIMENT: dict[ExperimentState, frozenset[ExperimentState]] = {
    ExperimentState.PENDING: frozenset(ExperimentState) - {ExperimentState.PENDING},
    ExperimentState.RUNNING: frozenset(ExperimentState) - {ExperimentState.PENDING, ExperimentState.RUNNING},
    # One whose jobs are tried again runs again; one that is complete may have jobs that failed.
    ExperimentState.COMPLETE: frozenset({ExperimentState.RUNNING}),
    ExperimentState.PARTIAL: frozenset({ExperimentState.RUNNING, ExperimentState.COMPLETE}),
    ExperimentState.FAILED: frozenset({ExperimentState.RUNNING, ExperimentState.COMPLETE, ExperimentState.PARTIAL}),
    ExperimentState.CANCELLED: frozenset({ExperimentState.RUNNING}),
}

AGENT: dict[AgentState, frozenset[AgentState]] = {
    AgentState.ACTIVE: frozenset(AgentState) - {AgentState.ACTIVE, AgentState.CLEANUP, AgentState.STOPPED},
    AgentState.BUSY: frozenset(AgentState) - {AgentState.BUSY},
    AgentState.CLEANUP: frozenset(AgentState) - {AgentState.CLEANUP},
    # Only a person makes a faulty agent active again: `prony agents reset`.
    AgentState.FAULTY: frozenset({AgentState.ACTIVE}),
    AgentState.LOST: frozenset({AgentState.ACTIVE, AgentState.DRAINING, AgentState.FAULTY}),
    AgentState.DRAINING: frozenset({AgentState.ACTIVE, AgentState.LOST, AgentState.FAULTY, AgentState.STOPPED}),
    # It drained and then fell silent with nothing in hand. Heard again, it drains as before.
    AgentState.STOPPED: frozenset({AgentState.ACTIVE, AgentState.DRAINING, AgentState.FAULTY}),
    # Active again by itself, as soon as it says that there is room.
    AgentState.DISK_FULL: frozenset({AgentState.ACTIVE, AgentState.LOST, AgentState.FAULTY, AgentState.DRAINING}),
}

_SEEN = frozenset(
    {PlacePhase.QUEUED, PlacePhase.STARTING, PlacePhase.RUNNING, PlacePhase.ENDING, PlacePhase.HELD, PlacePhase.ENDED,
     PlacePhase.LOST}
)  # fmt: skip
# A scheduler may put a job back into its queue, and what was lost may be seen again: the other side decides.
# What nobody waits for any more is cleared from wherever it is.
PLACEMENT: dict[PlacePhase, frozenset[PlacePhase]] = {
    PlacePhase.MADE: frozenset({PlacePhase.SUBMITTED, PlacePhase.CLEARED}),
    PlacePhase.SUBMITTED: _SEEN | {PlacePhase.CLEARED},
    **{phase: _SEEN - {phase} | {PlacePhase.CLEARED} for phase in _SEEN},
    PlacePhase.ENDED: frozenset({PlacePhase.FETCHED, PlacePhase.CLEARED}),
    PlacePhase.LOST: _SEEN - {PlacePhase.LOST} | {PlacePhase.FETCHED, PlacePhase.CLEARED},
    PlacePhase.FETCHED: frozenset({PlacePhase.CLEARED}),
    PlacePhase.CLEARED: frozenset(),
}

ENDED = frozenset({JobState.COMPLETE, JobState.PARTIAL, JobState.FAILED, JobState.CANCELLED})
OVER = frozenset(ExperimentState) - {ExperimentState.PENDING, ExperimentState.RUNNING}
# Agents in these states are given nothing.
IDLE_ONLY = frozenset(
    {AgentState.FAULTY, AgentState.LOST, AgentState.DRAINING, AgentState.DISK_FULL, AgentState.STOPPED}
)


def check_transition(table: dict[S, frozenset[S]], noun: str, now: S, wanted: S) -> None:
    """Refuse what the table does not allow."""
    if wanted not in table[now]:
        allowed = ", ".join(sorted(table[now])) or "nothing: it has ended"
        raise ConflictError(f"{noun} is {now} and cannot become {wanted}", hint=f"from here it may become {allowed}")


def experiment_outcome(states: dict[JobState, int]) -> ExperimentState:
    """Return how an experiment ended whose jobs ended in these states, each with its count."""
    present = {state for state, count in states.items() if count}
    if present == {JobState.CANCELLED}:
        return ExperimentState.CANCELLED
    if present == {JobState.FAILED}:
        return ExperimentState.FAILED
    return ExperimentState.COMPLETE if present <= {JobState.COMPLETE, JobState.FAILED} else ExperimentState.PARTIAL


def outcome_of_results(states: Sequence[ResultState], *, expected: int) -> ExperimentState:
    """Return how an experiment ended, from how its jobs did: one that measured nothing failed."""
    if all(state is ResultState.FAILED for state in states) and len(states) in (0, expected):
        return ExperimentState.FAILED
    if len(states) < expected or ResultState.PARTIAL in states:
        return ExperimentState.PARTIAL
    return ExperimentState.COMPLETE
