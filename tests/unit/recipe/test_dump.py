"""A recipe survives the trip through every format."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from lanes import count_examples
from prony.model.recipe import Recipe
from prony.recipe import dump, loads

from .strategies import documents, recipe_of, toml


@settings(max_examples=count_examples(150), deadline=None, derandomize=True)
@given(documents)
def test_what_dump_writes_loads_to_an_equal_recipe(document: dict[str, Any]) -> None:
    recipe = recipe_of(document)
    assert loads(dump(recipe)).recipe == recipe


@settings(max_examples=count_examples(100), deadline=None, derandomize=True)
@given(documents)
def test_the_same_document_means_the_same_in_all_three_formats(document: dict[str, Any]) -> None:
    recipe = recipe_of(document)
    assert loads(json.dumps(document, indent=2), "json").recipe == recipe
    assert loads(json.dumps(document, ensure_ascii=False), "json").recipe == recipe
    assert loads(toml(document), "toml").recipe == recipe


@settings(max_examples=count_examples(50), deadline=None, derandomize=True)
@given(documents)
def test_a_recipe_survives_its_own_json(document: dict[str, Any]) -> None:
    recipe = recipe_of(document)
    assert Recipe.read_json(recipe.model_dump_json()) == recipe
    assert Recipe.read(recipe.model_dump()) == recipe


@pytest.mark.parametrize("word", ["1e3", "0o17", "on", "no", "10:00:00", "~", "", "2024-01-01", "1_000", "0b11"])
def test_a_label_that_looks_like_something_else_stays_text_for_readers_of_either_yaml(word: str) -> None:
    recipe = recipe_of(
        {"name": "a", "workload": {"kind": "model", "model": "m", "engine": "e"}, "labels": {"word": word}}
    )
    written = dump(recipe)
    assert loads(written).recipe.labels == {"word": word}
    assert yaml.safe_load(written)["labels"] == {"word": word}


def test_quantities_are_written_with_their_units_and_defaults_not_at_all() -> None:
    text = "name: a\nworkload: {kind: model, model: m, engine: e}\n"
    text += "measure: {max_time: 90s, until: {ci: 2.5%}, runs: auto}\nlimits: {memory: 2048MiB}\n"
    assert dump(loads(text).recipe) == (
        "name: a\n"
        "workload:\n  kind: model\n  model: m\n  engine: e\n"
        "measure:\n  until:\n    ci: 2.5%\n  max_time: 90s\n"
        "limits:\n  memory: 2GiB\n"
    )


_MODEL = {"kind": "model", "model": "zoo:noop", "engine": "onnxruntime"}
_SERVICE = {"kind": "service", "service": "redis"}
_SCRIPT = {"kind": "script", "command": "true"}


@pytest.mark.parametrize(
    ("workload", "section", "key", "former"),
    [
        (_MODEL, "load", "repeats", 3),
        (_SCRIPT, "load", "repeats", 3),
        (_SERVICE, "measure", "isolation", "fork"),
        (_SCRIPT, "measure", "isolation", "fork"),
    ],
)
def test_a_recipe_that_was_stored_under_a_former_default_is_read(
    workload: dict[str, Any], section: str, key: str, former: object
) -> None:
    stored = recipe_of({"name": "stored", "workload": workload}).model_dump(mode="json")
    assert stored[section][key] != former
    stored[section][key] = former
    assert getattr(getattr(Recipe.read(stored), section), key) == former


def test_a_section_of_another_kind_is_refused() -> None:
    for workload, section, key, value in ((_MODEL, "load", "repeats", 4), (_SERVICE, "measure", "repeats", 3)):
        with pytest.raises(ValueError, match="is for"):
            Recipe.read({"name": "x", "workload": workload, section: {key: value}})
