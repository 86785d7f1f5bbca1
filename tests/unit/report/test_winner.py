"""A winner is named only where the comparison names one."""

from __future__ import annotations

import pytest

from prony.model.comparison import Compared, Comparison, Conclusion, Contrast, Effect, Match, Terms
from prony.model.estimate import Grade, Verdict
from prony.report.winner import describe_winner

VALID, VOID = Verdict(grade=Grade.VALID), Verdict(grade=Grade.VOID)


def pair(
    first: str, second: str, conclusion: Conclusion, ratio: float, *, verdict: Verdict = VALID, more: int | None = None
) -> Match:
    effect = Effect(
        value=ratio, low=ratio * 0.9, high=ratio * 1.1, confidence=0.96, p=0.002, runs=(10, 10), method="ranks"
    )
    contrast = Contrast(
        key="inference_ms.p50", unit="ms", better="lower", role="headline", family="inference", effect=effect,
        conclusion=conclusion, sentence="They were not judged.", more_runs=more,
    )  # fmt: skip
    sides = [
        Compared(experiment_id="e", job_id=name, title=name, cell={"workload.engine": name}, verdict=verdict)
        for name in (first, second)
    ]
    return Match(title="t", baseline=sides[0], candidate=sides[1], contrasts=(contrast,))


def sentence(*matches: Match) -> str:
    return describe_winner(
        Comparison(
            terms=Terms(), baseline="a", candidates=(), matches=matches, conclusion=Conclusion.WITHIN, sentence=""
        )
    )


def test_the_faster_of_two_is_named_with_ratio_interval_and_chance() -> None:
    said = sentence(pair("a", "b", Conclusion.REGRESSION, 2.0))
    assert (
        said == "a is faster than b, which takes 2 [1.8, 2.2] times as long (96 % interval, p = 0.002, 10 and 10 runs)."
    )


def test_the_second_of_two_may_be_the_faster_one_and_the_ratio_is_turned_round() -> None:
    said = sentence(pair("a", "b", Conclusion.IMPROVEMENT, 0.5))
    assert said.startswith("b is faster than a, which takes 2 [1.81, 2.23] times as long")


def test_of_several_the_fastest_is_held_against_the_next() -> None:
    said = sentence(pair("a", "b", Conclusion.REGRESSION, 3.0), pair("a", "c", Conclusion.REGRESSION, 2.0))
    assert said.startswith("a is the fastest; the next, c, takes 2 [1.8, 2.2] times as long")


@pytest.mark.parametrize(
    ("conclusion", "told"),
    [
        (Conclusion.EQUIVALENT, "a and c are equally fast: the difference is too small to matter."),
        (Conclusion.INCONCLUSIVE, "a and c are not distinguishable with these runs; about 7 more"),
    ],
)  # fmt: skip
def test_no_winner_is_named_where_one_is_not_slower(conclusion: Conclusion, told: str) -> None:
    assert sentence(pair("a", "b", Conclusion.REGRESSION, 3.0), pair("a", "c", conclusion, 1.0, more=7)).startswith(
        told
    )


def test_void_results_have_no_winner() -> None:
    said = sentence(pair("a", "b", Conclusion.INSUFFICIENT, 3.0, verdict=VOID))
    assert said == "No winner: a and b are void, for the reasons above."
    assert sentence(pair("a", "b", Conclusion.INSUFFICIENT, 3.0)) == "No winner: They were not judged."
    assert sentence() == "No winner: nothing could be compared."
