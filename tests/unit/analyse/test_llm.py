"""Stamps of tokens become rates, gaps, shares of a peak, and a verdict on the answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from prony.kinds.llm.report import PART as REPORT
from prony.kinds.llm.rules import DIFFERENT, grade_divergence
from prony.kinds.llm.schema import LlmWorkload
from prony.kinds.llm.summary import PART as SUMMARY
from prony.kinds.llm.tokens import token_frame
from prony.model.estimate import Estimate, Grade, Summary, has_current_percentiles
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.job_plot import OtherReading
from prony.model.recipe import Measure
from prony.model.result import Effective, GpuFacts

from .jobs import environment, phase, repetition, result

MS = 1_000_000
H200 = "NVIDIA H200"
PRECISIONS = ("fp32", "fp16", "bf16", "int8")
EIGHT_B = {"parameters": "8000000000", "weights_bytes": "16000000000", "kv_token_bytes": "131072"}


def job_of(**more: Any) -> Job:
    work = LlmWorkload.model_validate({"kind": "llm", "model": "m.gguf", "engine": "null"} | more)
    return Job(id="j1", experiment_id="e1", name="llm", workload=work, measure=Measure(repeats=5))


def one_pass(prefill_ms: float, gaps_ms: Sequence[float]) -> dict[str, Any]:
    stamps, at = [], 0.0
    for gap in gaps_ms:
        at += gap
        stamps.append(int(at * MS))
    return {"prefill": (0, int(prefill_ms * MS)), "decode_begin_ns": 0, "stamps": stamps}


def summarised(
    job: Job, passes: Sequence[dict[str, Any]], *, device: str = "cpu", precision: str = "bf16",
    quality: Mapping[str, Sequence[float]] | None = None, details: Mapping[str, str] | None = None,
) -> Summary:  # fmt: skip
    effective = Effective(
        engine="null", engine_version="1", python="3", device=device, precision=precision, details=dict(details or {})
    )
    found = result([repetition(index, phases={"measure": phase()}) for index in range(5)], effective=effective)
    frames = [token_frame(index, passes, quality if index == 0 else None) for index in range(5)]
    return SUMMARY.summarise(job, found, pl.concat(frames))


def entry_of(gap_ms: float = 10, *, device: str = "cpu", divergence: float | None = None, **more: Any) -> Entry:
    """Return a finished job whose every token took so long."""
    job = job_of(generate=3, **more)
    about = None if divergence is None else quality(divergence)
    effective = Effective(
        engine="null", engine_version="1", python="3", device=device, precision="bf16", details=EIGHT_B
    )
    summary = summarised(job, [one_pass(20, [gap_ms] * 3)], device=device, details=EIGHT_B, quality=about)
    return Entry(
        job=job, result=result([], effective=effective), summary=summary, environment=environment({}), folder=Path()
    )


def value(summary: Summary, key: str) -> float:
    return summary.estimates[key].value


def test_rates_are_of_tokens_and_sequences_and_the_first_token_begins_no_gap() -> None:
    found = summarised(job_of(prompt=100, generate=4, batch=2), [one_pass(50, [30, 10, 10, 10])])
    assert value(found, "prefill_tok_s.p50") == pytest.approx(4000)
    assert value(found, "ttft_ms.p50") == pytest.approx(50)
    assert value(found, "decode_tok_s.p50") == pytest.approx(200)
    assert value(found, "itl_ms.p50") == pytest.approx(10)
    assert found.headline == "decode_tok_s.p50"
    assert found.verdict.grade is Grade.VALID


def test_a_run_is_the_median_of_its_passes() -> None:
    found = summarised(
        job_of(generate=3), [one_pass(1, [1, 10, 10]), one_pass(9, [1, 20, 20]), one_pass(2, [1, 40, 40])]
    )
    assert value(found, "tpot_ms.p50") == pytest.approx(20)
    assert value(found, "ttft_ms.p50") == pytest.approx(2)


def random_gaps(count: int) -> list[float]:
    """Return gaps that vary as those of a machine do; the first token begins none."""
    return [1.0, *np.random.default_rng(7).lognormal(2, 0.4, count).tolist()]


def test_a_percentile_of_the_gaps_is_median_unbiased_and_names_itself() -> None:
    gaps = random_gaps(368)
    found = summarised(job_of(generate=369), [one_pass(1, gaps)])
    stamped = np.diff(np.array(one_pass(1, gaps)["stamps"])) / MS
    wanted = float(np.quantile(stamped, 0.99, method="median_unbiased"))
    assert found.runs["itl_ms.p99"] == pytest.approx((wanted,) * 5)
    assert found.estimates["itl_ms.p99"].method.startswith("median of 5 runs' 99th percentiles")
    assert has_current_percentiles(found)


def test_a_99th_percentile_of_the_gaps_needs_as_many_as_every_other() -> None:
    found = summarised(job_of(generate=368), [one_pass(1, random_gaps(367))])
    assert "itl_ms.p50" in found.estimates
    assert "itl_ms.p99" not in found.estimates


def test_a_percentile_of_gaps_that_follow_each_other_says_why_it_has_no_interval() -> None:
    found = summarised(job_of(generate=400), [one_pass(1, [1 + index / 100 for index in range(400)])])
    assert found.estimates["itl_ms.p99"].low is None
    (told,) = [one.text for one in found.verdict.reasons if one.code == "no_interval"]
    assert "correlated" in told


def test_the_99th_percentile_of_the_divergence_is_median_unbiased_too_and_needs_as_many_positions() -> None:
    far = sorted(random_gaps(368))
    about = {name: values * 8 for name, values in quality(0.01).items()}
    found = summarised(job_of(generate=3), [one_pass(1, [1, 1, 1])], quality=about | {"kl": far})
    assert value(found, "kl_nat.p99") == pytest.approx(float(np.quantile(far, 0.99, method="median_unbiased")))
    few = summarised(job_of(generate=3), [one_pass(1, [1, 1, 1])], quality=quality(0.01))
    assert "kl_nat.p99" not in few.estimates


@pytest.mark.parametrize(
    ("key", "method"),
    [
        ("itl_ms.p99", "median of 5 runs; smallest to largest, 93.8 % if independent"),
        ("itl_ms.p99", "one run; no interval"),
        ("kl_nat.p99", "99th percentile over positions; no interval"),
    ],
)
def test_a_stored_summary_that_says_type_8_of_type_7_is_told_apart(key: str, method: str) -> None:
    about = {name: values * 8 for name, values in quality(0.01).items()}
    found = summarised(job_of(generate=369), [one_pass(1, random_gaps(368))], quality=about)
    assert has_current_percentiles(found)
    before = found.estimates[key].model_copy(update={"method": method})
    assert not has_current_percentiles(found.model_copy(update={"estimates": found.estimates | {key: before}}))


def test_what_another_program_reported_is_not_computed_again() -> None:
    found = summarised(job_of(generate=369), [one_pass(1, random_gaps(368))])
    reported = found.estimates["itl_ms.p99"].model_copy(update={"method": "as reported by vllm bench"})
    assert has_current_percentiles(found.model_copy(update={"estimates": found.estimates | {"itl_ms.p99": reported}}))


def test_a_job_that_only_reads_has_the_rate_of_reading_as_its_headline() -> None:
    found = summarised(job_of(generate=0), [{"prefill": (0, MS), "decode_begin_ns": 0, "stamps": []}])
    assert found.headline == "prefill_tok_s.p50"
    assert "decode_tok_s.p50" not in found.estimates


def test_decoding_is_held_against_the_bandwidth_of_a_known_card_and_reading_against_its_arithmetic() -> None:
    job = job_of(prompt=512, generate=3, depth=0)
    found = summarised(job, [one_pass(20, [10, 10, 10])], device=H200, details=EIGHT_B)
    assert value(found, "mbu.p50") == pytest.approx(16e9 * 100 / 4.8e12, rel=1e-3)
    assert value(found, "mfu.p50") == pytest.approx(2 * 8e9 * 25600 / 989e12, rel=1e-3)


def test_what_would_use_more_than_the_card_has_is_void() -> None:
    found = summarised(job_of(generate=3), [one_pass(20, [1, 1, 1])], device=H200, details=EIGHT_B)
    told = {one.code: one.text for one in found.verdict.reasons}
    assert told["above_peak"].endswith("Use another version of the engine, and measure again.")
    assert found.verdict.grade is Grade.VOID


def test_a_card_that_nobody_knows_has_no_share() -> None:
    assert "mbu.p50" not in summarised(job_of(), [one_pass(20, [1, 1, 1])], details=EIGHT_B).estimates


def test_power_on_a_card_is_its_own_over_the_measured_phase_of_two_seconds_at_least() -> None:
    joules = {"gpu0": 500.0, "gpu1": 400.0, "package-0": 300.0, "dram": 20.0}
    gpu = GpuFacts(card="gpu1", energy_note="the GPU was not busy all the time")
    found = {}
    for seconds in (1, 4):
        measured = {"measure": phase(begin_ns=0, end_ns=seconds * 10**9)}
        made = result([repetition(index, phases=measured, energy_j=joules, gpu=gpu) for index in range(5)])
        frames = [token_frame(index, [one_pass(20, [10.0] * 3)]) for index in range(5)]
        found[seconds] = SUMMARY.summarise(job_of(generate=3, unit="cuda"), made, pl.concat(frames)).estimates
    assert found[4]["power_w.p50"].value == pytest.approx(100)
    assert "power_w.p50" not in found[1]


@pytest.mark.parametrize(
    ("asked", "reading", "wanted"),
    [
        ({"prompt": 100, "generate": 0}, one_pass(20, []), {"energy_j_per_token": 600 / (2 * 2 * 100)}),
        ({"prompt": 0, "generate": 3}, one_pass(20, [1.0] * 3) | {"prefill": None},
         {"energy_j_per_token": 600 / (2 * 2 * 3)}),
        ({"prompt": 100, "generate": 3}, one_pass(20, [1.0] * 3), {"energy_j_per_output_token": 600 / (2 * 2 * 3)}),
    ],
    ids=["reads", "writes", "both"],
)  # fmt: skip
def test_the_energy_of_a_job_that_reads_and_writes_is_told_by_what_it_wrote(
    asked: dict[str, int], reading: dict[str, Any], wanted: dict[str, float]
) -> None:
    measured = {"measure": phase(begin_ns=0, end_ns=4 * 10**9)}
    made = result([repetition(index, phases=measured, energy_j={"package-0": 600.0}) for index in range(5)])
    frames = [token_frame(index, [reading] * 2) for index in range(5)]
    found = SUMMARY.summarise(job_of(batch=2, **asked), made, pl.concat(frames)).estimates
    told = {key.removesuffix(".p50"): one.value for key, one in found.items() if key.startswith("energy_")}
    assert told == {name: pytest.approx(number) for name, number in wanted.items()}


def quality(divergence: float) -> dict[str, list[float]]:
    return {"kl": [divergence] * 50, "top1": [1.0] * 45 + [0.0] * 5, "nll": [1.0] * 50, "reference_nll": [0.5] * 50}


def test_predictions_have_intervals_over_positions_and_a_note() -> None:
    found = summarised(job_of(generate=3), [one_pass(1, [1, 1, 1])], quality=quality(0.01))
    assert value(found, "kl_nat.mean") == pytest.approx(0.01)
    agreement = found.estimates["top1_agreement.mean"]
    assert agreement.low is not None
    assert agreement.low < 0.9 < (agreement.high or 0)
    assert value(found, "perplexity.mean") == pytest.approx(2.71828, rel=1e-4)
    assert value(found, "perplexity_ratio.mean") == pytest.approx(1.6487, rel=1e-4)
    assert [one.grade for one in found.verdict.reasons if one.code == "predictions"] == [Grade.VALID]


def test_an_engine_whose_answer_is_another_is_suspect_however_fast_it_is() -> None:
    found = summarised(job_of(generate=3), [one_pass(1, [1, 1, 1])], quality=quality(0.5))
    assert found.verdict.grade is Grade.SUSPECT
    assert any(one.code == "different_answer" for one in found.verdict.reasons)


def test_divergence_is_graded_as_published_quantisations_are() -> None:
    grades = [grade_divergence(one) for one in (0.00055, 0.0055, 0.031, 0.2)]
    assert grades == ["same", "close", "visibly different", DIFFERENT]


@pytest.mark.parametrize(
    ("given", "word"), [({"prompt": 0, "generate": 0}, "nothing"), ({"generate": 1}, "at least 2")]
)
def test_a_recipe_that_measures_nothing_is_refused(given: dict[str, int], word: str) -> None:
    with pytest.raises(ValidationError, match=word):
        job_of(**given)


def test_every_column_is_a_metric_of_the_kind() -> None:
    from prony.kinds.llm.tokens import LLM_METRICS
    from prony.model.metric import QUALITY_METRICS

    known = {*LLM_METRICS, *QUALITY_METRICS, "cut_share", "output_tokens_per_s"}
    assert {column.key.partition(".")[0] for column in REPORT.columns} <= known


def test_rates_are_drawn_along_each_setting_in_which_jobs_differ_with_the_bound_of_the_card() -> None:
    entries = [entry_of(device=H200, batch=batch, depth=depth) for batch in (8, 1) for depth in (0, 64)]
    plots = {one.title: one for one in REPORT.plots(entries, ())}
    assert list(plots) == ["Decode over batch", "Prefill over batch", "Decode over depth", "Prefill over depth"]
    line, other, bound, _ = plots["Decode over batch"].lines
    assert [(line.name, line.role), (other.name, other.role)] == [("depth 0", "line"), ("depth 64", "line")]
    assert [(one.x, round(one.y)) for one in line.points] == [(1, 100), (8, 800)]
    assert (bound.name, bound.role) == ("memory allows, depth 0", "bound")
    assert bound.points[0].y == pytest.approx(4.8e12 / (16e9 + 1.5 * 131072))
    assert "published peak" in plots["Decode over batch"].notes[0]
    (arithmetic,) = {one.y for line in plots["Prefill over depth"].lines if line.role == "bound" for one in line.points}
    assert arithmetic == pytest.approx(989e12 / 16e9)


def test_rates_are_drawn_over_threads_where_jobs_differ_in_them() -> None:
    entries = [entry_of(threads=threads) for threads in (4, 1)]
    plots = {one.title: one for one in REPORT.plots(entries, ())}
    assert list(plots) == ["Decode over threads", "Prefill over threads"]
    assert plots["Decode over threads"].x_title == "threads of the engine"
    assert [one.x for one in plots["Decode over threads"].lines[0].points] == [1, 4]


def test_threads_that_prony_chose_are_drawn_where_they_were() -> None:
    chosen = entry_of()
    effective = chosen.result.effective
    assert effective is not None
    result = chosen.result.model_copy(update={"effective": effective.model_copy(update={"threads": 16})})
    entries = [chosen.model_copy(update={"result": result}), entry_of(threads=2)]
    (plot,) = [one for one in REPORT.plots(entries, ()) if one.title == "Decode over threads"]
    assert [one.x for one in plot.lines[0].points] == [2, 16]


def test_a_reading_of_the_same_part_of_the_machine_bounds_before_a_published_peak() -> None:
    entries = [entry_of(batch=batch) for batch in (1, 2)]
    own = entries[0].environment.device.hardware_id
    reading = Estimate(value=32.0, unit="GB/s", count=5, level="run", method="median")
    known = OtherReading(hardware_id=own, device="host memory", job_id="h-001", estimates={"copy_gb_s.p50": reading})
    (plot,) = [one for one in REPORT.plots(entries, (known,)) if one.title == "Decode over batch"]
    assert plot.lines[-1].points[0].y == pytest.approx(2, rel=1e-3)
    assert "h-001" in plot.notes[0]
    of_others = known.model_copy(update={"hardware_id": "another"})
    (plot,) = [one for one in REPORT.plots(entries, (of_others,)) if one.title == "Decode over batch"]
    assert [line.role for line in plot.lines] == ["line"]
    assert "No hardware limit" in plot.notes[0]


def test_quality_is_drawn_against_speed_and_the_front_has_what_nothing_else_beats() -> None:
    made = [(10, 0.001), (5, 0.01), (20, 0.05), (2, 0.09)]
    entries = [entry_of(gap, divergence=far, precision=name) for (gap, far), name in zip(made, PRECISIONS, strict=True)]
    (plot,) = REPORT.plots(entries, ())
    points, front = plot.lines
    assert (plot.title, len(points.points)) == ("Quality against speed", 4)
    assert [(round(one.x), round(one.y, 4)) for one in front.points] == [(100, 0.001), (200, 0.01), (500, 0.09)]


def test_jobs_that_differ_in_nothing_drawn_have_no_picture() -> None:
    assert REPORT.plots([entry_of(), entry_of(precision="fp16")], ()) == ()


def test_the_answer_says_what_a_larger_batch_brings_in_decode_and_in_prefill() -> None:
    decode, prefill = REPORT.answers([entry_of(batch=batch) for batch in (8, 1, 2)])
    assert re.fullmatch(r"Decode of null: 100\.?\d* tok/s.* at batch 1, 800.* tok/s.* at batch 8.*", decode)
    assert prefill.startswith("Prefill of null: ")


def test_the_answer_says_how_good_the_fastest_is_beside_the_best() -> None:
    entries = [entry_of(10, divergence=0.001, precision="bf16"), entry_of(5, divergence=0.09, precision="fp16")]
    (worse,) = REPORT.answers(entries)
    assert worse.startswith("Divergence from the reference of the fastest, ")
    assert "worse than the best" in worse
    (best,) = REPORT.answers([entry_of(5, divergence=0.001, precision="bf16"), entries[1]])
    assert best.endswith(", the best of all.")
