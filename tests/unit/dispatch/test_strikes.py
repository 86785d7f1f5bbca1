"""Whom a failure counts against, and when an agent is not to be trusted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from prony.dispatch.outcomes import STRIKES, agents_to_strike, is_faulty, may_be_the_agent
from prony.model.queue import Attempt
from prony.model.result import Failure

AT = datetime(2025, 6, 1, tzinfo=UTC)


def attempt(number: int, agent_id: str, state: str) -> Attempt:
    return Attempt(number=number, agent_id=agent_id, state=state, leased_at=AT, ended_at=AT, reason="")


def test_whoever_failed_what_another_has_done_is_struck_once() -> None:
    tried = [
        attempt(1, "b", "failed"),
        attempt(2, "a", "lost"),
        attempt(3, "b", "lost"),
        attempt(4, "c", "returned"),
        attempt(5, "d", "failed"),
        attempt(6, "d", "complete"),
    ]
    assert agents_to_strike(tried, done_by="d") == ["a", "b"]


@pytest.mark.parametrize(("whose", "counts"), [("sut", True), ("prony", False), ("capacity", False), ("input", False)])
def test_only_what_failed_in_the_measured_system_may_be_the_agent(whose: str, counts: bool) -> None:
    assert may_be_the_agent(Failure.read({"code": "x", "message": "y", "whose": whose})) is counts
    assert not may_be_the_agent(None)


def test_an_agent_is_faulty_at_its_last_strike() -> None:
    assert not is_faulty(STRIKES - 1)
    assert is_faulty(STRIKES)
