"""JSON, strictly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from lanes import count_examples
from prony.errors import RecipeError
from prony.recipe import json_text, loads
from prony.recipe.positions import Mark

from .strategies import documents
from .test_toml_text import every_path


def test_every_key_and_item_knows_its_line_and_column() -> None:
    marks = json_text.parse('{"a": 1,\n "b": {"c\\u0041": [10,\n  {"d": "}"}]}}', "r.json").marks
    assert marks[("a",)] == Mark("r.json", 1, 2)
    assert marks[("b", "cA")] == Mark("r.json", 2, 8)
    assert marks[("b", "cA", 1)] == Mark("r.json", 3, 3)
    assert marks[("b", "cA", 1, "d")] == Mark("r.json", 3, 4)


@settings(max_examples=count_examples(100), deadline=None, derandomize=True)
@given(documents)
def test_the_locator_finds_every_path_and_nothing_else(document: dict[str, Any]) -> None:
    parsed = json_text.parse(json.dumps(document, indent=1), "r.json")
    assert parsed.problems == ()
    assert set(parsed.marks) == every_path(document)


def test_a_key_that_stands_twice_is_a_problem_at_the_second() -> None:
    (problem,) = json_text.parse('{"a": {"x": 1,\n"x": 2}}', "r.json").problems
    assert problem.text == "r.json:2: a.x: duplicate key, first in line 1"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_a_problem(word: str) -> None:
    (problem,) = json_text.parse(f'{{"a":\n {word}}}', "r.json").problems
    assert problem.text == f"r.json:2: a: JSON has no {word}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"a": 1 // no\n}', "JSON has no comments; YAML and TOML have"),
        ("{'a': 1}", "JSON text needs double quotes"),
    ],
)
def test_common_slips_get_advice(text: str, hint: str) -> None:
    with pytest.raises(RecipeError) as caught:
        json_text.parse(text, "r.json")
    assert caught.value.hint == hint
    assert caught.value.message.startswith("r.json:1: this is not JSON")


def test_depth_and_digits_are_bounded() -> None:
    with pytest.raises(RecipeError, match="nested too deeply"):
        json_text.parse("[" * 200_000, "r.json")
    with pytest.raises(RecipeError, match="far too long"):
        json_text.parse("1" * 5000, "r.json")


def test_an_editor_may_find_the_schema_in_the_file() -> None:
    text = '{"$schema": "schema.json", "name": "a", "workload": {"kind": "model", "model": "m", "engine": "e"}}'
    assert loads(text, "json").recipe.name == "a"
