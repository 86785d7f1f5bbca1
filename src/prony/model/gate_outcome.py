"""What became of the gates of a recipe: passed, failed, or cannot tell, each with the number that decided."""

from __future__ import annotations

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
