"""Decide about placements: what is tried again, when to look again, and how one is called."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.job import Job
from prony.model.result import Failure
from prony.model.target import Observation, PlaceEnding, Placement, PlacePhase
from prony.ports.workload import kind_of

_FIRST_LOOK_S, _MOST_S, _GROWTH = 0.5, 60.0, 1.5
_WATCHED_S = 2.0
# The surroundings failed and not the job: somewhere else it may well succeed.
_ELSEWHERE = frozenset({PlaceEnding.NODE, PlaceEnding.LOST, PlaceEnding.PREEMPTED})


def placement_key(experiment_id: str, attempt: int, home_id: str) -> str:
    """Return a name that is used once, and that schedulers, file systems and clusters all take."""
    return f"prony-{experiment_id}-{attempt}-{home_id}".lower()[:63]


def observe(placement: Placement, seen: Observation) -> Placement:
    """Return a placement with what was seen of it."""
    changes = {
        "phase": seen.phase,
        "state": seen.state or placement.state,
        "reason": seen.reason,
        "ending": PlaceEnding.LOST if seen.phase is PlacePhase.LOST else seen.ending,
        "nodes": seen.nodes or placement.nodes,
        "is_suspect": placement.is_suspect or seen.is_suspect,
        "started_at": placement.started_at or seen.started_at,
        "offset": seen.offset,
    }
    return placement.model_copy(update=changes)


def explain_absence(seen: Observation, *, is_cancelled: bool) -> Observation:
    """Return what was seen of a run; one that was cancelled before it measured anything is gone, but not lost."""
    if not is_cancelled or seen.phase is not PlacePhase.LOST:
        return seen
    ended = {"phase": PlacePhase.ENDED, "ending": PlaceEnding.CANCELLED, "reason": "it was stopped before it measured"}
    return seen.model_copy(update=ended)


def sum_expected_s(jobs: Sequence[Job]) -> float | None:
    """Return how long jobs say that they last one after another; None where one does not say."""
    told = [kind_of(job.workload).prepare.expected_seconds(job) for job in jobs]
    return None if None in told else sum(one for one in told if one is not None)


def is_placed_again(placement: Placement, most: int) -> bool:
    """Was it the machine that failed, and may the jobs be placed once more?"""
    return placement.attempt < most and placement.ending in _ELSEWHERE


def nodes_to_avoid(last: Placement) -> tuple[str, ...]:
    """Return the nodes on which the next try is not to run; one whose job made room for another is not at fault."""
    return last.avoid if last.ending is PlaceEnding.PREEMPTED else (*last.avoid, *last.nodes)


def explain_ending(placement: Placement) -> Failure:
    """Return why a job at a target left no whole result, and so whether another try may do better."""
    ending, target = placement.ending or PlaceEnding.DONE, placement.target.name
    told = placement.reason or f"it ended at {target}: {placement.state or ending}"
    if ending in (PlaceEnding.DONE, PlaceEnding.TIME):
        return Failure(
            code="stopped_at_target",
            message=f"it was stopped at {target}, by its time limit or by a person: {told}",
            hint="if its time ran out, raise the target's minutes or measure less; else run it again",
            whose="input",
        )
    if ending is PlaceEnding.MEMORY:
        return Failure(code="out_of_memory", message=told, hint="request more memory there", whose="sut")
    return Failure(code="lost_at_target", message=told, hint=f"run prony targets check {target}", whose="prony")


def next_look_s(phase: PlacePhase, looks: int) -> float:
    """Return how long to wait before the look of this number: soon at first, seldom while it only waits."""
    if phase in (PlacePhase.QUEUED, PlacePhase.HELD, PlacePhase.LOST):
        return float(min(_FIRST_LOOK_S * _GROWTH ** min(looks, 20), _MOST_S))
    return min(_FIRST_LOOK_S * _GROWTH ** min(looks, 20), _WATCHED_S)
