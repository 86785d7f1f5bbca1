"""Decide which agents a failure counts against, and when one is not to be trusted any more."""

from __future__ import annotations

from collections.abc import Iterable

from prony.model.queue import Attempt
from prony.model.result import Failure

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
