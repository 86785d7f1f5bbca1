"""Options of the command line, set as a recipe would say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.model.recipe import Recipe
from prony.recipe import loads
from prony.recipe.overrides import anchor_overrides

TEXT = """\
name: a
workload: {kind: model, model: m, engine: e, threads: 2}
matrix: {workload.batch_size: [1, 2]}
"""


NO_UNIT = "measure.max_time: a duration needs a unit (ns, us, ms, s, m, h, d): write 60s, not 60"
NO_LIST = "matrix.workload.threads: must be a list with at least one value, not 1"
NOT_FINITE = "workload.options.a: must be a finite number, not inf"


def recipe_with(*overrides: str) -> Recipe:
    return loads(TEXT, overrides=overrides).recipe


def refusal(*overrides: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        recipe_with(*overrides)
    return caught.value


def test_values_are_read_by_the_rules_of_yaml_1_2() -> None:
    recipe = recipe_with("workload.threads=8", "measure.check=false", "workload.unit=no", "measure.max_time=5m")
    assert (recipe.work(ModelWorkload).threads, recipe.measure.check, recipe.work(ModelWorkload).unit) == (
        8,
        False,
        "no",
    )
    assert recipe.measure.max_time == 300 * 10**9


def test_null_takes_a_value_away() -> None:
    assert recipe_with("workload.threads=null").work(ModelWorkload).threads is None


def test_a_map_and_a_list_are_written_in_flow_style() -> None:
    recipe = recipe_with("workload.inputs={axes: {seq: 64}, shapes: {x: [1, 3]}}", "measure.until={ci: 5%}")
    assert recipe.work(ModelWorkload).inputs.axes == {"seq": 64}
    assert recipe.work(ModelWorkload).inputs.shapes == {"x": (1, 3)}
    assert recipe.measure.until is not None
    assert recipe.measure.until.ci == 0.05


def test_names_of_the_users_own_can_be_set_dots_and_all() -> None:
    recipe = recipe_with(
        "labels.build.id=42",
        "workload.options.session.fast=1",
        "workload.inputs.axes.seq=64",
        "workload.inputs.values.in.1.constant=3",
    )
    assert recipe.labels == {"build.id": "42"}
    assert recipe.work(ModelWorkload).options == {"session.fast": 1}
    assert recipe.work(ModelWorkload).inputs.axes == {"seq": 64}
    assert recipe.work(ModelWorkload).inputs.values["in.1"].constant == 3


def test_where_only_text_fits_a_number_needs_no_quotes() -> None:
    assert recipe_with("name=2024", "description=", "labels.a=null").name == "2024"


def test_an_axis_can_be_set_replaced_and_excluded_from() -> None:
    recipe = recipe_with("matrix.workload.batch_size=[4, 8]", "matrix.workload.engine=[e, f]")
    assert recipe.matrix.axes == {"workload.batch_size": [4, 8], "workload.engine": ["e", "f"]}
    assert recipe_with("matrix.exclude=[{workload.batch_size: 2}]").matrix.exclude == [{"workload.batch_size": 2}]
    assert recipe_with("matrix={}").matrix.axes == {}


def test_the_last_of_two_wins() -> None:
    assert recipe_with("workload.threads=3", "workload.threads=4").work(ModelWorkload).threads == 4


def test_what_the_matrix_varies_cannot_be_set_beside_it() -> None:
    error = refusal("workload.batch_size=8")
    assert error.message == "--set workload.batch_size=8: workload.batch_size: the matrix varies this already"
    assert error.hint == "remove it from the matrix, or set matrix.workload.batch_size=[...]"


@pytest.mark.parametrize(
    ("option", "message", "hint"),
    [
        ("workload.thread=8", "workload.thread: unknown key", "did you mean workload.threads?"),
        ("wrkload.threads=8", "wrkload.threads: unknown key", "did you mean workload.threads?"),
        ("threads=8", "threads: unknown key", "it belongs in workload: workload.threads"),
        ("workload.threads.x=8", "workload.threads.x: unknown key", "workload.threads has no keys inside it"),
        ("workload.threads=1000000", "workload.threads: must be a whole number from 1 to 4096, not 1000000", ""),
        ("workload.threads=many", "workload.threads: must be a whole number from 1 to 4096, not 'many'", ""),
        ("measure.max_time=60", NO_UNIT, ""),
        ("matrix.workload.threds=[1]", "matrix.workload.threds: no such key to vary", "did you mean workload.threads?"),
        ("matrix.workload.threads=1", NO_LIST, "write [1]"),
        ("workload.threads", "is not PATH=VALUE", "for example workload.batch_size=8"),
        ("=8", "is not PATH=VALUE", "for example workload.batch_size=8"),
        ("workload.options.a=.inf", NOT_FINITE, "write it as text, in quotes"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_told_by_its_own_text(option: str, message: str, hint: str) -> None:
    error = refusal(option)
    assert (
        error.message == f"--set {option}: {message}"
        or error.message == f"--set {option}: {option.split('=', maxsplit=1)[0]}: unknown key"
    )
    assert error.hint == hint


def test_a_value_that_is_no_yaml_is_told() -> None:
    assert refusal("workload.threads=[").message.startswith(
        "--set workload.threads=[: workload.threads: this is not YAML"
    )


def test_a_path_with_nothing_between_its_dots_is_unknown() -> None:
    assert "unknown key" in refusal("workload..threads=1").message


HERE = Path("/here")


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("workload.model=models/a.onnx", 'workload.model="/here/models/a.onnx"'),
        ("workload.model=file:a.onnx", 'workload.model="/here/a.onnx"'),
        ("workload.model=/x/a.onnx", "workload.model=/x/a.onnx"),
        ("workload.model=zoo:tiny", "workload.model=zoo:tiny"),
        ("workload.model=https://h/a.onnx", "workload.model=https://h/a.onnx"),
        ("matrix.workload.model=[a.onnx, 'zoo:tiny']", 'matrix.workload.model=["/here/a.onnx", "zoo:tiny"]'),
        ("workload.directory=src", 'workload.directory="/here/src"'),
        ("workload.directory=null", "workload.directory=null"),
        ("workload.inputs.values.x.file=x.npy", 'workload.inputs.values.x.file="/here/x.npy"'),
        ("workload.engine=onnxruntime", "workload.engine=onnxruntime"),
        ("workload.model=[a", "workload.model=[a"),
        ("nonsense", "nonsense"),
    ],
)
def test_a_relative_path_that_is_typed_begins_where_it_is_typed(option: str, found: str) -> None:
    assert anchor_overrides([option], HERE) == [found]


def test_for_a_server_only_the_folder_of_a_script_is_a_path_of_this_machine() -> None:
    given = ["workload.model=a.onnx", "workload.directory=src"]
    assert anchor_overrides(given, HERE, here=False) == ["workload.model=a.onnx", 'workload.directory="/here/src"']
