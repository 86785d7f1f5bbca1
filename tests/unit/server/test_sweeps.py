"""Gates, matrices and sweeps are answered over HTTP as the commands show them, and a wrong question is refused."""

from __future__ import annotations

import pytest

from prony.app.bench import Bench
from prony.client import Client
from prony.errors import InputError
from prony.model.matrix import MatrixTerms
from prony.recipe import loads

from .house import House

RECIPE = """
name: judged
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
matrix: {workload.batch_size: [1, 2]}
measure: {runs: 5, repeats: 3, isolation: fork}
gates: ["verdict != void", "regression(inference_ms.p50) <= 3%"]
cost: {per_hour: 1.5}
"""


@pytest.fixture(scope="module")
def experiment_id(house: House) -> str:
    bench = Bench(house.fleet.context.store)
    return bench.run(loads(RECIPE), on_start=lambda *_: None, on_event=lambda _: None).experiment.id


def test_gates_are_judged_on_every_job(house: House, experiment_id: str) -> None:
    found = house.client.get(f"/api/v1/experiments/{experiment_id}/gates").raise_for_status().json()
    assert [one["gate"] for one in found["outcomes"][:2]] == ["verdict != void", "regression(inference_ms.p50) <= 3%"]
    assert len(found["outcomes"]) == 4
    # There is no earlier experiment of this name, or its numbers are void: either way nobody can say.
    assert {one["state"] for one in found["outcomes"] if "regression" in one["gate"]} == {"cannot tell"}


def test_more_gates_may_be_asked_and_a_wrong_one_is_refused(house: House, experiment_id: str) -> None:
    with Client(house.url) as client:
        found = client.analyses.gates(experiment_id, strict=True, more=["inference_ms <= 1000", "load_ms <= 1000"])
        assert (found.strict, len(found.outcomes)) == (True, 8)
        with pytest.raises(InputError, match="there is no metric 'nothing'"):
            client.analyses.gates(experiment_id, more=["nothing <= 3"])


def test_a_matrix_has_the_price_of_its_recipe(house: House, experiment_id: str) -> None:
    with Client(house.url) as client:
        found = client.analyses.matrix([experiment_id], MatrixTerms(rows="batch", columns="engine"))
        with pytest.raises(InputError, match="no job has anything under 'colour'"):
            client.analyses.matrix([experiment_id], MatrixTerms(rows="colour", columns="engine"))
    assert (found.rows, found.columns, found.metric) == (("1", "2"), ("onnxruntime",), "inference_ms.p50")
    assert {worth.price.source for cell in found.cells for worth in cell.worths if worth.price} == {"the recipe"}


def test_models_make_no_sweep(house: House, experiment_id: str) -> None:
    with Client(house.url) as client, pytest.raises(InputError, match="no job loads a service"):
        client.analyses.sweep([experiment_id])


def test_the_reports_show_the_gates_first(house: House, experiment_id: str) -> None:
    bench = Bench(house.fleet.context.store)
    assert bench.experiments.report(experiment_id, "github").decode().splitlines()[2].startswith("> [!")
    assert b'classname="judged.gates"' in bench.experiments.report(experiment_id, "junit")
    assert "## Gates" in bench.experiments.report(experiment_id, "md").decode()
    assert "<h2>Gates</h2>" in bench.experiments.report(experiment_id, "html").decode()
