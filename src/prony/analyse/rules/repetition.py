"""Rules on how many runs stand behind the number, and how well they agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from prony.analyse.evidence import Evidence, note, percent, runs_text, suspect, void
from prony.model.estimate import Reason
from prony.model.result import ResultState
from prony.stats.intervals import rate_interval
from prony.stats.spread import detectable_change, robust_cv
from prony.stats.stopping import achieved_precision

_FEWEST_CLEAN = 5
_WIDEST = 0.10
_BLIND_BELOW = 0.05


def nothing_measured(evidence: Evidence) -> Iterator[Reason]:
    """Nothing that succeeded: there is no number to quote."""
    if evidence.runs or evidence.headline is not None:
        return
    failure = evidence.result.failure
    failures = [repetition.failure for repetition in evidence.result.repetitions if repetition.failure is not None]
    first = failure or (failures[0] if failures else None)
    cause = f": {first.message}" if first else ""
    tried = len(evidence.result.repetitions)
    yield void(
        "no_success", f"None of {tried} repetitions gave a measurement{cause}." if tried else f"Nothing ran{cause}."
    )


def failed_repetitions(evidence: Evidence) -> Iterator[Reason]:
    """Some repetitions failed while others did not: the system under test is not reliable."""
    ended = [repetition for repetition in evidence.result.repetitions if repetition.state != "cancelled"]
    failed = [repetition for repetition in ended if repetition.state == "failed"]
    interval = rate_interval(len(failed), len(ended))
    if not evidence.runs or not failed or interval is None:
        return
    message = next(
        (repetition.failure.message for repetition in failed if repetition.failure is not None), "no reason given"
    )
    yield suspect(
        "failed_repetitions",
        f"{len(failed)} of {len(ended)} repetitions failed ({percent(interval[0])} to {percent(interval[1])} of them "
        f"with 95 % confidence), the first one with: {message}.",
    )


def partial_result(evidence: Evidence) -> Iterator[Reason]:
    """The job was stopped before its end."""
    if evidence.result.state == ResultState.PARTIAL:
        measure = evidence.job.measure
        planned = f"up to {measure.until.max_repeats}" if measure.until else str(measure.repeats)
        yield suspect("partial", f"The job was stopped early: {runs_text(len(evidence.runs))} of {planned} planned.")


def few_runs(evidence: Evidence) -> Iterator[Reason]:
    """An interval over runs needs runs."""
    clean = len(evidence.runs) - len(evidence.selection.contaminated)
    if len(evidence.runs) == 1:
        yield suspect("one_run", "One run cannot show run-to-run spread: the interval speaks of that one process only.")
    elif evidence.runs and clean < _FEWEST_CLEAN:
        stand = f"Only {runs_text(clean, 'clean')} stand{'s' if clean == 1 else ''}" if clean else "No clean run stands"
        yield suspect("few_runs", f"{stand} behind this number; {_FEWEST_CLEAN} are needed.")


def wide_interval(evidence: Evidence) -> Iterator[Reason]:
    """The runs disagree so much that the number says little."""
    width = evidence.headline.relative_half_width if evidence.headline else None
    if width is not None and width > _WIDEST:
        yield suspect(
            "wide_interval",
            f"The interval of the median is ±{percent(width)} wide, more than ±{percent(_WIDEST)}: "
            "make more runs, or quieten the machine.",
        )


def until_reached(evidence: Evidence) -> Iterator[Reason]:
    """The recipe asked for a width: say what was reached."""
    until = evidence.job.measure.until
    if until is None or not evidence.runs:
        return
    width = achieved_precision(evidence.numbers)
    if width is None or width > until.ci:
        reached = "no 95 % interval yet" if width is None else f"±{percent(width)}"
        yield note(
            "ci_not_reached",
            f"The recipe asks for ±{percent(until.ci)}; {runs_text(len(evidence.runs))} reached {reached}.",
        )


def blind(evidence: Evidence) -> Iterator[Reason]:
    """What this machine cannot see with so many runs."""
    if len(evidence.runs) < 3:
        return
    spread = robust_cv(np.array(evidence.numbers))
    smallest = detectable_change(spread, len(evidence.runs)) if spread else 0.0
    if smallest > _BLIND_BELOW:
        yield note(
            "detectable_change",
            f"With {runs_text(len(evidence.runs))} that vary by {percent(spread or 0.0)}, a change of less than "
            f"{percent(smallest)} cannot be seen here.",
        )
