"""The two sides of a duet: in one job each, or run by run in a job of its own."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from prony.analyse.compare.compare import compare_entries
from prony.model.calibration import Calibration
from prony.model.comparison import Comparison, Conclusion, Terms
from prony.model.estimate import Estimate, Grade, Reason, Verdict
from prony.model.experiment_data import Entry
from prony.model.result import InputFacts

from .sides import VOID, entry, noisy, side

KEY = "inference_ms.p50"
CELLS = {"a": {"workload.threads": 1}, "b": {"workload.threads": 2}}


def whole(name: str, values: list[float], *, used: tuple[int, ...] = (), verdict: Verdict | None = None) -> Entry:
    made = entry(
        {KEY: values} if values else {},
        number="ab".index(name) + 1,
        cell=CELLS[name],
        verdict=verdict or Verdict(grade=Grade.VALID),
    )
    summary = made.summary.model_copy(update={"used": used or made.summary.used})
    return made.model_copy(update={"job": made.job.model_copy(update={"side": name}), "summary": summary})


def apart(name: str, values: list[float], *, without: int | None = None) -> list[Entry]:
    """Return one job for each run, as a server hands them out."""
    one_run = Verdict(grade=Grade.SUSPECT, reasons=(Reason(code="one_run", text="One run.", grade=Grade.SUSPECT),))
    found = []
    for pair, value in enumerate(values):
        made = entry({KEY: [value]}, number=2 * pair + "ab".index(name) + 1, cell=CELLS[name], verdict=one_run)
        job = made.job.model_copy(update={"side": name, "pair": pair})
        found.append(made.model_copy(update={"job": job}))
    return [one for one in found if one.job.pair != without]


def judged(*entries: Entry) -> Comparison:
    return compare_entries([side("d", *entries)], Terms(metrics=(KEY,)))


def test_what_drifts_alike_on_both_sides_does_not_hide_the_change() -> None:
    drift = [1 + 0.1 * place for place in range(10)]
    before = [value * level for value, level in zip(noisy(10, 10), drift, strict=True)]
    after = [value * level * 1.06 for value, level in zip(noisy(10, 10, seed=1), drift, strict=True)]
    found = judged(whole("a", before), whole("b", after))
    (contrast,) = found.headlines
    assert contrast.conclusion is Conclusion.REGRESSION
    assert contrast.effect is not None
    assert contrast.effect.method.startswith("paired")
    assert found.matches[0].interleaved


def test_side_a_is_what_side_b_is_held_against() -> None:
    found = judged(whole("b", noisy(5, 10)), whole("a", noisy(10, 10, seed=1)))
    assert found.headlines[0].conclusion is Conclusion.IMPROVEMENT
    assert (found.baseline, found.candidates) == ("d side a", ("d side b",))


def test_only_pairs_of_which_both_runs_count_are_compared() -> None:
    before, after = noisy(10, 10), noisy(10.8, 9, seed=1)
    found = judged(whole("a", before), whole("b", after, used=(0, 1, 2, 4, 5, 6, 7, 8, 9)))
    effect = found.headlines[0].effect
    assert effect is not None
    assert effect.runs == (9, 9)


def test_where_few_pairs_are_whole_all_runs_of_both_sides_are_compared_as_two_sets() -> None:
    before, after = (
        whole("a", noisy(10, 5), used=(0, 1, 2, 4, 5)),
        whole("b", noisy(11, 7, seed=1), used=tuple(range(1, 8))),
    )
    (contrast,) = judged(before, after).headlines
    assert contrast.effect is not None
    assert contrast.effect.runs == (5, 7)
    assert contrast.conclusion is Conclusion.REGRESSION


def test_runs_that_were_jobs_of_their_own_are_put_together_by_their_pairs() -> None:
    found = judged(*apart("a", noisy(10, 10), without=3), *apart("b", noisy(10.8, 10, seed=1)))
    (match,) = found.matches
    (contrast,) = match.contrasts
    assert contrast.effect is not None
    assert contrast.effect.runs == (9, 9)
    assert contrast.conclusion is Conclusion.REGRESSION
    assert contrast.baseline is not None
    assert contrast.baseline.count == 9
    assert match.baseline.verdict.grade is Grade.VALID
    assert match.title == "side b: threads=2 against side a: threads=1"


def test_both_ways_of_running_a_duet_say_the_same() -> None:
    before, after = noisy(10, 10), noisy(10.5, 10, seed=1)
    one = judged(whole("a", before), whole("b", after)).headlines[0]
    other = judged(*apart("a", before), *apart("b", after)).headlines[0]
    assert one.effect == other.effect
    assert one.sentence == other.sentence


def test_what_disturbed_both_sides_does_not_forbid_to_compare_them_but_is_told() -> None:
    found = judged(whole("a", noisy(10, 10), verdict=VOID), whole("b", noisy(10.8, 10, seed=1), verdict=VOID))
    assert found.headlines[0].conclusion is Conclusion.REGRESSION
    assert any("90 % of the CPU" in note for note in found.notes)


def test_a_side_without_a_number_is_insufficient() -> None:
    reasons = (Reason(code="no_success", text="Nothing ran.", grade=Grade.VOID),)
    found = judged(whole("a", noisy(10, 10)), whole("b", [], verdict=Verdict(grade=Grade.VOID, reasons=reasons)))
    assert found.conclusion is Conclusion.INSUFFICIENT


def deep_calibration(**changed: float) -> Calibration:
    found = {"run_noise": 0.02, "seen_with_10_runs": 0.031, "false_alarm_rate": 0.005, **changed}
    figures = {name: Estimate(value=value, unit="1", count=40, method="tried") for name, value in found.items()}
    return Calibration(
        id="c", hardware_id="h", software_id="s", taken_at=datetime(2026, 1, 2, tzinfo=UTC),
        figures=figures, noise_class="normal", alpha=0.01,
    )  # fmt: skip


def test_what_a_deep_calibration_found_stands_beside_a_comparison_and_sets_its_level() -> None:
    calibration = deep_calibration(false_alarm_rate=0.05).model_copy(update={"alpha": 0.002})
    sides = [side("one", entry({KEY: noisy(10, 5)})), side("two", entry({KEY: noisy(11, 5, seed=1)}, experiment="e2"))]
    loose = compare_entries(sides, Terms(metrics=(KEY,)))
    strict = compare_entries(sides, Terms(metrics=(KEY,)), calibration)
    assert loose.headlines[0].conclusion is Conclusion.REGRESSION  # five against five: p is 1/126
    assert strict.headlines[0].conclusion is Conclusion.INCONCLUSIVE
    assert strict.terms.level == 0.002
    assert any("10 runs on each side can detect 3.1%" in note for note in strict.notes)


@pytest.mark.parametrize(
    ("spread", "results", "expected", "said"),
    [
        (None, 0, 0.0283, "differ by about 2.8 % (assumed: no earlier results)."),
        (
            0.004,
            0,
            0.0283,
            "differ by about 2.8 % (assumed: no earlier results, and the deep calibration found less).",
        ),
        (
            0.06,
            0,
            0.0849,
            "differ by about 8.5 % (from this machine's deep calibration: there are no earlier results).",
        ),
        (0.06, 10, 0.0424, "differ by about 4.2 % (from 10 earlier results and this machine's deep calibration)."),
        (0.004, 10, 0.0141, "differ by about 1.4 % (from 10 earlier results)."),
    ],
)
def test_a_deep_calibration_tells_how_far_results_lie_apart_where_the_history_does_not(
    spread: float | None, results: int, expected: float, said: str
) -> None:
    sides = [side("one", entry({KEY: noisy(10, 5)})), side("two", entry({KEY: noisy(11, 5, seed=1)}, experiment="e2"))]
    calibration = deep_calibration(**{} if spread is None else {"session_spread": spread})
    earlier = {one.entries[0].job.id: [{KEY: 10.0}] * results for one in sides}
    found = compare_entries(sides, Terms(metrics=(KEY,)), calibration, earlier)
    effect = found.headlines[0].effect
    assert effect is not None
    assert effect.apart == pytest.approx(expected, abs=1e-4)
    assert found.notes[0].endswith(said)


def test_a_disturbed_calibration_tells_nothing_of_how_far_results_lie_apart() -> None:
    sides = [side("one", entry({KEY: noisy(10, 5)})), side("two", entry({KEY: noisy(11, 5, seed=1)}, experiment="e2"))]
    busy = deep_calibration(session_spread=0.2).model_copy(update={"disturbed": ("foreign_cpu: busy",)})
    effect = compare_entries(sides, Terms(metrics=(KEY,)), busy).headlines[0].effect
    assert effect is not None
    assert effect.apart_calibrated is None
    assert effect.apart == pytest.approx(0.0283, abs=1e-4)


def test_two_models_of_a_duet_are_compared_with_the_inputs_that_each_wants() -> None:
    fed = InputFacts(name="x", dtype="float32", shape=(1, 3), shape_source="model", values_source="", sha256="0" * 64)
    sides = []
    for number, (name, model, level) in enumerate((("a", "zoo:tiny", 10.0), ("b", "zoo:mlp", 20.0)), start=1):
        made = entry({KEY: noisy(level, 8)}, number=number, cell={"workload.model": model})
        facts = made.result.model.model_copy(update={"sha256": str(number) * 64}) if made.result.model else None
        inputs = (fed.model_copy(update={"name": f"input{number}"}),)
        result = made.result.model_copy(update={"model": facts, "inputs": inputs})
        sides.append(made.model_copy(update={"job": made.job.model_copy(update={"side": name}), "result": result}))
    found = judged(*sides)
    assert found.conclusion is Conclusion.REGRESSION
    assert all(one.allowed for one in found.matches[0].differences)
