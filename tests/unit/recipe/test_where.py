"""What a recipe asks of devices: every slip is told with its line and what was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.model.place import Place
from prony.model.recipe import json_schema
from prony.recipe import dump, load, loads

HEAD = "name: a\nworkload: {kind: model, model: zoo:tiny, engine: onnxruntime}\nplace:\n  where:\n"
RECIPES = Path(__file__).parents[3] / "recipes"


def problems(*lines: str, overrides: tuple[str, ...] = ()) -> list[tuple[object, object, object, object]]:
    with pytest.raises(RecipeError) as caught:
        loads(HEAD + "".join(f"    {line}\n" for line in lines), name="r.yaml", overrides=overrides)
    return [(told["line"], told["path"], told["message"], told["hint"]) for told in caught.value.problems]


def test_a_name_that_no_fact_has_is_answered_with_the_nearest() -> None:
    assert problems("os: linux", "cpu.coers: 4", "engin.onnxruntime: '1'") == [
        (6, "place.where.cpu.coers", "no fact has this name", "did you mean cpu.cores?"),
        (7, "place.where.engin.onnxruntime", "no fact has this name", "did you mean engine.onnxruntime?"),
    ]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("services.vllm: '>=0.6'", "did you mean service.vllm?"),
        ("servic: vllm", "did you mean service?"),
        ("launchers.mpirun: '4'", "did you mean launcher.mpirun?"),
        ("contaner: docker", "did you mean container?"),
        ("service.vllm.mean: image", "did you mean service.vllm.means?"),
        ("acces: gray", "did you mean access?"),
    ],
)
def test_a_slip_in_the_name_of_an_ability_is_answered_with_the_nearest(line: str, hint: str) -> None:
    name = line.partition(":")[0]
    assert problems(line) == [(5, f"place.where.{name}", "no fact has this name", hint)]


def test_a_comparison_that_cannot_be_understood_is_told_where_it_stands() -> None:
    assert problems("cpu.cores: '=>4'", "gpu:", "  - NVIDIA*", "  - '>=H100'") == [
        (5, "place.where.cpu.cores", "is not a comparison: '=>4'; the signs are >=, <=, >, <, ==, !=", ""),
        (8, "place.where.gpu[1]", "is text, which has no order: >= is for numbers and versions", ""),
    ]


def test_a_version_without_quotes_is_refused_before_it_is_read_wrongly() -> None:
    said = "is a version, and a bare 1.2 may have lost a zero at its end: put it in quotes"
    assert problems("engine.onnxruntime: 1.20") == [(5, "place.where.engine.onnxruntime", said, "")]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    found = problems("cpu.coers: 4", "os: null", "arch: {a: 1}", overrides=("workload.thread=2", "measure.runs=0"))
    assert [path for _, path, _, _ in found] == [
        "place.where.cpu.coers", "place.where.os", "place.where.arch.a", "workload.thread", "measure.runs",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("arch: []", "must be true or false, a number, text or a list with at least one value, not an empty list"),
        ("arch: {}", "must be true or false, a number, text or a list with at least one value, not an empty map"),
        (f"os: {json.dumps(['x'] * 101)}", "has 101 values: the most is 100"),
        (f"os: {'x' * 201}", "is text of 201 letters: the most is 200"),
    ],
)
def test_a_value_that_is_none_is_refused(line: str, message: str) -> None:
    assert [told[2] for told in problems(line)] == [message]


def test_no_more_facts_than_fifty_may_be_asked() -> None:
    assert problems(*(f"label.a{number}: b" for number in range(51))) == [
        (4, "place.where", "is too long: the most is 50", "")
    ]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("cpu.cores: >=4", "put text that begins with '>' or '|' in quotes"),
        ("os: !=windows", "put text that begins with '!' in quotes"),
    ],
)
def test_a_comparison_without_its_quotes_in_yaml_is_answered_with_them(line: str, hint: str) -> None:
    assert [(told[0], told[3]) for told in problems(line)] == [(5, hint)]


@pytest.mark.parametrize(
    ("option", "where"),
    [
        ("place.where.cpu.cores=>=4", {"cpu.cores": ">=4"}),
        ("place.where.os=!=windows", {"os": "!=windows"}),
        ("place.where.label.a.b=c", {"label.a.b": "c"}),
        ("place.where.gpu=[a, 'b*']", {"gpu": ["a", "b*"]}),
        ("place.where.gpu.count=2", {"gpu.count": 2}),
        ("place.where={os: linux, cpu.cores: '>=4'}", {"os": "linux", "cpu.cores": ">=4"}),
    ],
)
def test_an_option_asks_without_further_quotes(option: str, where: dict[str, Any]) -> None:
    bare = HEAD.partition("place:")[0]
    assert loads(bare, overrides=[option]).recipe.place == Place(where=where)


def test_a_slip_in_an_option_names_the_option() -> None:
    found = problems("os: linux", overrides=("place.where.cpu.corse=>=4",))
    assert found == [(None, "place.where.cpu.corse", "no fact has this name", "did you mean cpu.cores?")]


def test_dotted_keys_of_toml_are_names_of_facts() -> None:
    text = '\n'.join(
        (
            'name = "a"', "[workload]", 'kind = "model"', 'model = "zoo:tiny"', 'engine = "onnxruntime"',
            "[place.where]", 'os = "linux"', 'cpu.cores = ">=4"', 'engine.onnxruntime = ">=1.18"', '"gpu.count" = 2',
        )
    )  # fmt: skip
    where = {"os": "linux", "cpu.cores": ">=4", "engine.onnxruntime": ">=1.18", "gpu.count": 2}
    assert loads(text, "toml").recipe.place.where == where
    with pytest.raises(RecipeError) as caught:
        loads(text + "\ncpu.coers = 4", "toml", "r.toml")
    assert caught.value.message == "r.toml:11: place.where.cpu.coers: no fact has this name"


def test_a_fact_that_stands_dotted_and_nested_stands_twice() -> None:
    assert problems("cpu: {cores: 4}", "cpu.cores: 5") == [
        (6, "place.where.cpu.cores", "this fact is given twice, dotted and nested", "")
    ]


def test_the_matrix_cannot_vary_the_place() -> None:
    with pytest.raises(RecipeError, match="only workload, measure, load, limits, labels can vary"):
        loads(HEAD + "    os: linux\nmatrix: {place.priority: [1, 2]}")


def test_what_a_recipe_asks_survives_being_written_and_read_again() -> None:
    lines = ("cpu.cores: '>=4'", "engine.onnxruntime: '1.20'", "label.a: [true, 1, 'on', '!=b']", "label.b: 1")
    recipe = loads(HEAD + "".join(f"    {line}\n" for line in lines)).recipe
    assert loads(dump(recipe)).recipe == recipe


def test_an_editor_knows_the_names_of_facts() -> None:
    where = json_schema()["$defs"]["Place"]["properties"]["where"]
    names, families = where["propertyNames"]["anyOf"]
    assert {"os", "cpu.cores", "cpu"} <= set(names["enum"])
    assert families["pattern"] == r"^(container|engine|label|launcher|package|service)\..+$"


def test_the_example_runs_on_each_device() -> None:
    loaded = load(RECIPES / "fleet.yaml")
    assert loaded.recipe.place == Place(devices="each", where={"engine.onnxruntime": ">=1.18"})
    assert {job.work(ModelWorkload).model for job in loaded.jobs("e1")} == {"zoo:tiny", "zoo:mlp"}
