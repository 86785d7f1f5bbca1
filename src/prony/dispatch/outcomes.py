"""Decide what becomes of a job when an attempt ended, whether it is tried again, and whom a failure counts against."""

from __future__ import annotations

from collections.abc import Iterable

from prony.model.queue import Attempt, JobState
from prony.model.result import Failure, ResultState

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0


def is_tried_again(failure: Failure | None) -> bool:
    """Say whether another device or time may do better: never for a failing system under test or a wrong recipe.

    An attempt without any result (`None`) was lost with its agent.
    """
    return failure is None or failure.whose in ("prony", "capacity")


def pause_s(failures: int) -> float:
    """Return how long to wait after so many failures in a row: twice as long each time, up to five minutes."""
    doublings = min(max(failures - 1, 0), 10)  # more make no difference, and far more are no float
    return float(min(FIRST_PAUSE_S * 2.0**doublings, LONGEST_PAUSE_S))


def is_due(not_before: float, now: float) -> bool:
    """Say whether a pause is over; one that ends later than any pause can was made by a clock that was wrong."""
    return not_before <= now or not_before > now + LONGEST_PAUSE_S


_ENDS = {
    ResultState.COMPLETE: JobState.COMPLETE,
    ResultState.PARTIAL: JobState.PARTIAL,
    ResultState.FAILED: JobState.FAILED,
}


def after_result(result: ResultState, failure: Failure | None, *, tries_left: int, is_cancelled: bool) -> JobState:
    """Return what the result of its current attempt makes of a job; one that waits then is tried again."""
    if is_cancelled and result is not ResultState.COMPLETE:
        return JobState.CANCELLED
    # Part of a result is better than none, and the rest may come; not where its own recipe or target cut it short.
    is_cut = result is ResultState.PARTIAL and (failure is None or failure.whose != "input")
    may_do_better = is_cut or (result is ResultState.FAILED and is_tried_again(failure))
    return JobState.WAITING if may_do_better and tries_left > 0 else _ENDS[result]


def after_loss(*, tries_left: int, is_cancelled: bool) -> JobState:
    """Return what becomes of a job whose lease was lost or given back."""
    if is_cancelled:
        return JobState.CANCELLED
    return JobState.WAITING if tries_left > 0 else JobState.FAILED


def after_part(attempt_state: str) -> JobState:
    """Return what the end of its attempt makes of a member of a gang: no member is tried again alone."""
    return JobState.COMPLETE if attempt_state == "complete" else JobState.FAILED


# Answers get lost one at a time. An agent that asks once more after so many never heard of the job cannot read it.
MOST_LENDS = 5


def is_unreadable(lends: int) -> bool:
    """Say whether an agent that was lent a job so many times, and never began it, can read it at all."""
    return lends >= MOST_LENDS


def after_late_result(job: JobState, result: ResultState) -> JobState | None:
    """Return what a job becomes by a result of a lease that it had lost; None where it stays as it is.

    A whole result still counts, and whoever runs the job again may stop. Part of one is better than nothing, where the
    job has failed for good.
    """
    if result is ResultState.COMPLETE and job not in (JobState.COMPLETE, JobState.CANCELLED):
        return JobState.COMPLETE
    if result is ResultState.PARTIAL and job is JobState.FAILED:
        return JobState.PARTIAL
    return None


# So many jobs that failed here and were done elsewhere, without one success between them.
STRIKES = 3


def agents_to_strike(attempts: Iterable[Attempt], *, done_by: str) -> list[str]:
    """Return the agents on which a job failed that another has done."""
    return sorted({one.agent_id for one in attempts if one.state in ("failed", "lost")} - {done_by})


def may_be_the_agent(failure: Failure | None) -> bool:
    """May it be the agent's fault? What Prony or a wrong recipe did says nothing about it."""
    return failure is not None and failure.whose == "sut"


def is_faulty(strikes: int) -> bool:
    return strikes >= STRIKES
