"""What a doubted change is put down to: the machine, or the load whose clients were the limit."""

from __future__ import annotations

import pytest

from prony.analyse.doubt import add_doubt
from prony.model.comparison import Conclusion, Contrast, Effect
from prony.model.estimate import Grade, Reason, Verdict
from prony.model.experiment_data import Entry

from ..made_sweeps import load_entry

KEY = "throughput_per_s.p50"
_EFFECT = Effect(value=0.9, low=0.88, high=0.92, method="made")
CHANGE = Contrast(
    key=KEY, unit="1/s", better="higher", role="headline", family="rate", effect=_EFFECT,
    conclusion=Conclusion.REGRESSION, sentence="Throughput p50 got worse, by 10 %.",
)  # fmt: skip


def _side(code: str = "") -> Entry:
    entry = load_entry(4, {KEY: [100.0] * 6})
    if not code:
        return entry
    verdict = Verdict(grade=Grade.SUSPECT, reasons=(Reason(code=code, text="It was low.", grade=Grade.SUSPECT),))
    return entry.model_copy(update={"summary": entry.summary.model_copy(update={"verdict": verdict})})


@pytest.mark.parametrize(
    ("code", "cause", "todo"),
    [
        ("contaminated", "The machine may be the cause", "Measure again on a quiet machine"),
        ("too_short", "The load may be the cause", "Make the load longer, or run"),
        ("client_bound", "The load may be the cause", "Change the load so that its clients are not the limit"),
    ],
)
def test_a_change_in_doubt_names_its_cause(code: str, cause: str, todo: str) -> None:
    found = add_doubt(CHANGE, _side(), _side(code), took_turns=False)
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.doubt.startswith(cause)
    assert f"It was low. {todo}" in found.doubt
