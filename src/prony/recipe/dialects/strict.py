"""A document and the noun that it should be in, the noun or a problem for each wrong field out, with its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from prony.model.base import Noun
from prony.recipe.marks import Keys, Parsed, problem_at, value_at
from prony.recipe.problems import Problem, recipe_error
from prony.recipe.shape import nearest
from prony.recipe.wording import advice, expected, shown

T = TypeVar("T", bound=Noun)
Node = dict[str, Any]


def read_strictly(kind: type[T], parsed: Parsed, hints: Mapping[str, str]) -> T:
    """Read a document of another program; `hints` say what to write for keys that are no keys, by their names."""
    try:
        return kind.model_validate_json(json.dumps(parsed.document), strict=True)
    except ValidationError as exc:
        whole = kind.model_json_schema()
        found: dict[Keys, Problem] = {}
        for detail in exc.errors(include_url=False):
            keys = _keys_in(parsed.document, detail)
            found.setdefault(keys, _problem(detail, keys, parsed, whole, hints))
        raise recipe_error([*parsed.problems, *_innermost(found)]) from exc


def _innermost(found: Mapping[Keys, Problem]) -> list[Problem]:
    """Leave out what is said of a whole whose part has a problem: it is that it was not the other thing either."""
    return [
        problem
        for keys, problem in found.items()
        if not any(len(other) > len(keys) and other[: len(keys)] == keys for other in found)
    ]


def _keys_in(document: Any, detail: Mapping[str, Any]) -> Keys:
    """Return the place in the document: pydantic adds the name of each way that it tried."""
    keys: Keys = ()
    for key in detail["loc"]:
        if value_at(document, (*keys, key))[0]:
            keys = (*keys, key)
    return (*keys, detail["loc"][-1]) if detail["type"] == "missing" else keys


def _problem(detail: Mapping[str, Any], keys: Keys, parsed: Parsed, whole: Node, hints: Mapping[str, str]) -> Problem:
    node = _node(whole, keys)
    value = value_at(parsed.document, keys)[1]
    if detail["type"] == "missing":
        said = node.get("description")
        example = f"for example {keys[-1]} = {json.dumps(node['examples'][0])}" if node.get("examples") else ""
        return problem_at(parsed.marks, keys, f"is missing{f': {said}' if said else ''}", example)
    if detail["type"] == "extra_forbidden":
        return problem_at(parsed.marks, keys, "unknown key", _meant(keys, whole, hints))
    if detail["type"] == "value_error":
        return problem_at(parsed.marks, keys, str(detail["ctx"]["error"]))
    if "pattern" in detail["type"] or detail["type"] == "too_long":
        return problem_at(parsed.marks, keys, f"{shown(value)} does not fit", node.get("description", ""))
    return problem_at(parsed.marks, keys, f"must be {_expected(node)}, not {shown(value)}", _advice(node, value))


def _expected(node: Node) -> str:
    ways = [way for way in node.get("anyOf", [node]) if way.get("type") != "null" or "const" in way]
    return expected({"anyOf": ways}) if ways else "something else"


def _advice(node: Node, value: Any) -> str:
    return advice(node, value) if value is not None else ""


def _meant(keys: Keys, whole: Node, hints: Mapping[str, str]) -> str:
    name, known = str(keys[-1]), list(_node(whole, keys[:-1]).get("properties", {}))
    if name in hints:
        return hints[name]
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"known here: {', '.join(known)}"


def _node(whole: Node, keys: Keys) -> Node:
    """Return the schema of a place, without references."""
    node: Node = whole
    for key in keys:
        inside = (_inside(way, key) for way in _ways(whole, node))
        node = next((inner for inner in inside if inner), {})
    ways = _ways(whole, node)
    rest = {name: value for name, value in node.items() if name not in ("anyOf", "$ref")}
    return ways[0] | rest if len(ways) == 1 else rest | {"anyOf": ways}


def _ways(whole: Node, node: Node) -> list[Node]:
    """Return every shape that a value may have there, null left out."""
    if "$ref" in node:
        return _ways(whole, whole["$defs"][node["$ref"].rpartition("/")[2]])
    if "anyOf" in node:
        return [one for way in node["anyOf"] for one in _ways(whole, way)]
    return [] if node.get("type") == "null" else [node]


def _inside(node: Node, key: str | int) -> Node:
    if isinstance(key, int):
        return dict(node.get("items", {}))
    found = node.get("properties", {}).get(key) or next(iter(node.get("patternProperties", {}).values()), None)
    return dict(found or node.get("additionalProperties") or {})
