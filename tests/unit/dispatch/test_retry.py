"""Whose failures are tried again, and how long the pauses are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.dispatch.outcomes import FIRST_PAUSE_S, LONGEST_PAUSE_S, is_due, is_tried_again, pause_s
from prony.model.result import Failure


@pytest.mark.parametrize(("whose", "again"), [("prony", True), ("capacity", True), ("sut", False), ("input", False)])
def test_only_what_another_time_or_device_may_do_better_is_tried_again(whose: str, again: bool) -> None:
    assert is_tried_again(Failure.read({"code": "x", "message": "y", "whose": whose})) is again


def test_an_attempt_that_was_lost_with_its_agent_is_tried_again() -> None:
    assert is_tried_again(None)


def test_pauses_double_up_to_five_minutes() -> None:
    assert [pause_s(count) for count in range(10)] == [2, 2, 4, 8, 16, 32, 64, 128, 256, 300]


@given(st.integers(-5, 10**9))
def test_every_number_of_failures_has_a_pause_that_ends(failures: int) -> None:
    assert FIRST_PAUSE_S <= pause_s(failures) <= LONGEST_PAUSE_S
    assert pause_s(failures) <= pause_s(failures + 1)


@given(st.floats(0, 4e9), st.integers(1, 30))
def test_a_pause_is_over_when_it_is_and_where_no_clock_could_have_meant_it(now: float, failures: int) -> None:
    due = now + pause_s(failures)
    assert not is_due(due, now)
    assert is_due(due, due)
    assert is_due(due, due + 10**8)  # the clock was set forward
    assert is_due(due, due - LONGEST_PAUSE_S - 1)  # and back
    assert is_due(0.0, now)
