"""A gate passes or fails only with a whole interval; all else cannot be told, and says what would settle it."""

from __future__ import annotations

import pytest

from prony.analyse.gates import judge_gates
from prony.model.estimate import Estimate, Grade, Missing, Reason, Verdict
from prony.model.gate import GateOutcome, GateReport, GateState

from .made_sweeps import model_entry

RUNS = {"inference_ms.p50": [10.0, 10.2, 10.4, 10.6, 10.8, 11.0], "throughput_per_s.p50": [90.0, 95, 100, 105, 110, 99]}


def judged(text: str, grade: Grade = Grade.VALID, worse: Estimate | str = "there is no earlier one") -> GateOutcome:
    (found,) = judge_gates([text], model_entry(0, RUNS, grade=grade).summary, lambda _: worse)
    return found


@pytest.mark.parametrize(
    ("gate", "state"),
    [
        ("inference_ms.p50 <= 11", GateState.PASSED),
        ("inference_ms.p50 <= 9.9", GateState.FAILED),
        ("inference_ms.p50 <= 10.5", GateState.CANNOT_TELL),
        ("throughput_per_s >= 90", GateState.PASSED),
        ("throughput_per_s > 110", GateState.FAILED),
        ("throughput_per_s >= 100", GateState.CANNOT_TELL),
        ("verdict == valid", GateState.PASSED),
        ("verdict != valid", GateState.FAILED),
        ("load_ms <= 5", GateState.CANNOT_TELL),
    ],
)
def test_the_whole_interval_decides(gate: str, state: GateState) -> None:
    assert judged(gate).state is state


def test_what_is_open_says_how_many_runs_would_settle_it() -> None:
    assert "runs would decide it, instead of 6" in judged("inference_ms.p50 <= 10.6").text


def test_one_run_passes_nothing() -> None:
    entry = model_entry(0, {"inference_ms.p50": [1.0]})
    (found,) = judge_gates(["inference_ms.p50 <= 100"], entry.summary, lambda _: "")
    assert found.state is GateState.CANNOT_TELL
    assert "Make 3 runs or more" in found.text


def test_the_samples_of_one_run_are_one_run() -> None:
    one = Estimate(value=5.0, unit="ms", count=100, level="sample", method="median of 100 samples; no interval")
    summary = model_entry(0, RUNS).summary.model_copy(update={"estimates": {"inference_ms.p50": one}})
    (found,) = judge_gates(["inference_ms.p50 <= 9"], summary, lambda _: "")
    assert found.text.endswith("one run does not show the spread between runs. Make 3 runs or more.")


def test_void_numbers_are_not_judged_and_a_failed_job_fails_every_gate() -> None:
    assert judged("inference_ms.p50 <= 100", Grade.VOID).state is GateState.CANNOT_TELL
    entry = model_entry(0, RUNS)
    assert judge_gates(["inference_ms.p50 <= 100"], entry.summary, lambda _: "", failed=True)[0].state == "failed"


@pytest.mark.parametrize(("at_least", "state"), [(30.0, GateState.FAILED), (10.0, GateState.CANNOT_TELL)])
def test_a_percentile_with_too_few_samples_can_only_fail(at_least: float, state: GateState) -> None:
    missing = (Missing(metric="inference_ms.p99", at_least=at_least, count=100, needed=368),)
    summary = model_entry(0, RUNS).summary.model_copy(update={"missing": missing})
    (found,) = judge_gates(["inference_ms.p99 <= 20"], summary, lambda _: "")
    assert found.state is state


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [(-0.01, 0.02, GateState.PASSED), (0.05, 0.09, GateState.FAILED), (0.01, 0.05, GateState.CANNOT_TELL)],
)
def test_a_regression_is_judged_by_its_interval(low: float, high: float, state: GateState) -> None:
    worse = Estimate(value=(low + high) / 2, unit="1", low=low, high=high, confidence=0.95, count=6, method="ratio")
    assert judged("regression(inference_ms.p50) <= 3%", worse=worse).state is state


