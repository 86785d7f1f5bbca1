"""Decide whether and when a job is tried again."""

from __future__ import annotations

from prony.model.result import Failure

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
