"""YAML by the core schema of 1.2, whichever parser PyYAML was built with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from prony.errors import RecipeError
from prony.recipe import yaml_text
from prony.recipe.positions import Mark


@pytest.fixture(params=["BaseLoader", "CBaseLoader"], autouse=True)
def _loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(yaml, request.param):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_text, "LOADER", getattr(yaml, request.param))


def parsed(text: str) -> Any:
    return yaml_text.parse(text, "r.yaml").document


def refusal(text: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        yaml_text.parse(text, "r.yaml")
    return caught.value


@pytest.mark.parametrize(
    "word",
    [
        "10:00:00",
        "on",
        "off",
        "yes",
        "no",
        "y",
        "1_000",
        "2024-01-01",
        "0b101",
        "0o8",
        "0xG",
        "1,5",
        "=",
        "tRue",
        "+0x1F",
    ],
)
def test_a_plain_word_that_1_1_would_bend_stays_text(word: str) -> None:
    assert parsed(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e3", 1000.0), ("0o17", 15), ("017", 17), ("0x1F", 31), ("-12", -12), ("+7", 7), (".5", 0.5), ("6.", 6.0),
        ("-1.5E-2", -0.015), ("null", None), ("~", None), ("", None), ("True", True), ("FALSE", False),
        ("'1'", "1"), ('"true"', "true"), ("!!str 8", "8"), ("!!float 8", 8.0), ("! 8", "8"),
    ],
)  # fmt: skip
def test_a_scalar_means_what_the_core_schema_says(word: str, value: object) -> None:
    found = parsed(f"a: {word}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_infinities_and_no_number_are_read_as_such() -> None:
    read = parsed("[.inf, -.INF, .nan]")
    assert read[:2] == [float("inf"), float("-inf")]
    assert read[2] != read[2]


def test_every_key_and_item_knows_its_line_and_column() -> None:
    marks = yaml_text.parse("a: 1\nb:\n  c: [x,\n      y]\n", "r.yaml").marks
    assert marks[("a",)] == Mark("r.yaml", 1, 1)
    assert marks[("b", "c")] == Mark("r.yaml", 3, 3)
    assert marks[("b", "c", 1)] == Mark("r.yaml", 4, 7)


def test_an_anchor_can_be_used_again_and_merged() -> None:
    text = "base: &b {x: 1, y: 2}\nother: &o {y: 3, z: 4}\nsame: *b\none: {<<: *b, y: 9}\nmany: {<<: [*b, *o]}\n"
    read = parsed(text)
    assert read["same"] == {"x": 1, "y": 2}
    assert read["one"] == {"x": 1, "y": 9}
    assert read["many"] == {"x": 1, "y": 2, "z": 4}


def test_merging_what_is_no_map_is_a_problem() -> None:
    (problem,) = yaml_text.parse("a: {<<: 3, x: 1}", "r.yaml").problems
    assert (problem.path, problem.message) == ("a", "<< needs a map, and this is not a map")


def test_a_key_that_stands_twice_is_a_problem_at_the_second() -> None:
    (problem,) = yaml_text.parse("a:\n  x: 1\n  x: 2\n", "r.yaml").problems
    assert problem.text == "r.yaml:3: a.x: duplicate key, first in line 2"


@pytest.mark.parametrize("key", ["8", "true", "~", "[a]", "{a: b}", "1.5"])
def test_a_key_that_is_not_text_is_a_problem(key: str) -> None:
    (problem,) = yaml_text.parse(f"? {key}\n: 1\n", "r.yaml").problems
    assert problem.hint == "a key is text: put it in quotes"


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases expand" in refusal("\n".join(lines)).message


def test_a_bomb_of_merges_is_refused_quickly() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 12)]
    assert "merges expand" in refusal("\n".join(lines)).message


def test_an_alias_of_what_encloses_it_is_refused() -> None:
    assert "no anchor &a" in refusal("a: &a [*a]").message


def test_depth_is_bounded() -> None:
    assert "nested too deeply" in refusal("[" * 5000).message
    assert "nested too deeply" in refusal("- " * 500 + "x").message


def test_depth_through_aliases_is_bounded() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} {'[' * 30}*a{n - 1}{']' * 30}" for n in range(1, 5)]
    assert "nested too deeply" in refusal("\n".join(lines)).message


def test_a_second_document_is_refused_with_its_line() -> None:
    assert refusal("a: 1\n---\nb: 2\n").message.startswith("r.yaml:2: this is not a recipe: a second document")


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!own", "!!binary", "!!set", "!!timestamp"])
def test_a_tag_that_makes_anything_but_a_plain_value_is_refused(tag: str) -> None:
    assert "does not fit here" in refusal(f"a: {tag} x").message


def test_a_tab_gets_advice() -> None:
    error = refusal("a:\n\tb: 1\n")
    assert error.message.startswith("r.yaml:2: this is not YAML")
    assert error.hint == "indent with spaces, never with tabs"


def test_a_colon_in_text_gets_advice() -> None:
    assert refusal("name: a: b\n").hint.startswith("put text with ': ' in quotes")


def test_a_forbidden_character_is_refused_with_its_line() -> None:
    assert "character that YAML forbids" in refusal("a: 1\nb: \x07\n").message
