"""The JSON Schema that editors use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from lanes import count_examples
from prony.model.recipe import Recipe, json_schema
from prony.recipe import load
from prony.recipe.formats import SUFFIXES
from prony.recipe.schema_lookup import describe_expected, follow

from .strategies import documents

SCHEMA = json_schema()
RECIPES = sorted(path for path in (Path(__file__).parents[3] / "recipes").rglob("*") if path.suffix in SUFFIXES)
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}


def misfits(node: dict[str, Any], value: Any, place: str = "") -> Iterator[str]:
    """Check a value against the part of JSON Schema that this schema uses."""
    if "$ref" in node:
        yield from misfits(SCHEMA["$defs"][node["$ref"].rsplit("/", 1)[1]], value, place)
    ways = node.get("anyOf") or node.get("oneOf") or ()
    if ways and all([*misfits(way, value, place)] for way in ways):
        yield f"{place} fits no way"
    if "type" in node and not fits_type(node["type"], value):
        yield f"{place} is no {node['type']}"
        return
    if value not in node.get("enum", [value]) or value != node.get("const", value):
        yield f"{place} is no word of the list"
    if isinstance(value, str) and not re.search(node.get("pattern", ""), value):
        yield f"{place} does not match"
    if not isinstance(value, bool | str | list | dict | None) and value < node.get("minimum", value):
        yield f"{place} is too small"
    yield from inner_misfits(node, value, place)


def fits_type(kind: str, value: Any) -> bool:
    if kind == "null" or value is None:
        return kind == "null" and value is None
    return isinstance(value, TYPES[kind]) and (isinstance(value, bool) == (kind == "boolean"))


def inner_misfits(node: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from misfits(node.get("items", {}), item, f"{place}[{index}]")
    for key, item in value.items() if isinstance(value, dict) else ():
        known = [node["properties"][key]] if key in node.get("properties", {}) else []
        known += [inner for pattern, inner in node.get("patternProperties", {}).items() if re.search(pattern, key)]
        rest = node.get("additionalProperties", True)
        if not known and rest is False:
            yield f"{place}.{key} is unknown"
        for inner in known or ([rest] if isinstance(rest, dict) else []):
            yield from misfits(inner, item, f"{place}.{key}")
    missing = set(node.get("required", ())) - set(value) if isinstance(value, dict) else set()
    yield from (f"{place}.{key} is missing" for key in missing)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_every_example_fits_the_schema(path: Path) -> None:
    assert list(misfits(SCHEMA, load(path).document)) == []


@settings(max_examples=count_examples(60), deadline=None, derandomize=True)
@given(documents)
def test_every_valid_recipe_fits_the_schema(document: dict[str, Any]) -> None:
    assert list(misfits(SCHEMA, document)) == []


@pytest.mark.parametrize(
    "bent",
    [
        {"workload": {"kind": "model", "bach_size": 1}},
        {"workload": {"kind": "other"}},
        {"workload": {}},
        {"measure": {"max_time": 60}},
        {"measure": {"max_time": "60"}},
        {"limits": {"memory": "2 gigs"}},
        {"workload": {"kind": "model", "precision": "fp64"}},
        {"matrix": {"name": ["a"]}},
        {"matrix": {"workload.threads": 4}},
    ],
)
def test_an_editor_underlines_what_prony_refuses(bent: dict[str, Any]) -> None:
    good = {"name": "a", "workload": {"kind": "model", "model": "m", "engine": "e"}}
    assert list(misfits(SCHEMA, good)) == []
    assert list(misfits(SCHEMA, good | bent)) != []


def properties(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        for name, inner in {**node.get("properties", {}), **node.get("patternProperties", {})}.items():
            yield f"{place}.{name}", inner
        for key, inner in node.items():
            yield from properties(inner, f"{place}/{key}")


def test_every_property_has_a_description() -> None:
    found = list(properties(SCHEMA))
    assert len(found) > 35
    assert [place for place, node in found if not node.get("description")] == []


def test_the_defaults_that_it_names_are_the_defaults() -> None:
    assert SCHEMA["$defs"]["Measure"]["properties"]["max_time"]["default"] == "1m"
    assert SCHEMA["$defs"]["Limits"]["properties"]["timeout"]["default"] == "10m"
    workload = {"kind": "model", "model": "m", "engine": "e"}
    bare = Recipe.model_validate({"name": "a", "workload": workload})
    defaults = {
        section: {
            key: node["default"]
            for key, node in SCHEMA["$defs"][section.title()]["properties"].items()
            if "default" in node
        }
        for section in ("measure", "limits")
    }
    assert Recipe.model_validate({"name": "a", "workload": workload} | defaults) == bare


def test_it_is_json_and_says_which_dialect() -> None:
    assert json.loads(json.dumps(SCHEMA))["$schema"].startswith("https://json-schema.org/")
    assert (SCHEMA["title"], SCHEMA["additionalProperties"]) == ("Prony recipe", False)


def test_a_path_of_the_schema_leads_where_it_says() -> None:
    assert follow("workload.inputs.values.a.b.low").keys == ("workload", "inputs", "values", "a.b", "low")
    assert follow("labels.a.b").keys == ("labels", "a.b")
    assert follow("").node is None
    assert follow("workload.").keys == ("workload",)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({}, "a number"),
        ({"minimum": 1}, "a number, 1 or more"),
        ({"maximum": 5}, "a number, 5 or less"),
        ({"minimum": 0.5, "maximum": 5}, "a number from 0.5 to 5"),
        ({"exclusiveMinimum": 0, "maximum": 5}, "a number, more than 0 and 5 or less"),
        ({"minimum": 0, "exclusiveMaximum": 1}, "a number, 0 or more and less than 1"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "a number, more than 0 and less than 1"),
    ],
)
def test_every_bound_of_a_number_is_told(bounds: dict[str, float], said: str) -> None:
    assert describe_expected({"type": "number", **bounds}) == said
