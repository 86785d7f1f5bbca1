"""A recipe is looked at over HTTP before it is submitted: its mistakes, its jobs, who could run them, how long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from prony.client import Client
from prony.model.queue import Submission
from prony.model.recipe import json_schema

from .house import FACTS, House, served

GOOD = """
name: looked-at
workload: {kind: model, model: "zoo:noop", engine: "null"}
matrix: {workload.batch_size: [1, 2, 4]}
"""


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("own")) as found:
        yield found


def test_a_mistake_is_told_with_its_place_and_the_nearest_right_key(house: House) -> None:
    text = 'name: x\nworkload:\n  kind: model\n  model: "zoo:tiny"\n  engin: onnxruntime\n'
    with Client(house.url) as client:
        found = client.recipes.check(Submission(text=text))
    first = found.problems[0]
    assert (first.line, first.column, first.path) == (5, 3, "workload.engin")
    assert "engine" in first.hint
    assert (found.jobs, found.planned, found.runnable, found.expected) == (0, (), False, None)


@pytest.mark.parametrize("text", ["", "a: [", "name: x\nworkload: {kind: model, model: 'zoo:tiny', engine: nobody}"])
def test_whatever_is_written_is_answered_with_problems(house: House, text: str) -> None:
    with Client(house.url) as client:
        assert client.recipes.check(Submission(text=text)).problems


def test_a_good_recipe_is_told_with_its_jobs_and_who_lacks_what(own: House) -> None:
    own.enrol("fits")
    own.enrol("lacks", capabilities={"facts": FACTS | {"engine": "onnxruntime"}})
    with Client(own.url) as client:
        found = client.recipes.check(Submission(text=GOOD))
        assert own.client.get("/api/v1/experiments").json()["items"] == []
    assert (found.problems, found.name, found.kind, found.jobs) == ((), "looked-at", "model", 3)
    assert [one.title for one in found.planned] == ["batch_size=1", "batch_size=2", "batch_size=4"]
    assert found.runnable
    told = {one.agent_name: (one.fits, [lack.fact for lack in one.lacks]) for one in found.lots[0].agents}
    assert told == {"fits": (True, []), "lacks": (False, ["engine"])}


def test_the_schema_is_that_of_the_command_and_the_examples_say_what_they_are(house: House) -> None:
    with Client(house.url) as client:
        schema, found = client.recipes.schema(), client.recipes.examples().items
    assert found[0].name == "quickstart"
    assert {one.kind for one in found} >= {"model", "service"}
    assert all(one.summary and one.text for one in found)
    assert schema == json_schema()


def test_every_example_is_good(house: House) -> None:
    with Client(house.url) as client:
        for one in client.recipes.examples().items:
            assert client.recipes.check(Submission(text=one.text, name=one.file)).problems == (), one.file


def test_the_names_for_a_recipe_are_told(house: House) -> None:
    with Client(house.url) as client:
        found = client.recipes.catalogue()
    assert {"zoo:tiny", "zoo:mobilenet-v2"} <= {one.name for one in found.models}
    assert {"onnxruntime", "openvino"} <= {one.name for one in found.engines}
    assert {"redis", "vllm"} <= {one.name for one in found.services}
    assert all(one.about for one in (*found.models, *found.drivers, *found.tasks))
    assert found.metric_titles["inference_ms.p50"] == "Inference p50"
    assert found.metric_titles["decode_tok_s"] == "Decode"
    assert len(set(found.metric_titles.values())) == len(found.metric_titles)
