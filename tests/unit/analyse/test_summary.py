"""A summary: one number a run, intervals over runs, and nothing that the samples do not support."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.analyse.clean_runs import worsening_of_clean
from prony.analyse.compare.compare import compare_entries
from prony.analyse.compare.matching import Side
from prony.analyse.estimates import across_runs
from prony.analyse.gates import judge_gates
from prony.errors import InputError
from prony.kinds.model.summary import summarise
from prony.model.comparison import Comparison, Conclusion, Terms
from prony.model.estimate import Grade, Summary
from prony.model.gate import GateState
from prony.model.metric import METRICS, STATISTICS
from prony.model.result import GpuFacts, Noise
from prony.stats.quantiles import Array
from prony.stats.run_intervals import independent_share
from prony.stats.spread import detectable_change

from .compare.sides import entry, side
from .jobs import failed, job, phase, repetition, result, samples, steady_runs


def summary_of(runs: dict[int, Array], **changes: object) -> Summary:
    return summarise(job(), result([repetition(index) for index in runs]), samples(runs))


def codes(summary: Summary) -> set[str]:
    return {reason.code for reason in summary.verdict.reasons}


def test_the_headline_is_the_median_of_the_runs_medians_and_not_of_pooled_samples() -> None:
    runs = {i: np.full(50 if i else 5000, level) for i, level in enumerate((9_000_000, 1_000_000, 2_000_000))}
    estimate = summary_of(runs).estimates["inference_ms.p50"]
    assert (estimate.value, estimate.low, estimate.high) == (2.0, 1.0, 9.0)
    assert (estimate.count, estimate.level, estimate.confidence) == (3, "run", 0.48)


def test_five_runs_claim_what_correlated_ones_hold_and_name_what_independent_ones_would() -> None:
    summary = summary_of(steady_runs(5))
    estimate = summary.estimates["inference_ms.p50"]
    assert estimate.confidence == 0.72
    assert estimate.method == "median of 5 runs' medians; smallest to largest, 93.8 % if independent"
    assert summary.used == (0, 1, 2, 3, 4)
    assert summary.verdict.grade is Grade.VALID


def test_every_key_is_a_metric_and_a_statistic_and_every_unit_is_the_metrics() -> None:
    for key, estimate in summary_of(steady_runs(6, size=4000)).estimates.items():
        name, statistic = key.split(".", 1)
        assert estimate.unit == METRICS[name].unit
        assert statistic in STATISTICS


def test_a_percentile_exists_only_with_enough_samples_in_every_run() -> None:
    runs = steady_runs(5, size=400)
    runs[3] = runs[3][:300]
    summary = summary_of(runs)
    assert "inference_ms.p95" in summary.estimates
    assert "inference_ms.p99" not in summary.estimates
    missing = {entry.metric: entry for entry in summary.missing}
    assert set(missing) == {"inference_ms.p99", "inference_ms.p99.9"}
    assert (missing["inference_ms.p99"].count, missing["inference_ms.p99"].needed) == (300, 368)
    assert missing["inference_ms.p99"].at_least is not None
    assert missing["inference_ms.p99"].at_least > summary.estimates["inference_ms.p95"].value


def test_one_run_gets_an_interval_within_that_run_and_a_suspect_verdict() -> None:
    summary = summary_of(steady_runs(1))
    estimate = summary.estimates["inference_ms.p50"]
    assert (estimate.level, estimate.count) == ("sample", 100)
    assert "within one run" in estimate.method
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.value <= estimate.high
    assert summary.verdict.grade is Grade.SUSPECT
    assert "one_run" in codes(summary)
    assert summary.spread == {}


def test_one_sample_in_one_run_is_a_number_without_an_interval() -> None:
    summary = summary_of({0: np.array([1_500_000])})
    estimate = summary.estimates["inference_ms.p50"]
    assert (estimate.value, estimate.low, estimate.high) == (1.5, None, None)
    assert "inference_ms.sd" not in summary.estimates


def test_a_warm_up_that_leaked_into_the_measurement_is_cut_off() -> None:
    runs = steady_runs(5, size=200)
    for durations in runs.values():
        durations[:40] *= 2
    summary = summary_of(runs)
    assert summary.estimates["inference_ms.max"].value < 1.2
    # Four samples (load, first, two warm-ups) come before the measured ones in the repetition's numbering.
    assert all(start is not None and abs(start - 44) <= 1 for start in summary.steady_from.values())


def restless(run: Array) -> Array:
    return np.round(run * np.linspace(1, 1.5, run.size)).astype(np.int64)


def test_a_run_without_a_steady_state_is_set_aside_by_its_cause() -> None:
    runs = steady_runs(6, size=200)
    runs[2] = restless(runs[2])
    summary = summary_of(runs)
    assert summary.steady_from[2] is None
    assert summary.used == (0, 1, 3, 4, 5)
    assert summary.excluded == {2: "reached no steady state"}


def test_runs_without_a_steady_state_are_used_whole_where_no_others_are_left_and_it_is_said() -> None:
    summary = summary_of({index: restless(run) for index, run in steady_runs(5, size=200).items()})
    assert summary.used == (0, 1, 2, 3, 4)
    assert "no_steady_state" in codes(summary)
    assert summary.verdict.grade is Grade.SUSPECT


def test_failed_repetitions_never_enter_and_are_named() -> None:
    runs = steady_runs(5)
    document = result([*(repetition(i) for i in runs), failed(5)])
    summary = summarise(job(), document, samples(runs | {5: np.full(50, 9_000_000)}))
    assert summary.used == (0, 1, 2, 3, 4)
    assert summary.excluded == {5: "failed in load: SIGILL: wrong instruction"}
    assert 5 not in summary.steady_from
    assert summary.estimates["load_ms.p50"].count == 5
    assert "failed_repetitions" in codes(summary)


def test_disturbed_repetitions_are_left_out_while_enough_clean_ones_remain() -> None:
    runs = steady_runs(6)
    noisy = repetition(0, contamination=("foreign_cpu: others used 9% of the CPU",))
    summary = summarise(job(), result([noisy, *(repetition(i) for i in range(1, 6))]), samples(runs))
    assert summary.used == (1, 2, 3, 4, 5)
    assert summary.excluded[0] == "disturbed: foreign_cpu: others used 9% of the CPU"
    assert summary.verdict.grade is Grade.VALID
    assert summary.estimates["load_ms.p50"].count == 5


def test_of_one_planned_run_the_clean_one_stands_alone() -> None:
    document = result([repetition(0, contamination=("steal: 3% taken",)), repetition(1)])
    summary = summarise(job(repeats=1), document, samples(steady_runs(2)))
    assert summary.used == (1,)
    assert "contaminated" not in codes(summary)


def test_the_only_run_is_called_so_where_it_was_disturbed() -> None:
    summary = summarise(
        job(repeats=1), result([repetition(0, contamination=("steal: 3% taken",))]), samples(steady_runs(1))
    )
    assert any(reason.text.startswith("The only run was disturbed") for reason in summary.verdict.reasons)


def test_disturbed_repetitions_count_when_too_few_clean_ones_remain() -> None:
    runs = steady_runs(5)
    document = result([repetition(i, contamination=("steal: 3% taken",) if i > 1 else ()) for i in runs])
    summary = summarise(job(), document, samples(runs))
    assert summary.used == (0, 1, 2, 3, 4)
    assert summary.excluded == {}
    assert "contaminated" in codes(summary)


def disturbed_side(name: str, level: float, *, disturbed: int, slower: float = 1.0, count: int = 5) -> Side:
    """Return a side whose first runs were disturbed, and so many times slower for it."""
    told = ("foreign_cpu: others used 60% of the CPU",)
    runs, repetitions = {}, []
    for index, run in steady_runs(count).items():
        is_dirty = index < disturbed
        runs[index] = [level * (slower if is_dirty else 1.0) * value for value in run]
        noise = Noise(foreign_cpu=0.6 if is_dirty else 0.0)
        repetitions.append(repetition(index, contamination=told if is_dirty else (), noise=noise))
    document = result(repetitions)
    summary = summarise(job(repeats=count), document, samples(runs))
    return side(name, entry({}, experiment=name).model_copy(update={"summary": summary, "result": document}))


def compare_latency(*sides: Side) -> Comparison:
    return compare_entries(sides, Terms(metrics=("inference_ms.p50",)))


@pytest.mark.parametrize("slower", [1.0, 1.6, 3.0])
@pytest.mark.parametrize("disturbed", [(1, 1), (2, 2), (2, 0), (0, 2)])
def test_a_doubled_latency_is_a_regression_although_some_runs_were_disturbed(
    disturbed: tuple[int, int], slower: float
) -> None:
    before = disturbed_side("A", 1.0, disturbed=disturbed[0], slower=slower)
    after = disturbed_side("B", 2.0, disturbed=disturbed[1], slower=slower)
    assert [one.entries[0].summary.used for one in (before, after)] == [(0, 1, 2, 3, 4)] * 2
    assert compare_latency(before, after).fails(Conclusion.REGRESSION)


def test_the_undisturbed_runs_of_a_void_side_fail_a_build_where_they_suffice_by_themselves() -> None:
    before = disturbed_side("A", 1.0, disturbed=4, slower=3.0, count=7)
    assert before.entries[0].summary.verdict.grade is Grade.VOID
    found = compare_latency(before, disturbed_side("B", 2.0, disturbed=0, count=7))
    assert found.fails(Conclusion.REGRESSION)
    assert "the undisturbed runs alone, 3 against 7, are all worse by at least" in found.headlines[0].sentence


def test_what_a_busy_machine_explains_and_what_two_runs_say_fails_no_build() -> None:
    before = disturbed_side("A", 1.0, disturbed=2, slower=3.0)
    assert not compare_latency(before, disturbed_side("B", 1.4, disturbed=0)).fails(Conclusion.REGRESSION)
    few = disturbed_side("A", 1.0, disturbed=3, slower=3.0)
    assert not compare_latency(few, disturbed_side("B", 2.0, disturbed=0)).fails(Conclusion.REGRESSION)
    assert compare_latency(before, disturbed_side("B", 1.0, disturbed=0)).conclusion is Conclusion.INCONCLUSIVE


def test_a_gate_on_a_regression_fails_by_the_undisturbed_runs_alone() -> None:
    (before,), (after,) = (
        disturbed_side(name, level, disturbed=2, slower=3.0).entries for name, level in (("A", 1.0), ("B", 2.0))
    )
    by_clean = partial(worsening_of_clean, before=(before.summary, before.result), after=(after.summary, after.result))
    key, open_question = "inference_ms.p50", "it cannot be told"
    (told,) = judge_gates([f"regression({key}) <= 5%"], after.summary, lambda _: open_question, by_clean=by_clean)
    assert told.state is GateState.FAILED
    (told,) = judge_gates([f"regression({key}) <= 200%"], after.summary, lambda _: open_question, by_clean=by_clean)
    assert told.state is GateState.CANNOT_TELL


def test_cold_starts_of_both_kinds_are_counted_together() -> None:
    runs = steady_runs(5)
    frame = pl.concat([samples(runs), samples({7: [], 8: []})])
    document = result([*(repetition(i) for i in runs), repetition(7, kind="load"), repetition(8, kind="load")])
    summary = summarise(job(), document, frame)
    load, first, cold = (
        summary.estimates[f"{name}.p50"] for name in ("load_ms", "first_inference_ms", "cold_start_ms")
    )
    assert (load.count, load.value, load.method) == (
        7,
        5.003,
        "median of 7 cold starts; smallest to largest, 98.4 % if independent",
    )
    assert first.value == 2.0
    assert cold.value == pytest.approx(7.003)
    assert summary.estimates["inference_ms.p50"].count == 5
    assert summary.excluded == {}


def test_throughput_is_items_over_the_wall_time_of_the_window_and_not_one_over_the_mean() -> None:
    runs = {i: np.full(100, 1_000_000) for i in range(5)}
    document = result([repetition(i) for i in runs])
    summary = summarise(job(batch_size=8), document, samples(runs, gap_ns=1_000_000))
    assert summary.estimates["throughput_per_s.p50"].value == pytest.approx(8 * 100 / 0.199)


def test_memory_cpu_and_energy_come_from_the_phases() -> None:
    runs = steady_runs(5)
    measure = phase(rss_peak_kib=300 * 1024, rss_anon_kib=200 * 1024, rss_file_kib=50 * 1024)
    load = phase(rss_peak_kib=400 * 1024)
    repetitions = [
        repetition(
            i, import_ns=7_000_000, baseline_rss_kib=100 * 1024, vram_peak_mib=5.0,
            phases={"load": load, "measure": measure},
            energy_j={"package_0": 20.0, "package_0_core": 15.0, "dram": 2.0, "psys": 40.0},
        )
        for i in runs
    ]  # fmt: skip
    found = summarise(job(unit="cuda"), result(repetitions), samples(runs)).estimates
    expected = {
        "memory_mib": 200, "rss_baseline_mib": 100, "rss_load_peak_mib": 400, "rss_peak_mib": 300, "rss_anon_mib": 200,
        "rss_file_mib": 50, "vram_peak_mib": 5, "inference_cpu_ms": 3, "energy_j": 0.22, "power_w": 22, "import_ms": 7,
    }  # fmt: skip
    assert {name: found[f"{name}.p50"].value for name in expected} == pytest.approx(expected)
    assert found["import_ms.p50"].count == 1


def test_an_idle_gpu_beside_a_cpu_job_is_not_its_energy() -> None:
    runs = steady_runs(5)
    phases = {"measure": phase()}
    with_card = [
        repetition(i, phases=phases, vram_peak_mib=0.0, energy_j={"gpu0": 50.0, "package_0": 20.0}) for i in runs
    ]
    found = summarise(job(unit="cpu"), result(with_card), samples(runs)).estimates
    assert found["energy_j.p50"].value == pytest.approx(0.2)
    assert "vram_peak_mib.p50" not in found
    only_card = [repetition(i, phases=phases, energy_j={"gpu0": 50.0}) for i in runs]
    assert "energy_j.p50" not in summarise(job(unit="cpu"), result(only_card), samples(runs)).estimates


@pytest.mark.parametrize(
    ("unit", "joules"), [("npu", 200), ("gpu", 200), ("gpu.1", 200), ("cuda-0", 30), ("tensorrt", 30), ("webgpu", 230)]
)
def test_only_what_runs_on_an_nvidia_card_has_the_joules_of_that_card(unit: str, joules: float) -> None:
    runs = steady_runs(5)
    beside = [repetition(i, phases={"measure": phase()}, energy_j={"package-0": 200.0, "gpu0": 30.0}) for i in runs]
    found = summarise(job(unit=unit), result(beside), samples(runs)).estimates
    assert found["energy_j.p50"].value == pytest.approx(joules / 100)


def test_energy_of_a_gpu_is_its_own_cards_while_it_worked_back_to_back() -> None:
    runs = steady_runs(5)
    worked = phase(begin_ns=0, end_ns=4 * 10**9, count=2000)
    phases = {"measure": phase(), "launch": phase(), "sustained": worked}
    gpu = GpuFacts(card="gpu1", energy_j=1200.0, energy_window_s=2.0, idle_power_w=100.0)
    both = {"gpu0": 500.0, "gpu1": 60.0, "package_0": 20.0}
    known = [repetition(i, phases=phases, energy_j=both, gpu=gpu) for i in runs]
    found = summarise(job(unit="cuda", batch_size=2), result(known), samples(runs)).estimates
    expected = {"power_w": 600, "energy_j": 1.2, "energy_net_j": 1.0, "hot_ms": 2, "throughput_per_s": 1000}
    assert {name: found[f"{name}.p50"].value for name in expected} == pytest.approx(expected)
    # Of two cards nobody knows which is the job's: no joule of either is told. One alone is its own.
    unknown = [repetition(i, phases={"measure": phase()}, energy_j=both) for i in runs]
    assert "energy_j.p50" not in summarise(job(unit="cuda"), result(unknown), samples(runs)).estimates
    alone = [repetition(i, phases={"measure": phase()}, energy_j={"gpu0": 50.0}) for i in runs]
    assert "energy_j.p50" in summarise(job(unit="cuda"), result(alone), samples(runs)).estimates
    beside = {"gpu0": 50.0, "package_0": 20.0, "dram": 2.0}
    with_package = [repetition(i, phases={"measure": phase()}, energy_j=beside) for i in runs]
    found = summarise(job(unit="cuda"), result(with_package), samples(runs)).estimates
    assert (found["energy_j.p50"].value, found["power_w.p50"].value) == pytest.approx((0.5, 50))


@pytest.mark.parametrize(("shares", "grade"), [((0.9, 1.0), Grade.VALID), ((0.3, 1.0), Grade.SUSPECT)])
def test_a_power_cap_is_a_note_unless_it_held_some_runs_and_others_not(shares: tuple[float, ...], grade: Grade) -> None:
    runs = steady_runs(5)
    gpus = [GpuFacts(card="gpu0", held_back={"power": shares[i % 2]}, energy_j=1, energy_window_s=1) for i in runs]
    known = [repetition(i, phases={"measure": phase()}, gpu=gpu) for i, gpu in zip(runs, gpus, strict=True)]
    reasons = {one.code: one for one in summarise(job(unit="cuda"), result(known), samples(runs)).verdict.reasons}
    assert reasons["power_cap"].grade is grade


def test_a_narrow_link_and_corrected_errors_of_a_card_are_notes() -> None:
    runs = steady_runs(5)
    gpu = GpuFacts(card="gpu0", link_width=8, link_width_max=16, errors={"ecc_corrected": 2}, energy_note="none")
    known = [repetition(i, phases={"measure": phase()}, gpu=gpu) for i in runs]
    reasons = {one.code: one for one in summarise(job(unit="cuda"), result(known), samples(runs)).verdict.reasons}
    assert "8 of 16 lanes" in reasons["narrow_link"].text
    assert reasons["ecc_corrected"].text.startswith("10 memory errors")
    assert {reasons[code].grade for code in ("narrow_link", "ecc_corrected")} == {Grade.VALID}


def test_counters_that_the_machine_lacks_leave_no_entry() -> None:
    found = summary_of(steady_runs(5)).estimates
    assert {key.split(".")[0] for key in found} == {
        "inference_ms", "load_ms", "first_inference_ms", "cold_start_ms", "throughput_per_s",
    }  # fmt: skip


def test_outliers_are_labelled_with_their_run_and_sample_and_stay_in_the_numbers() -> None:
    runs = steady_runs(5)
    runs[3][17] = 50_000_000
    summary = summary_of(runs)
    worst = summary.outliers[0]
    assert (worst.repetition, worst.index, worst.value, worst.label) == (3, 21, 50.0, "severe")
    assert worst.metric == "inference_ms"
    assert summary.outlier_count == len(summary.outliers)


def test_a_run_apart_from_the_others_is_an_outlier_without_a_sample() -> None:
    runs = steady_runs(8)
    runs[6] = runs[6] * 3
    found = [outlier for outlier in summary_of(runs).outliers if outlier.index is None]
    assert [(outlier.repetition, outlier.metric) for outlier in found] == [(6, "inference_ms.p50")]


def test_the_list_of_outliers_is_capped_and_the_count_is_not() -> None:
    runs = steady_runs(5, size=2000)
    for durations in runs.values():
        durations[25::50] *= 3
    summary = summary_of(runs)
    assert len(summary.outliers) == 50
    assert summary.outlier_count >= 200


def test_nothing_measured_is_void_and_has_no_estimate() -> None:
    summary = summarise(job(), result([failed(0), failed(1)]), samples({}))
    assert summary.verdict.grade is Grade.VOID
    assert summary.estimates == {}
    assert summary.missing == ()
    assert summary.excluded.keys() == {0, 1}


def test_a_repetition_that_has_no_measured_sample_is_left_out() -> None:
    runs = steady_runs(5)
    summary = summarise(
        job(), result([repetition(i) for i in range(6)]), samples(runs | {5: np.array([], dtype=np.int64)})
    )
    assert summary.excluded == {5: "has no measured sample"}


def test_constant_samples_have_no_outliers_and_an_interval_of_no_width() -> None:
    summary = summary_of({i: np.full(100, 1_000_000) for i in range(5)})
    estimate = summary.estimates["inference_ms.p50"]
    assert (estimate.low, estimate.value, estimate.high) == (1.0, 1.0, 1.0)
    assert summary.outlier_count == 0
    assert summary.spread["inference_ms"].icc is None


def test_samples_of_zero_length_do_not_break_anything() -> None:
    summary = summarise(
        job(), result([repetition(i) for i in range(5)]), samples(dict.fromkeys(range(5), [0] * 40), gap_ns=0)
    )
    assert summary.estimates["inference_ms.p50"].value == 0
    assert "throughput_per_s.p50" not in summary.estimates


def test_a_job_is_not_summarised_with_the_result_of_another() -> None:
    with pytest.raises(InputError, match="the result is of job"):
        summarise(job(), result([], job_id="other"), samples({}))


run_sets = st.builds(
    lambda count, size, seed: steady_runs(count, size=size, spread=0.05, seed=seed),
    st.integers(1, 9), st.integers(1, 60), st.integers(0, 2**31),
)  # fmt: skip


@settings(max_examples=count_examples(40), deadline=None)
@given(run_sets)
def test_statistics_are_in_order_and_intervals_contain_their_value(runs: dict[int, Array]) -> None:
    found = summary_of(runs).estimates
    assert found["inference_ms.min"].value <= found["inference_ms.p50"].value <= found["inference_ms.max"].value
    assert found["inference_ms.min"].value <= found["inference_ms.mean"].value <= found["inference_ms.max"].value
    for estimate in found.values():
        if estimate.low is not None:
            assert estimate.high is not None
            assert estimate.low <= estimate.value <= estimate.high
            assert estimate.confidence is not None
            assert 0.29 <= estimate.confidence < 1


@settings(max_examples=25, deadline=None)
@given(run_sets)
def test_a_thousand_times_longer_gives_the_same_summary_in_another_unit(runs: dict[int, Array]) -> None:
    first, second = summary_of(runs), summary_of({i: run * 1000 for i, run in runs.items()})
    assert first.steady_from == second.steady_from
    assert first.outlier_count == second.outlier_count
    for key, estimate in first.estimates.items():
        if key.startswith("inference_ms"):
            assert second.estimates[key].value == pytest.approx(1000 * estimate.value, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(run_sets, st.randoms(use_true_random=False))
def test_the_order_of_runs_and_rows_does_not_matter(runs: dict[int, Array], random: object) -> None:
    first = summary_of(runs)
    order = list(runs)
    random.shuffle(order)  # type: ignore[attr-defined]
    frame = samples(runs).sample(fraction=1, shuffle=True, seed=len(order))
    second = summarise(job(), result([repetition(index) for index in order]), frame)
    assert first == second
    renamed = summary_of({new: runs[old] for new, old in enumerate(order)})
    inference = {key: value for key, value in first.estimates.items() if key.startswith("inference_ms")}
    assert inference == {key: value for key, value in renamed.estimates.items() if key.startswith("inference_ms")}


def test_the_same_input_gives_the_same_bytes() -> None:
    runs = steady_runs(6, size=300, spread=0.1)
    assert summary_of(runs).model_dump_json() == summary_of(runs).model_dump_json()


@pytest.mark.parametrize("count", range(2, 10))
def test_few_runs_cover_the_truth_as_often_as_they_say_where_they_are_correlated(count: int) -> None:
    covered, stated = _coverage(count, follows=0.6)
    assert covered == pytest.approx(stated, abs=0.02)


@pytest.mark.parametrize("count", [2, 3, 5, 8, 9])
def test_few_independent_runs_cover_the_truth_as_often_as_the_method_says(count: int) -> None:
    assert _coverage(count, follows=0.0)[0] == pytest.approx(independent_share(count), abs=0.015)


def _coverage(count: int, *, follows: float) -> tuple[float, float]:
    """Return how often the interval of so many runs holds their true median, and how often it claims to."""
    noise = np.random.default_rng(3).standard_normal((4000, count))
    for at in range(1, count):
        noise[:, at] = follows * noise[:, at - 1] + math.sqrt(1 - follows**2) * noise[:, at]
    found = [across_runs(values, "ms", "runs' medians") for values in np.exp(0.1 * noise)]
    covered = sum((one.low or 0.0) <= 1.0 <= (one.high or 0.0) for one in found)
    return covered / len(found), found[0].confidence or 0.0


class TestRuns:
    def test_the_numbers_of_the_single_runs_are_kept_in_the_order_of_the_repetitions(self) -> None:
        runs = {i: np.full(50, level) for i, level in enumerate((9_000_000, 1_000_000, 2_000_000))}
        summary = summary_of(runs)
        assert summary.runs["inference_ms.p50"] == (9.0, 1.0, 2.0)
        assert len(summary.runs["throughput_per_s.p50"]) == 3
        assert summary.runs["load_ms.p50"] == (5.0, 5.001, 5.002)
        assert summary.counts == {}

    def test_one_run_alone_is_a_number_of_its_own(self) -> None:
        summary = summary_of(steady_runs(1))
        assert summary.runs["inference_ms.p50"] == (summary.estimates["inference_ms.p50"].value,)

    def test_only_runs_that_count_are_among_them(self) -> None:
        runs = steady_runs(6)
        repetitions = [repetition(index, contamination=("other load",) if index == 2 else ()) for index in runs]
        summary = summarise(job(), result(repetitions), samples(runs))
        assert summary.used == (0, 1, 3, 4, 5)
        assert len(summary.runs["inference_ms.p50"]) == 5

    def test_every_key_of_the_runs_is_one_of_the_estimates(self) -> None:
        summary = summary_of(steady_runs(6, size=400))
        assert summary.runs.keys() <= summary.estimates.keys()
        assert {key for key in summary.estimates if key.endswith((".p50", "inference_ms.p99"))} <= summary.runs.keys()


class TestSensitivity:
    def test_runs_that_vary_by_one_percent_show_what_the_simulated_table_says(self) -> None:
        summary = summary_of(steady_runs(10, spread=0.01))
        found = summary.sensitivity["inference_ms.p50"]
        assert found.runs == 10
        assert found.noise == pytest.approx(0.01, rel=0.6)
        assert found.detectable == detectable_change(found.noise, 10)
        assert found.detectable > 0.02  # below that no comparison tells a change

    def test_two_runs_say_nothing_of_their_noise(self) -> None:
        assert summary_of(steady_runs(2)).sensitivity == {}

    def test_fewer_runs_than_a_comparison_needs_promise_nothing(self) -> None:
        assert summary_of(steady_runs(4)).sensitivity == {}
        assert summary_of(steady_runs(5)).sensitivity

    def test_a_costly_start_asks_for_more_samples_in_each_run(self) -> None:
        runs = steady_runs(8)
        known = {"load": phase(begin_ns=0, end_ns=10**6), "measure": phase(begin_ns=10**9, end_ns=2 * 10**9, count=100)}
        made = result([repetition(index, phases=known) for index in runs])
        spread = summarise(job(), made, samples(runs)).spread["inference_ms"]
        # A start costs as much as a hundred samples, so ten times the ratio of both deviations.
        assert spread.best_count == round(10 * spread.within_sd / spread.between_sd)
        assert summary_of(runs).spread["inference_ms"].best_count is None
