"""Script summaries: names, labels, ranks, directions, gates, comparisons and refusals."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

from prony.analyse.compare.pairwise import choose_metrics
from prony.analyse.gates import judge_gates
from prony.app.gates import worsening_between
from prony.errors import RecipeError
from prony.kinds.script.samples import EmittedValue, labels_text, series_of, told_frame
from prony.kinds.script.schema import ScriptWorkload
from prony.kinds.script.summary import summarise_script
from prony.model.estimate import Grade, Summary, headline_of, metric_in, verdict_on
from prony.model.gate import GateState
from prony.model.job import Job
from prony.model.metric import Metric, depends_on_machine
from prony.model.result import Noise, Phase, Refusal, Repetition, Result, ResultState
from prony.recipe import loads

AT = datetime(2026, 1, 1, tzinfo=UTC)
PHASE = Phase(begin_ns=0, end_ns=10**9, cpu_ns=10**9)


def told(name: str, value: float, **more: Any) -> EmittedValue:
    return EmittedValue(0, name, value, "emit", **more)


def frame(*runs: list[EmittedValue]) -> pl.DataFrame:
    return pl.concat([told_frame(index, "measure", rows) for index, rows in enumerate(runs)])


def workload(*metrics: dict[str, Any], **more: Any) -> ScriptWorkload:
    return ScriptWorkload.model_validate({"kind": "script", "command": "x", "metrics": metrics} | more)


def summary(
    samples: pl.DataFrame, *metrics: dict[str, Any], refused: tuple[Refusal, ...] = (), foreign_cpu: float = 0.0
) -> Summary:
    count = samples["repetition"].n_unique()
    job = Job(id="j", experiment_id="x", name="told", workload=workload(*metrics), measure={"repeats": count})
    repetitions = tuple(
        Repetition(
            index=index, started_at=AT, phases={"measure": PHASE}, refused=refused,
            noise=Noise(foreign_cpu=foreign_cpu), contamination=("foreign_cpu: others ran",) if foreign_cpu else (),
        )
        for index in range(count)
    )  # fmt: skip
    result = Result(
        prony_version="0", job_id="j", experiment_id="x", state=ResultState.COMPLETE, started_at=AT,
        repetitions=repetitions,
    )  # fmt: skip
    return summarise_script(job, result, samples)


@pytest.mark.parametrize(("how", "number"), [("last", 4.0), ("mean", 2.5), ("min", 1.0), ("max", 4.0), ("median", 2.5)])
def test_the_values_of_a_run_become_one_number(how: str, number: float) -> None:
    rows = frame([told("a", value) for value in (1.0, 3.0, 2.0, 4.0)])
    (series,) = series_of(rows, workload(reduce=how))
    assert series.runs == {0: number}
    (own,) = series_of(rows, workload({"name": "a", "reduce": how}))
    assert own.runs == {0: number}


@pytest.mark.parametrize(("how", "number"), [("last", 30.0), ("max", 40.0), ("mean", 25.0)])
def test_each_ranks_values_are_reduced_before_the_ranks_are(how: str, number: float) -> None:
    rows = frame([told("a", 10.0, rank=0), told("a", 30.0, rank=1), told("a", 20.0, rank=0), told("a", 40.0, rank=1)])
    assert series_of(rows, workload(reduce=how))[0].runs == {0: number}


def test_labels_tell_series_apart_only_where_there_are_several() -> None:
    test, train = labels_text({"split": "test"}), labels_text({"split": "train"})
    one = series_of(frame([told("loss", 1.0, labels=test)]), workload())
    assert [(series.metric, series.operation) for series in one] == [("loss", "")]
    both = summary(frame([told("loss", 1.0, labels=test), told("loss", 2.0, labels=train)]))
    assert {"loss/split=test.p50", "loss/split=train.p50"} <= both.runs.keys()
    assert both.headline == "loss/split=test.p50"


def test_any_name_becomes_one_that_gates_and_columns_can_have() -> None:
    rows = frame([told("val/acc@1", 0.9), told("val acc.1", 0.8), told("Übung", 1.0)])
    assert [series.metric for series in series_of(rows, workload())] == ["val_acc_1", "val_acc_1_2", "bung"]


def test_the_recipe_decides_unit_direction_and_headline() -> None:
    rows = frame(*([told("speed", 10.0 + n), told("loss", 0.5), told("inference_ms", 3.0)] for n in range(3)))
    found = summary(rows, {"name": "loss", "better": "lower", "unit": "nat"}, {"name": "speed", "better": "higher"})
    assert headline_of(found, "script") == "loss.p50"
    metrics = [metric_in(found, f"{name}.p50") for name in found.metrics]
    assert [(one.unit, one.better) for one in metrics] == [("nat", "lower"), ("", "higher"), ("ms", "lower")]
    estimate = found.estimates["speed.p50"]
    assert (estimate.value, estimate.low, estimate.high, estimate.count) == (11.0, 10.0, 12.0, 3)


def test_what_was_refused_makes_the_numbers_suspect_and_is_named() -> None:
    rows = frame([told("a", 1.0)], [told("a", 2.0)])
    reasons = summary(rows, refused=(Refusal(name="loss", reason="is NaN", count=3),)).verdict.reasons
    (reason,) = [one for one in reasons if one.code == "refused"]
    assert reason.text == "Some values that the script reported were ignored: loss is NaN (6 times)."


def test_a_metric_that_some_runs_do_not_tell_is_said() -> None:
    found = summary(frame([told("a", 1.0), told("b", 1.0)], [told("a", 2.0)]))
    assert [one.text for one in found.verdict.reasons if one.code == "sometimes_told"] == [
        "b was reported in only 1 of 2 runs."
    ]


# Gates


def recipe(gates: str, metrics: str = "") -> str:
    return f"name: g\nworkload: {{kind: script, command: x, metrics: [{metrics}]}}\ngates: [{gates}]\n"


def test_gates_take_the_names_and_units_of_a_script() -> None:
    loads(
        recipe('accuracy >= 0.9, "epoch_ms.max <= 20 ms", regression(anything.p50) <= 3%', "{name: epoch_ms, unit: ms}")
    )
    with pytest.raises(RecipeError, match="the unit of accuracy is unknown"):
        loads(recipe("accuracy <= 3 ms"))
    with pytest.raises(RecipeError, match="epoch_ms is in ms, not in s"):
        loads(recipe("epoch_ms <= 3 s", "{name: epoch_ms, unit: ms}"))
    with pytest.raises(RecipeError, match="there is no metric 'accuracy'"):
        loads(
            recipe("accuracy >= 0.9").replace(
                "kind: script, command: x, metrics: []", "kind: model, model: m, engine: e"
            )
        )


def test_gates_judge_what_a_script_told() -> None:
    found = summary(frame(*([told("accuracy", 0.95 + n / 1000)] for n in range(8))), {"name": "accuracy"})
    outcomes = judge_gates(["accuracy >= 0.9", "accuracy <= 0.9", "other <= 1"], found, lambda key: key)
    assert [one.state for one in outcomes] == [GateState.PASSED, GateState.FAILED, GateState.CANNOT_TELL]


def test_a_gate_names_a_series_by_its_labels() -> None:
    test, train = labels_text({"fold": "1", "split": "test"}), labels_text({"fold": "1", "split": "train"})
    rows = [[told("loss", 1.0, labels=test), told("loss", 2.0, labels=train)] for _ in range(8)]
    gates = ["loss/fold=1,split=test <= 1.5", "loss/fold=1,split=train.max<=1.5", "regression(loss/a=b) <= 3%"]
    outcomes = judge_gates(gates, summary(frame(*rows)), lambda key: key)
    assert [one.state for one in outcomes] == [GateState.PASSED, GateState.FAILED, GateState.CANNOT_TELL]
    assert outcomes[2].text == "loss/a=b.p50"


def test_a_busy_machine_voids_times_and_not_what_was_computed() -> None:
    rows = frame(*([told("loss", 0.25), told("epoch_ms", 9.0 + n), told("wall_s", 2.0)] for n in range(8)))
    found = summary(rows, foreign_cpu=0.9)
    assert found.verdict.grade is Grade.VOID
    assert [one.text.partition(".")[0] for one in found.verdict.reasons if one.code == "spared"] == [
        "A disturbed machine does not change loss, because they are not times, rates, power or memory"
    ]
    assert verdict_on(found, "loss.p50").grade is Grade.SUSPECT  # of no clean run at all
    assert {verdict_on(found, key).grade for key in ("epoch_ms.p50", "wall_s.p50")} == {Grade.VOID}
    gates = ["loss <= 0.3", "loss <= 0.2", "epoch_ms <= 100", "verdict == valid"]
    states = [one.state for one in judge_gates(gates, found, lambda key: key)]
    assert states == [GateState.PASSED, GateState.FAILED, GateState.CANNOT_TELL, GateState.FAILED]


@pytest.mark.parametrize(
    ("name", "unit", "depends"),
    [
        ("loss", "", False), ("accuracy", "%", False), ("loss", "nat", False), ("val_acc_1", "", False),
        ("miss_rate", "1", False), ("miss_rate", "", True), ("steps", "", False), ("epoch", "", False),
        ("x", "ms", True), ("x", "img/s", True), ("x", "images per second", True), ("x", "GiB", True), ("x", "W", True),
        ("x", "TFLOPS", True), ("throughput", "", True), ("epoch_time", "", True), ("step_ms", "", True),
        ("wall_s", "", True), ("gpu_util", "%", True), ("tokens_per_s", "", True),
    ],
)  # fmt: skip
def test_the_unit_says_what_a_busy_machine_changes_and_without_one_the_name(
    name: str, unit: str, *, depends: bool
) -> None:
    assert depends_on_machine(Metric(name=name, unit=unit, better="neither", meaning="")) is depends


@pytest.mark.parametrize(("better", "worse"), [("lower", True), ("higher", False)])
def test_which_way_is_worse_the_recipe_says(better: str, worse: bool) -> None:
    rng = np.random.default_rng(7)
    before, after = (
        summary(frame(*([told("a", level + rng.random() / 10)] for _ in range(8))), {"name": "a", "better": better})
        for level in (10.0, 12.0)
    )
    found = worsening_between("a.p50", before, after)
    assert not isinstance(found, str)
    assert (found.value > 0) is worse
    undirected = summary(frame([told("a", 1.0)]), {"name": "a"})
    assert worsening_between("a.p50", undirected, undirected) == (
        "a p50 may be better higher or lower: a script says which with `better` in workload.metrics."
    )


def test_a_comparison_is_decided_by_what_has_a_better_way() -> None:
    rows = frame([told("loss", 1.0), told("note", 2.0), told("speed", 3.0), told("wall_s", 4.0)])
    found = summary(rows, {"name": "loss"}, {"name": "speed", "better": "higher"})
    roles = {one.key: one.role for one in choose_metrics("script", found.runs, (), found.metrics)}
    assert roles == {
        "loss.p50": "headline", "speed.p50": "headline", "note.p50": "supporting", "wall_s.p50": "supporting",
    }  # fmt: skip
