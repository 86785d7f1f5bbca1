"""The verdict: which fact gives which grade, in a sentence with its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prony.kinds.model.summary import summarise
from prony.model.device import Environment
from prony.model.estimate import Grade, Reason, Verdict
from prony.model.job import Job
from prony.model.recipe import Until
from prony.model.result import Failure, Noise, OutputCheck, Repetition, Result, ResultState
from prony.stats.quantiles import Array

from .jobs import GOOD_CHECK, effective, environment, failed, job, model_facts, repetition, result, samples, steady_runs

CLEAN = tuple(repetition(index) for index in range(5))


def verdict(
    asked: Job | None = None,
    document: Result | None = None,
    runs: dict[int, Array] | None = None,
    around: Environment | None = None,
) -> Verdict:
    frame = samples(steady_runs(5) if runs is None else runs)
    return summarise(asked or job(), document or result(CLEAN), frame, environment=around).verdict


def reason(found: Verdict, code: str) -> Reason:
    return next(reason for reason in found.reasons if reason.code == code)


def noisy(**noise: Any) -> tuple[Repetition, ...]:
    return tuple(repetition(index, noise=Noise(**noise)) for index in range(5))


def check(**changes: Any) -> OutputCheck:
    return GOOD_CHECK.model_copy(update=changes)


@pytest.mark.parametrize(("resolution", "is_seen"), [(0.2, True), (0.9, False)])
def test_a_window_in_which_nothing_could_be_seen_is_no_proof_of_quiet(resolution: float, is_seen: bool) -> None:
    found = verdict(document=result(noisy(foreign_cpu=0.15, cpu_resolution=resolution)))
    assert ("unwatched" not in {reason.code for reason in found.reasons}) is is_seen
    assert found.grade is (Grade.VALID if is_seen else Grade.SUSPECT)


def test_a_clean_measurement_is_valid_and_needs_no_reason() -> None:
    assert verdict() == Verdict(grade=Grade.VALID)


def test_no_successful_repetition_is_void_and_says_why_and_where_to_look() -> None:
    found = verdict(document=result([failed(0), failed(1)], state=ResultState.FAILED), runs={})
    assert found.grade is Grade.VOID
    why = "None of 2 repetitions gave a measurement: SIGILL: wrong instruction. `prony logs ID` prints the log."
    assert reason(found, "no_success").text == why


def test_a_job_that_never_ran_is_void_with_the_jobs_own_failure_and_its_hint() -> None:
    failure = Failure(code="unit_unavailable", message="no cuda here", hint="set workload.unit: cpu")
    document = result([], state=ResultState.FAILED, failure=failure)
    why = "Nothing ran: no cuda here. Hint: set workload.unit: cpu."
    assert reason(verdict(document=document, runs={}), "no_success").text == why


def test_failures_beside_successes_are_suspect_and_counted() -> None:
    found = verdict(document=result([*CLEAN, failed(5), failed(6)]))
    assert found.grade is Grade.SUSPECT
    assert reason(found, "failed_repetitions").text.startswith("2 of 7 repetitions failed (8.22 % to 64.1 %")


def test_a_partial_result_is_suspect() -> None:
    runs = steady_runs(3)
    found = verdict(document=result(CLEAN[:3], state=ResultState.PARTIAL), runs=runs)
    assert reason(found, "partial").text == "The job was stopped early: 3 runs of 5 planned."


def test_fewer_than_five_clean_runs_are_suspect() -> None:
    found = verdict(document=result(CLEAN[:4]), runs=steady_runs(4))
    assert reason(found, "few_runs").grade is Grade.SUSPECT
    assert "Only 4 undisturbed runs" in reason(found, "few_runs").text


@pytest.mark.parametrize(
    ("clean", "told"),
    [(0, "No undisturbed run for"), (1, "Only 1 undisturbed run for"), (2, "Only 2 undisturbed runs for")],
)
def test_clean_runs_are_counted_as_a_reader_says_it(clean: int, told: str) -> None:
    dirty = ("foreign_cpu: others used 10 %",)
    runs = tuple(repetition(index, contamination=() if index < clean else dirty) for index in range(5))
    assert reason(verdict(document=result(runs)), "few_runs").text.startswith(told)


def test_one_disturbed_run_among_clean_ones_is_suspect_however_busy_the_machine_was() -> None:
    busy = repetition(4, contamination=("foreign_cpu: others used 90 %",), noise=Noise(foreign_cpu=0.9))
    found = verdict(document=result((*(repetition(index) for index in range(4)), busy)))
    assert reason(found, "contaminated").grade is Grade.SUSPECT
    assert reason(found, "contaminated").text.startswith("1 of 5 runs were disturbed")


@pytest.mark.parametrize(("share", "grade"), [(0.1, Grade.SUSPECT), (0.35, Grade.VOID)])
def test_disturbed_runs_that_count_are_suspect_and_void_if_others_took_the_cpu(share: float, grade: Grade) -> None:
    dirty = tuple(
        repetition(index, contamination=(f"foreign_cpu: others used {share:.0%}",), noise=Noise(foreign_cpu=share))
        for index in range(5)
    )
    found = verdict(document=result(dirty))
    assert reason(found, "contaminated").grade is grade
    assert reason(found, "contaminated").text.startswith("All 5 runs were disturbed")


def test_a_warm_up_that_never_settled_is_suspect() -> None:
    repetitions = [repetition(index, warm=index > 1) for index in range(5)]
    assert reason(verdict(document=result(repetitions)), "warmup_unstable").text.startswith(
        "The warm-up of 2 of 5 runs"
    )


def test_a_wide_interval_is_suspect_and_states_its_width() -> None:
    found = verdict(runs={i: np.full(50, 1_000_000 + 100_000 * i) for i in range(5)})
    assert reason(found, "wide_interval").text.startswith("The interval of the median is ±16.7 % wide")
    assert "are not reliably detected here" in reason(found, "detectable_change").text
    assert found.reasons[0].grade is Grade.SUSPECT


def test_what_a_comparison_could_show_is_not_said_of_void_numbers() -> None:
    durations = {i: np.full(50, 1_000_000 + 100_000 * i) for i in range(5)}
    found = verdict(runs=durations, document=result(CLEAN, check=check(finite=False)))
    assert found.grade is Grade.VOID
    assert "detectable_change" not in {one.code for one in found.reasons}
    assert "wide_interval" in {one.code for one in found.reasons}


def test_outputs_that_are_not_finite_void_the_number() -> None:
    assert verdict(document=result(CLEAN, check=check(finite=False))).grade is Grade.VOID


@pytest.mark.parametrize(
    ("changes", "code", "grade"),
    [
        ({"max_error_of_range": 0.02}, "different_answer", Grade.SUSPECT),
        ({"max_error_of_range": float("nan")}, "different_answer", Grade.SUSPECT),
        ({"cosine": 0.99}, "different_answer", Grade.SUSPECT),
        ({"max_error_of_range": 0.005}, "precision_visible", Grade.VALID),
        ({"compared": False, "note": "no reader"}, "not_compared", Grade.VALID),
    ],
)
def test_a_different_answer_is_shown_as_such(changes: dict[str, Any], code: str, grade: Grade) -> None:
    found = verdict(document=result(CLEAN, check=check(**changes)))
    assert (reason(found, code).grade, found.grade) == (grade, grade)


def test_the_reference_itself_is_not_compared_with_itself() -> None:
    assert verdict(document=result(CLEAN, check=check(is_reference=True, max_error_of_range=None))).reasons == ()


def test_a_check_that_was_switched_off_is_noted() -> None:
    found = verdict(job(check=False), result(CLEAN, check=None))
    assert reason(found, "not_compared").text == "The recipe turned off the check of the outputs."


def test_a_precision_that_the_engine_chose_itself_is_always_visible() -> None:
    found = verdict(document=result(CLEAN, effective=effective("bf16")))
    assert found.grade is Grade.VALID
    assert reason(found, "precision").text == "The file has fp32 weights, but openvino chose to compute in bf16."


def test_a_precision_that_was_asked_for_and_not_used_is_suspect() -> None:
    found = verdict(job(precision="fp16"), result(CLEAN, effective=effective("f32")))
    assert reason(found, "precision").grade is Grade.SUSPECT


@pytest.mark.parametrize(
    ("ran", "weights"), [("f32", {"FLOAT": 3, "INT64": 900}), ("int8", {"int8": 9}), ("mixed", {})]
)
def test_the_precision_of_the_file_needs_no_reason(ran: str, weights: dict[str, int]) -> None:
    assert verdict(document=result(CLEAN, effective=effective(ran), model=model_facts(weights))).reasons == ()


@pytest.mark.parametrize(
    ("noise", "code"),
    [({"thermal_events": 2}, "thermal"), ({"swapped_pages": 7}, "swap"), ({"quota_throttled_ms": 5.0}, "quota")],
)
def test_a_machine_that_held_the_run_back_makes_it_suspect(noise: dict[str, Any], code: str) -> None:
    assert reason(verdict(document=result(noisy(**noise))), code).grade is Grade.SUSPECT


@pytest.mark.parametrize(("read_ns", "grade"), [(50.0, None), (20_000.0, Grade.VALID), (200_000.0, Grade.SUSPECT)])
def test_a_duration_near_the_cost_of_the_clock_is_said_so(read_ns: float, grade: Grade | None) -> None:
    found = verdict(around=environment({"read_ns": read_ns, "step_ns": 40, "source": "tsc", "safe": True}))
    assert [reason.grade for reason in found.reasons if reason.code == "short"] == ([grade] if grade else [])


def test_load_times_from_disk_and_from_memory_are_noted() -> None:
    repetitions = [repetition(index, page_cache=0.0 if index == 0 else 1.0) for index in range(5)]
    found = verdict(document=result(repetitions))
    assert "4 cold starts found the model in the page cache, 1 did not" in reason(found, "page_cache_mixed").text
    assert found.grade is Grade.VALID


def test_a_width_that_was_asked_for_and_not_reached_is_noted() -> None:
    asked = job(until=Until.model_validate({"ci": "0.1%"}))
    found = verdict(asked)
    assert reason(found, "ci_not_reached").text == "The recipe asks for ±0.1 %; 5 runs reached no 95 % interval yet."
    runs = steady_runs(20, seed=1)
    found = verdict(asked, result([repetition(index) for index in runs]), runs)
    assert "20 runs reached ±" in reason(found, "ci_not_reached").text


def test_runs_too_short_to_judge_and_runs_cut_by_time_are_noted() -> None:
    repetitions = [repetition(index, stopped_by="time") for index in range(5)]
    found = verdict(document=result(repetitions), runs=steady_runs(5, size=8))
    assert reason(found, "steady_unjudged").text.startswith("5 of 5 runs have fewer than 12 samples")
    assert "8 samples in the shortest, 100 were requested" in reason(found, "stopped_by_time").text
    found = verdict(job(runs=1_000_000), result(repetitions), steady_runs(5, size=8))  # as many as fit: none is missed
    assert "stopped_by_time" not in {one.code for one in found.reasons}


def test_the_worst_reason_comes_first_and_decides() -> None:
    found = verdict(document=result([*CLEAN, failed(5)], check=check(finite=False), effective=effective("bf16")))
    assert [reason.grade for reason in found.reasons] == [Grade.VOID, Grade.SUSPECT, Grade.VALID]
    assert found.grade is Grade.VOID