def test_a_regression_without_an_earlier_run_says_why() -> None:
    found = judged("regression(inference_ms.p50) <= 3%")
    assert (found.state, found.text) == (GateState.CANNOT_TELL, "there is no earlier one")


def test_strict_fails_what_cannot_be_told() -> None:
    outcomes = (judged("inference_ms.p50 <= 10.5"),)
    assert GateReport(experiment_id="x", outcomes=outcomes).passed
    assert not GateReport(experiment_id="x", outcomes=outcomes, strict=True).passed


def _in_doubt(text: str, code: str, grade: Grade, worse: Estimate | str = "") -> GateOutcome:
    verdict = Verdict(grade=grade, reasons=(Reason(code=code, text="Others took 12 %.", grade=grade),))
    summary = model_entry(0, RUNS).summary.model_copy(update={"verdict": verdict})
    (found,) = judge_gates([text], summary, lambda _: worse)
    return found


WORSE = Estimate(value=0.1, unit="1", low=0.08, high=0.12, count=6, method="made")


@pytest.mark.parametrize(
    ("gate", "code", "grade", "state"),
    [
        ("inference_ms.p50 <= 9.9", "contaminated", Grade.SUSPECT, GateState.CANNOT_TELL),
        ("inference_ms.p50 <= 5", "contaminated", Grade.SUSPECT, GateState.FAILED),
        ("inference_ms.p50 <= 9.9", "few_runs", Grade.SUSPECT, GateState.FAILED),
        ("inference_ms.p50 <= 11", "contaminated", Grade.SUSPECT, GateState.PASSED),
        ("inference_ms.p50 <= 9.9", "unwatched", Grade.VALID, GateState.FAILED),
        ("regression(inference_ms.p50) <= 3%", "unwatched", Grade.VALID, GateState.CANNOT_TELL),
        ("regression(inference_ms.p50) <= 3%", "contaminated", Grade.SUSPECT, GateState.CANNOT_TELL),
        ("verdict == valid", "contaminated", Grade.SUSPECT, GateState.FAILED),
    ],
)
def test_a_machine_in_doubt_fails_no_gate_by_itself(gate: str, code: str, grade: Grade, state: GateState) -> None:
    found = _in_doubt(gate, code, grade, WORSE)
    assert found.state is state
    if state is GateState.CANNOT_TELL:
        assert "Others took 12 %." in found.text
        assert "prony duet" in found.text


def test_clients_in_doubt_are_not_told_as_the_machine() -> None:
    found = _in_doubt("regression(inference_ms.p50) <= 3%", "client_bound", Grade.SUSPECT, WORSE)
    assert found.state is GateState.CANNOT_TELL
    assert "But the load may be the cause: Others took 12 %. Change the load so that" in found.text


def test_an_improvement_is_not_a_negative_worsening() -> None:
    better = Estimate(value=-0.02, unit="1", low=-0.03, high=-0.01, confidence=0.95, count=6, method="ratio")
    assert judged("regression(inference_ms.p50) <= 3%", worse=better).text == (
        "Inference p50 got better by 2 % [1 %, 3 %] (95 %, 6 runs): at most 3 % worse, with its whole interval."
    )


@pytest.mark.parametrize(
    ("key", "method", "said"),
    [
        (
            "inference_ms.mean",
            "mean of 10 runs; no interval: of skewed runs Student's t needs 30; the median has one",
            ", without an interval: of skewed runs Student's t needs 30; the median has one. "
            "Gate the median instead: inference_ms.p50.",
        ),
        (
            "inference_ms.p50",
            "median of 10 runs; no interval: too many requests never ended",
            ", without an interval: too many requests never ended.",
        ),
    ],
)
def test_a_number_of_several_runs_says_why_it_has_no_interval(key: str, method: str, said: str) -> None:
    summary = model_entry(0, RUNS).summary
    one = Estimate(value=5.0, unit="ms", count=10, method=method)
    summary = summary.model_copy(update={"estimates": {key: one}})
    (found,) = judge_gates([f"{key} <= 9"], summary, lambda _: "")
    assert (found.state, found.text.endswith(said)) == (GateState.CANNOT_TELL, True), found.text
