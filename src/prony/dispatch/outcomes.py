"""Decide what becomes of a job when one of its attempts has ended: it ends, waits again, or stays as it is."""

from __future__ import annotations

from prony.dispatch.retry import is_tried_again
from prony.model.queue import JobState
from prony.model.result import Failure, ResultState

_ENDS = {
    ResultState.COMPLETE: JobState.COMPLETE,
    ResultState.PARTIAL: JobState.PARTIAL,
    ResultState.FAILED: JobState.FAILED,
}


def after_result(result: ResultState, failure: Failure | None, *, tries_left: int, is_cancelled: bool) -> JobState:
    """Return what the result of its current attempt makes of a job; one that waits then is tried again."""
    if is_cancelled and result is not ResultState.COMPLETE:
        return JobState.CANCELLED
    may_do_better = result is ResultState.PARTIAL or (result is ResultState.FAILED and is_tried_again(failure))
    return JobState.WAITING if may_do_better and tries_left > 0 else _ENDS[result]


def after_loss(*, tries_left: int, is_cancelled: bool) -> JobState:
    """Return what becomes of a job whose lease was lost or given back."""
    if is_cancelled:
        return JobState.CANCELLED
    return JobState.WAITING if tries_left > 0 else JobState.FAILED


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
