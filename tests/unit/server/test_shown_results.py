"""What a page needs to show results of any kind of workload comes from the API: columns, sections, filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.app.bench import Bench
from prony.client import Client
from prony.recipe import loads
from prony.recipe.example_recipes import examples

from .house import House

MODEL = """
name: shown
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
measure: {runs: 20, repeats: 3, isolation: fork}
"""
SCRIPT = """
name: told
workload: {kind: script, command: [python, tell.py], directory: %s}
measure: {repeats: 3}
"""
TELL = """
import prony

for step in range(4):
    prony.emit({"loss": 1.0 / (step + 1)}, step=step)
"""


def run(house: House, recipe: str) -> str:
    """Run a recipe in the server's own home; return the id of its only job."""
    made = Bench(house.fleet.context.store).run(loads(recipe), on_start=lambda *_: None, on_event=lambda _: None)
    return made.entries[0].job.id


@pytest.fixture(scope="module")
def model_job(house: House) -> str:
    return run(house, MODEL)


@pytest.fixture(scope="module")
def script_job(house: House, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("script")
    (folder / "tell.py").write_text(TELL)
    return run(house, SCRIPT % folder)


def test_results_bring_their_columns_with_label_unit_direction_and_format(house: House, model_job: str) -> None:
    found = house.client.get(f"/api/v1/experiments/{model_job.rpartition('-')[0]}/results").json()
    first, *others = found["columns"]
    assert first == {
        "key": "inference_ms.p50", "label": "Inference p50", "unit": "ms", "better": "lower", "format": "number",
        "is_headline": True,
    }  # fmt: skip
    assert {"Throughput", "Cold start", "Memory"} <= {one["label"] for one in others}
    assert all(one["key"] in found["entries"][0]["summary"]["estimates"] for one in found["columns"])
    names = [name for name, _ in found["programs"][model_job]]
    assert names == ["Engine", "Model", "Its SHA-256"]
    assert found["exports"] == []


def test_numbers_of_its_own_are_the_columns_of_a_job_that_tells_some(house: House, script_job: str) -> None:
    found = house.client.get(f"/api/v1/experiments/{script_job.rpartition('-')[0]}/results").json()
    told = [(one["key"], one["label"], one["is_headline"]) for one in found["columns"]]
    assert told[:5] == [
        ("loss.p50", "loss", True), ("wall_s.p50", "wall", False), ("cpu_s.p50", "cpu", False),
        ("cpu_percent.p50", "CPU", False), ("machine_cpu_percent.p50", "Machine CPU", False),
    ]  # fmt: skip


def test_sections_say_which_figures_there_are_and_what_was_asked_for(house: House, model_job: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.sections(model_job)
    samples, settings, inputs, *_ = found.sections
    assert [one.type for one in samples.figures] == ["distribution", "timeline", "starts"]
    assert ("requested engine", "onnxruntime") in settings.facts
    assert inputs.title == "Model and inputs"
    assert inputs.tables[0].headings[0] == "input"


def test_what_was_told_step_by_step_is_drawn_as_lines(house: House, script_job: str, model_job: str) -> None:
    with Client(house.url) as client:
        sections = client.jobs.sections(script_job).sections
        found = client.jobs.lines(script_job)
        assert client.jobs.lines(model_job).lines == ()
    assert "lines" in [one.type for one in sections[0].figures]
    assert [(one.metric, one.repetition) for one in found.lines] == [("loss", 0), ("loss", 1), ("loss", 2)]
    assert found.lines[0].steps == (0, 1, 2, 3)


def test_kinds_with_load_say_so_and_names_stand_where_they_may(house: House) -> None:
    with Client(house.url) as client:
        cards = {one.name: one for one in client.recipes.kinds().items}
        names = client.recipes.catalogue()
    assert {"model", "service", "script"} <= set(cards)
    assert [name for name, card in cards.items() if card.has_load] == ["service"]
    assert {one.example for one in cards.values()} <= {one.file for one in examples()}
    assert names.by_path["workload.model"] == names.models
    assert names.comparison_rules[0].name == "prony"
    assert "device" in names.axes


def test_the_list_tells_which_kinds_may_be_asked_for_and_takes_several(
    house: House, model_job: str, script_job: str
) -> None:
    def names(kind: str) -> set[str]:
        return {one["name"] for one in house.client.get("/api/v1/listing", params={"kind": kind}).json()["items"]}

    found = house.client.get("/api/v1/listing").json()
    assert found["kinds"] == ["hardware", "llm", "model", "script", "service"]
    assert names("model") == {"shown"}
    assert names("model,script") == {"shown", "told"}
    assert names("service") == set()
