"""A gate is read as it was meant, or refused with its column and what was likely meant."""

from __future__ import annotations

import pytest

from prony.errors import RecipeError
from prony.model.gate import Gate, parse_gate
from prony.recipe import dump, loads

RECIPE = 'name: x\nworkload: {{kind: {kind}}}\ngates: ["{gate}"]\n'
MODEL = 'model, model: "zoo:tiny", engine: onnxruntime'


@pytest.mark.parametrize(
    ("text", "kind", "operator", "key", "limit"),
    [
        ("inference_ms.p99 <= 20", "bound", "<=", "inference_ms.p99", 20),
        ("throughput_per_s>=100", "bound", ">=", "throughput_per_s.p50", 100),
        ("error_rate <= 1%", "bound", "<=", "error_rate.mean", 0.01),
        ("e2e_ms/insert.p99 < 5 ms", "bound", "<", "e2e_ms/insert.p99", 5),
        ("regression(e2e_ms.p50) <= 3%", "regression", "<=", "e2e_ms.p50", 0.03),
        (" regression( inference_ms ) < 0.05 ", "regression", "<", "inference_ms.p50", 0.05),
    ],
)
def test_a_bound_is_read(text: str, kind: str, operator: str, key: str, limit: float) -> None:
    found = parse_gate(text)
    assert (found.kind, found.operator, found.key, found.limit) == (kind, operator, key, limit)


def test_a_verdict_is_read() -> None:
    assert parse_gate("verdict == valid") == Gate(text="verdict == valid", kind="verdict", operator="==", grade="valid")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("inferense_ms.p99 <= 20", "column 1: there is no metric 'inferense_ms'; did you mean inference_ms?"),
        ("inference_ms.p98 <= 20", "column 13: inference_ms has no statistic 'p98'"),
        ("inference_ms.p99 = 20", "column 18"),
        ("inference_ms.p99 == 20", "never equals a limit"),
        ("inference_ms.p99", "column 17: a comparison is missing"),
        ("inference_ms.p99 <=", "the limit is missing"),
        ("<= 20", "the metric before the comparison is missing"),
        ("inference_ms.p99 <= twenty", "column 21: 'twenty' is not a number"),
        ("inference_ms.p99 <= 20 s", "column 24: inference_ms is in ms, not in s"),
        ("inference_ms.p99 <= 20%", "is in ms, not in %"),
        ("verdict == good", "column 12: there is no verdict 'good'"),
        ("verdict <= valid", "write == or !="),
        ("regresion(e2e_ms.p50) <= 3%", "did you mean regression(...)?"),
        ("regression(e2e_ms.p50) >= 3%", "an upper limit"),
        ("regression(nothing) <= 3%", "column 12: there is no metric 'nothing'"),
        ("latency <= 3", "did you mean e2e_ms or inference_ms?"),
    ],
)
def test_a_slip_is_told_with_its_column(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^column \d+: ") as caught:
        parse_gate(text)
    assert said in str(caught.value)


def test_a_recipe_with_a_wrong_gate_is_refused_with_its_line() -> None:
    with pytest.raises(RecipeError, match=r":3: gates\[0\]: column 1: there is no metric 'nothing_ms'"):
        loads(RECIPE.format(kind=MODEL, gate="nothing_ms <= 1"))


def test_a_metric_that_this_workload_never_has_is_refused() -> None:
    with pytest.raises(RecipeError, match="a model has no error_rate"):
        loads(RECIPE.format(kind=MODEL, gate="error_rate <= 1%"))
    with pytest.raises(RecipeError, match="a service has no inference_ms"):
        loads(RECIPE.format(kind="service, service: redis", gate="inference_ms <= 1"))


def test_gates_and_cost_survive_being_written_out() -> None:
    text = RECIPE.format(kind=MODEL, gate="inference_ms.p99 <= 20") + "cost: {per_hour: 2.5}\n"
    recipe = loads(text).recipe
    assert loads(dump(recipe)).recipe == recipe
    assert recipe.cost is not None
    assert recipe.cost.currency == "USD"
