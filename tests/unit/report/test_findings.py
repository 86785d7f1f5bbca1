"""The words claim nothing that the intervals do not carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.error_codes import SEE_LOG
from prony.kinds.llm.schema import LlmWorkload
from prony.kinds.llm.tokens import LLM_METRICS
from prony.kinds.script.schema import ScriptWorkload
from prony.model.estimate import Grade, Missing, Reason, Sensitivity, Verdict
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.result import Failure, OutputCheck, ResultState
from prony.report import compare, entry_fields
from prony.report.findings import answers, findings
from prony.report.notes import instrument, merge_texts, notes, sensitivity
from prony.report.table import table
from report import experiments


def with_median(entry: Entry, value: float, half: float | None) -> Entry:
    old = entry.summary.estimates["inference_ms.p50"]
    low, high = (None, None) if half is None else (value - half, value + half)
    new = old.model_copy(update={"value": value, "low": low, "high": high})
    estimates = {**entry.summary.estimates, "inference_ms.p50": new}
    return entry.model_copy(update={"summary": entry.summary.model_copy(update={"estimates": estimates})})


def of_language_model(entry: Entry, rate: float) -> Entry:
    """Return the entry as that of a language model, whose headline is a rate."""
    old = entry.summary.estimates["inference_ms.p50"]
    new = old.model_copy(update={"value": rate, "low": rate * 0.95, "high": rate * 1.05, "unit": "tok/s"})
    changes = {"estimates": {"decode_tok_s.p50": new}, "headline": "decode_tok_s.p50", "metrics": LLM_METRICS}
    work = LlmWorkload.model_validate({"kind": "llm", "model": "m.gguf", "engine": "llamacpp"})
    job = entry.job.model_copy(update={"workload": work})
    return entry.model_copy(update={"job": job, "summary": entry.summary.model_copy(update=changes)})


def with_check(entry: Entry, check: OutputCheck | None) -> Entry:
    return entry.model_copy(update={"result": entry.result.model_copy(update={"check": check})})


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Entry, Entry]:
    maker = experiments.Maker(tmp_path, repeats=3, runs=10)
    return maker.entry(0, {"workload.engine": "onnxruntime"}), maker.entry(1, {"workload.engine": "openvino"})


def told(*entries: Entry) -> str:
    return " ".join(findings(ExperimentData(experiment=experiments.experiment(len(entries)), entries=entries)))


def test_the_fastest_is_named_with_a_ratio_where_intervals_are_apart(pair: tuple[Entry, Entry]) -> None:
    text = told(with_median(pair[0], 40.0, 2.0), with_median(pair[1], 20.0, 1.0))
    assert "openvino is the fastest: 20.0 ms [19.0, 21.0]" in text
    assert "It is 2.0× (1.8× to 2.3×, by the ends of both intervals) as fast as onnxruntime." in text


def test_the_fastest_by_a_rate_has_the_highest(pair: tuple[Entry, Entry]) -> None:
    entries = [of_language_model(one, rate) for one, rate in zip(pair, (40.0, 20.0), strict=True)]
    text = told(*entries)
    assert "onnxruntime is the fastest: 40.0 tok/s [38.0, 42.0] at the median." in text
    assert "It is 2.0× (1.8× to 2.3×, by the ends of both intervals) as fast as openvino." in text
    assert [ratio.relation for ratio in compare.ratios(entries).values()] == ["fastest", "slower"]


def test_the_answer_says_how_far_the_outputs_agree(pair: tuple[Entry, Entry]) -> None:
    first, second = with_median(pair[0], 40.0, 2.0), with_median(pair[1], 20.0, 1.0)
    reference = OutputCheck(finite=True, reference="onnxruntime fp32", is_reference=True, compared=True)
    other = OutputCheck(finite=True, reference="onnxruntime fp32", compared=True, max_error_of_range=0.007)
    checked = [with_check(first, reference), with_check(second, other)]
    data = ExperimentData(experiment=experiments.experiment(2), entries=tuple(checked))
    (answer,) = answers(data)
    assert answer.endswith("Their outputs agree to 0.70 % of their range.")
    unknown = ExperimentData(experiment=experiments.experiment(2), entries=(checked[0], with_check(second, None)))
    assert "outputs" not in " ".join(answers(unknown))


def test_one_job_alone_answers_with_its_number(pair: tuple[Entry, Entry]) -> None:
    data = ExperimentData(experiment=experiments.experiment(1), entries=(with_median(pair[0], 40.0, 2.0),))
    assert answers(data) == ["onnxruntime takes 40.0 ms [38.0, 42.0] for one inference at the median."]


def test_jobs_whose_work_nobody_can_compare_answer_with_their_headlines(pair: tuple[Entry, Entry]) -> None:
    work = ScriptWorkload.model_validate({"kind": "script", "command": ["true"]})
    entry = with_median(pair[0], 40.0, 2.0)
    summary = entry.summary.model_copy(update={"headline": "inference_ms.p50"})
    entry = entry.model_copy(update={"job": entry.job.model_copy(update={"workload": work}), "summary": summary})
    data = ExperimentData(experiment=experiments.experiment(1), entries=(entry,))
    assert answers(data) == ["onnxruntime: Inference p50 is 40.0 ms [38.0, 42.0]."]


def test_nothing_is_claimed_where_intervals_overlap(pair: tuple[Entry, Entry]) -> None:
    text = told(with_median(pair[0], 21.0, 2.0), with_median(pair[1], 20.0, 2.0))
    assert "openvino and onnxruntime are not distinguishable: their intervals overlap" in text
    assert "is the fastest" not in text


def test_nothing_is_claimed_without_intervals(pair: tuple[Entry, Entry]) -> None:
    text = told(with_median(pair[0], 40.0, None), with_median(pair[1], 20.0, None))
    assert "without intervals there is no winner" in text
    assert "is the fastest" not in text


def test_a_void_job_takes_no_part_in_a_comparison(pair: tuple[Entry, Entry]) -> None:
    void = pair[1].summary.model_copy(update={"verdict": Verdict(grade=Grade.VOID)})
    text = told(with_median(pair[0], 40.0, 2.0), pair[1].model_copy(update={"summary": void}))
    assert "is the fastest" not in text
    assert "onnxruntime takes 40.0 ms [38.0, 42.0]" in text
    assert "openvino is void: these numbers are excluded from comparisons." in text


def test_another_precision_is_said_beside_the_comparison(pair: tuple[Entry, Entry]) -> None:
    assert "Different precisions: onnxruntime in f32, openvino in f16." in told(*pair)


def test_jobs_of_unlike_work_are_never_compared_by_latency(full: ExperimentData) -> None:
    groups = compare.peers(full.entries)
    assert [len(group) for group in groups] == [2, 2]
    ratios = compare.ratios(full.entries)
    assert [ratios[entry.job.id].relation for entry in full.entries] == ["slower", "fastest", "slower", "fastest"]


def test_a_suspect_number_is_named_as_such(full: ExperimentData) -> None:
    assert any("Use with care: openvino is suspect." in sentence for sentence in findings(full))


def test_a_remark_that_holds_for_all_jobs_is_made_once(full: ExperimentData) -> None:
    missing = [note for note in notes(full) if "needs 368" in note.text]
    assert len(missing) == 1
    assert len(missing[0].jobs) == len(full.entries)
    assert notes(full)[0].grade is Grade.SUSPECT


def test_missing_percentiles_of_unlike_jobs_are_told_once_with_the_key_to_change(full: ExperimentData) -> None:
    first, *others = full.entries
    more = Missing(metric="first_ms.p95", at_least=None, count=5, needed=72)
    unlike = first.model_copy(
        update={"summary": first.summary.model_copy(update={"missing": (*first.summary.missing, more)})}
    )
    told = [note for note in notes(full.model_copy(update={"entries": (unlike, *others)})) if "Too few" in note.text]
    assert len(told) == 1
    assert "p99 (needs 368)" in told[0].text
    assert "first p95 (needs 72, in 1 of these jobs)" in told[0].text
    assert told[0].text.endswith(": raise measure.runs.")


def test_samples_before_the_steady_state_are_why_a_percentile_lacks_some(full: ExperimentData) -> None:
    first = full.entries[0]
    few = Missing(metric="inference_ms.p90", at_least=None, count=20, needed=36)
    changes = {"summary": first.summary.model_copy(update={"missing": (few,)})}
    told = notes(full.model_copy(update={"entries": (first.model_copy(update=changes),)}))
    assert [one.text for one in told if "Too few" in one.text] == [
        "Too few samples in a run for Inference p90 (needs 36), and only 20 of 100 count in the shortest run (from "
        "its steady state on): raise measure.runs."
    ]


def test_one_remark_for_several_jobs_has_a_range_or_the_largest_number() -> None:
    texts = [
        f"{runs} of 5 runs: others took up to {share} % (the busiest: a)." for runs, share in ((2, 76.8), (3, 92.7))
    ]
    assert merge_texts(texts) == "2 to 3 of 5 runs: others took up to 92.7 % (the busiest: a)."


def test_the_instrument_is_told_or_its_lack_is(full: ExperimentData) -> None:
    assert instrument(None) == "not calibrated when this was measured: run `prony calibrate`"
    line = instrument(full.calibration)
    assert "harness overhead 610 ns [580, 640]" in line
    assert "machine noise 1.2 %" in line


def test_a_label_leaves_out_what_the_reader_knows(full: ExperimentData) -> None:
    assert entry_fields.label(full.entries[0]) == "onnxruntime · batch size 1"
    assert entry_fields.label(full.entries[0], skip={"workload.batch_size"}) == "onnxruntime"


def test_a_failure_is_told_once_and_ends_with_one_mark(partial: ExperimentData) -> None:
    good, failed = partial.entries
    why = failed.result.failure
    assert why is not None
    asking = why.model_copy(update={"hint": "did you mean cpu?"})
    failed = failed.model_copy(update={"result": failed.result.model_copy(update={"failure": asking})})
    texts = [
        one.text for one in notes(partial.model_copy(update={"entries": (good, failed)})) if one.grade is Grade.VOID
    ]
    assert texts == ["The job failed in load: the engine's process was killed (SIGKILL); did you mean cpu?"]
    assert "cpu?." not in told(good, failed)


def test_how_small_a_change_is_seen_is_said_once_and_not_of_void_results(pair: tuple[Entry, Entry]) -> None:
    def judged(entry: Entry, grade: Grade, *codes: str) -> Entry:
        verdict = Verdict(grade=grade, reasons=tuple(Reason(code=one, text=one, grade=grade) for one in codes))
        seen = {"inference_ms.p50": Sensitivity(runs=5, noise=0.01, detectable=0.03)}
        changes = {"sensitivity": seen, "verdict": verdict}
        return entry.model_copy(update={"summary": entry.summary.model_copy(update=changes)})

    def line(*entries: Entry) -> str:
        return sensitivity(ExperimentData(experiment=experiments.experiment(len(entries)), entries=entries))

    good, void = judged(pair[0], Grade.VALID), judged(pair[1], Grade.VOID)
    assert line(good, void) == "with 5 runs on each side that run alternately, a change of 3 % can be detected here"
    assert line(void) == ""
    assert line(good, judged(pair[1], Grade.VALID, "detectable_change")) == ""


def test_a_hint_that_names_the_log_names_the_first_job_that_it_concerns(partial: ExperimentData) -> None:
    why = Failure(code="engine_exit", message="the engine ended", hint=SEE_LOG)
    entries = tuple(
        one.model_copy(update={"result": one.result.model_copy(update={"state": ResultState.FAILED, "failure": why})})
        for one in partial.entries
    )
    (told,) = [one for one in notes(partial.model_copy(update={"entries": entries})) if "the engine ended" in one.text]
    assert len(told.jobs) == len(entries) > 1
    assert told.text.endswith(f"; `prony logs {entries[0].job.id}` prints the log.")
    alone = partial.model_copy(update={"entries": entries[1:2]})
    assert f"`prony logs {entries[1].job.id}` prints the log" in " ".join(one.text for one in notes(alone))


def test_a_job_that_was_stopped_did_not_fail(partial: ExperimentData) -> None:
    stopped = partial.entries[1]
    why = Failure(code="cancelled", message="stopped before it started", whose="prony")
    stopped = stopped.model_copy(
        update={"result": stopped.result.model_copy(update={"failure": why, "repetitions": ()})}
    )
    texts = [one.text for one in notes(partial.model_copy(update={"entries": (stopped,)}))]
    assert not any("failed" in text for text in texts)


def test_what_was_asked_for_and_what_was_done_are_two_columns_only_where_they_differ(tmp_path: Path) -> None:
    maker = experiments.Maker(tmp_path, repeats=3, runs=10)
    entries = tuple(
        maker.entry(n, {"workload.threads": 2, "workload.precision": precision})
        for n, precision in enumerate(("default", "fp32"))
    )
    made = table(ExperimentData(experiment=experiments.experiment(2), entries=entries))
    headings = [one.heading for one in made.columns]
    assert headings.count("threads") == 1
    assert headings.count("precision") == 1
    assert "precision used" in headings
