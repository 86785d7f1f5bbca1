"""Format gate outcomes: a summary sentence and table rows for every output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prony.model.gate import GateOutcome, GateState
from prony.report.load_tables import FigureLine

_MOST_TOLD = 4  # the table has all
HEADINGS = ("gate", "job", "outcome", "why")
MARKS = {GateState.PASSED: "✔", GateState.FAILED: "✖", GateState.CANNOT_TELL: "?"}
_WORST_FIRST = (GateState.FAILED, GateState.CANNOT_TELL, GateState.PASSED)


def summarise_gates(outcomes: Sequence[GateOutcome]) -> str:
    """Return `Gates: 3 passed, 1 failed.`; empty where there are none."""
    counted = Counter(one.state for one in outcomes)
    told = ", ".join(f"{counted[state]} {state.word}" for state in _WORST_FIRST if counted[state])
    return f"Gates: {told}." if told else ""


def sentences(outcomes: Sequence[GateOutcome]) -> list[str]:
    """Return the sum, and what is wrong with the first gates that did not pass."""
    if not outcomes:
        return []
    open_ = [one for one in worst_gates_first(outcomes) if one.state is not GateState.PASSED]
    told = [f"Gate {one.gate} of {one.title} {_verb(one.state)}: {one.text}" for one in open_[:_MOST_TOLD]]
    more = [f"And {len(open_) - _MOST_TOLD} more gates did not pass."] if len(open_) > _MOST_TOLD else []
    return [summarise_gates(outcomes), *told, *more]


def worst_gates_first(outcomes: Sequence[GateOutcome]) -> list[GateOutcome]:
    """Return the worst first, else as they were written."""
    return sorted(outcomes, key=lambda one: _WORST_FIRST.index(one.state))


def lines(outcomes: Sequence[GateOutcome]) -> list[FigureLine]:
    return [
        FigureLine(one.gate, (one.title, f"{MARKS[one.state]} {one.state.word}", one.text))
        for one in worst_gates_first(outcomes)
    ]


def _verb(state: GateState) -> str:
    return "is undecided" if state is GateState.CANNOT_TELL else state.value
