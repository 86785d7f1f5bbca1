"""What becomes of a job when an attempt has ended, was lost, or came late."""

from __future__ import annotations

import pytest

from prony.dispatch.outcomes import MOST_LENDS, after_late_result, after_loss, after_part, after_result, is_unreadable
from prony.model.queue import JobState
from prony.model.result import Failure, ResultState

OURS = Failure(code="x", message="y", whose="prony")
THEIRS = Failure(code="x", message="y", whose="sut")


@pytest.mark.parametrize(
    ("result", "failure", "tries_left", "job"),
    [
        (ResultState.COMPLETE, None, 2, JobState.COMPLETE),
        (ResultState.PARTIAL, None, 1, JobState.WAITING),
        (ResultState.PARTIAL, None, 0, JobState.PARTIAL),
        (ResultState.FAILED, OURS, 1, JobState.WAITING),
        (ResultState.FAILED, OURS, 0, JobState.FAILED),
        (ResultState.FAILED, THEIRS, 5, JobState.FAILED),
    ],
)
def test_a_job_waits_again_only_where_another_try_may_do_better(
    result: ResultState, failure: Failure | None, tries_left: int, job: JobState
) -> None:
    assert after_result(result, failure, tries_left=tries_left, is_cancelled=False) is job


@pytest.mark.parametrize("result", [ResultState.PARTIAL, ResultState.FAILED])
def test_a_job_that_was_to_be_cancelled_is_not_tried_again(result: ResultState) -> None:
    assert after_result(result, OURS, tries_left=3, is_cancelled=True) is JobState.CANCELLED


def test_a_whole_result_counts_although_its_job_was_to_be_cancelled() -> None:
    assert after_result(ResultState.COMPLETE, None, tries_left=0, is_cancelled=True) is JobState.COMPLETE


@pytest.mark.parametrize(
    ("tries_left", "is_cancelled", "job"),
    [(1, False, JobState.WAITING), (0, False, JobState.FAILED), (1, True, JobState.CANCELLED)],
)
def test_a_lost_lease_lets_its_job_wait_as_long_as_there_are_tries(
    tries_left: int, is_cancelled: bool, job: JobState
) -> None:
    assert after_loss(tries_left=tries_left, is_cancelled=is_cancelled) is job


@pytest.mark.parametrize("job", list(JobState))
def test_a_whole_result_that_comes_late_counts_unless_the_job_is_done_or_cancelled(job: JobState) -> None:
    is_over = job in (JobState.COMPLETE, JobState.CANCELLED)
    assert after_late_result(job, ResultState.COMPLETE) is (None if is_over else JobState.COMPLETE)


@pytest.mark.parametrize("job", list(JobState))
def test_part_of_a_result_that_comes_late_is_better_than_a_failure_only(job: JobState) -> None:
    expected = JobState.PARTIAL if job is JobState.FAILED else None
    assert after_late_result(job, ResultState.PARTIAL) is expected


@pytest.mark.parametrize("job", list(JobState))
def test_a_failure_that_comes_late_changes_nothing(job: JobState) -> None:
    assert after_late_result(job, ResultState.FAILED) is None


@pytest.mark.parametrize("state", ["failed", "lost", "returned", "cancelled"])
def test_a_member_of_a_gang_is_complete_or_has_failed_and_is_not_tried_alone(state: str) -> None:
    assert after_part(state) is JobState.FAILED
    assert after_part("complete") is JobState.COMPLETE


def test_an_agent_may_miss_some_answers_before_it_is_taken_for_one_that_cannot_read_the_job() -> None:
    assert [is_unreadable(lends) for lends in (1, MOST_LENDS - 1, MOST_LENDS)] == [False, False, True]
