"""What became of the gates of a recipe: passed, failed, or cannot tell, each with the number that decided."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from prony.model.base import Noun
from prony.model.estimate import Estimate


class GateState(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "cannot tell"


class GateOutcome(Noun):
    """One gate on one job. `text` is a sentence with the number behind it, and what would settle what is open."""

    gate: str
    job_id: str
    title: str
    state: GateState
    estimate: Estimate | None = None
    limit: float | None = None
    text: str


def strictly(outcomes: Iterable[GateOutcome]) -> tuple[GateOutcome, ...]:
    """Return the outcomes where what cannot be told fails too."""
    return tuple(one if one.state is not GateState.CANNOT_TELL else _turn_into_failure(one) for one in outcomes)


def _turn_into_failure(one: GateOutcome) -> GateOutcome:
    changes = {"state": GateState.FAILED, "text": f"This cannot be told, and the gates are strict. {one.text}"}
    return one.model_copy(update=changes)


class GateReport(Noun):
    """All gates of one experiment. `strict`: what cannot be told fails too."""

    experiment_id: str
    name: str = ""
    strict: bool = False
    outcomes: tuple[GateOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        """May the build go on?"""
        bad = {GateState.FAILED, GateState.CANNOT_TELL} if self.strict else {GateState.FAILED}
        return not any(one.state in bad for one in self.outcomes)
