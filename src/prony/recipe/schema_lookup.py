"""Look up what the recipe's schema says about a path, and describe in a sentence what it expects of a value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from prony.model.recipe import VARIABLE, json_schema
from prony.recipe.positions import Keys, format_path

Node = dict[str, Any]


@cache
def recipe_schema() -> Node:
    return json_schema()


def alternatives(node: Node) -> list[Node]:
    """Return every shape that a value may have there; `null` is no shape."""
    if "$ref" in node:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return alternatives(recipe_schema()["$defs"][node["$ref"].rsplit("/", 1)[1]] | beside)
    ways = node.get("anyOf") or node.get("oneOf")
    if ways is None:
        return [] if node.get("type", "null") == "null" else [node]
    beside = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf")}
    return [shape for way in ways for shape in alternatives(beside | way)]


@lru_cache(maxsize=4096)
def node_at(keys: Keys) -> Node | None:
    """Return the schema of a place, or None where nothing can stand."""
    node: Node | None = recipe_schema()
    for key in keys:
        node = next((inner for way in alternatives(node or {}) if (inner := _inside(way, key)) is not None), None)
        if node is None:
            return None
    return node


def _inside(node: Node, key: str | int) -> Node | None:
    if isinstance(key, int):
        items: Node | None = node.get("items")
        return items
    if key in node.get("properties", {}):
        found: Node = node["properties"][key]
        return found
    for pattern, inner in node.get("patternProperties", {}).items():
        if re.search(pattern, key):
            return dict(inner)
    rest = node.get("additionalProperties")
    return rest if isinstance(rest, dict) else None


@lru_cache(maxsize=4096)
def known_keys(keys: Keys) -> tuple[str, ...]:
    """Return the names of the keys that may stand in a map; a map with free names has none."""
    node = node_at(keys)
    return tuple(name for way in alternatives(node or {}) for name in way.get("properties", {}))


def is_plain_text(node: Node) -> bool:
    """Say whether only text fits there, so that what is typed there needs no quotes."""
    ways = alternatives(node)
    return bool(ways) and all(way.get("type") == "string" for way in ways)


def is_nullable(node: Node) -> bool:
    return any(way.get("type") == "null" for way in node.get("anyOf", ()))


def nearest_key(word: str, known: Iterable[str], at_least: float = 0.5) -> str | None:
    """Return the known word that was most likely meant; `at_least` is the least likeness, of 1."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=at_least)
    return found[0] if found else None


@dataclass(frozen=True)
class Route:
    """Where a dotted path leads; without a node it leads nowhere, and `hint` says where it may have been meant to."""

    keys: Keys
    node: Node | None
    hint: str = ""


@lru_cache(maxsize=4096)
def follow(path: str) -> Route:
    """Split a dotted path by the schema: in a map with free names, the dots of a name belong to the name."""
    keys: Keys = ()
    rest = path
    while rest:
        key, rest = _next_key(keys, rest)
        if not key or node_at((*keys, key)) is None:
            return Route((*keys, key), None, _hint(keys, key, rest))
        keys = (*keys, key)
    return Route(keys, node_at(keys) if keys else None, "" if keys else _hint((), "", ""))


def _next_key(keys: Keys, rest: str) -> tuple[str, str]:
    if known_keys(keys):
        key, _, rest = rest.partition(".")
        return key, rest
    inner = node_at((*keys, "any"))
    if inner is not None and known_keys((*keys, "any")) and "." in rest:
        key, _, rest = rest.rpartition(".")
        return key, rest
    if inner is not None and "." in rest and any(one.get("type") == "object" for one in alternatives(inner)):
        key, _, rest = rest.partition(".")  # an option of a service or driver that is itself a map
        return key, rest
    return rest, ""


def _hint(keys: Keys, key: str, rest: str) -> str:
    near = meant(keys, key)
    if near:
        return f"did you mean {format_path((*keys, near)) + ('.' + rest if rest else '')}?"
    return elsewhere(keys, key)


def meant(keys: Keys, key: str) -> str | None:
    """Return the key of this map that was meant; one that exists in another map was meant for that one."""
    is_short = len(key) < 3  # a wrong letter of two leaves a likeness of a half
    # batch and watch are alike by 0.8, but batch is short for batch_size.
    least = 0.85 if _longer_names(key) else 0.8 if _homes(key) else 0.5 if is_short else 0.6
    return nearest_key(key, known_keys(keys), at_least=least)


def elsewhere(keys: Keys, key: str) -> str:
    """Return a hint where a key belongs that was not meant for this map, or what this map has."""
    homes, longer = _homes(key), _longer_names(key)
    if longer:
        return f"did you mean {' or '.join([*homes[:1], longer[0]])}?"
    if homes:
        return f"it belongs in {homes[0].rpartition('.')[0]}: {homes[0]}"
    known = known_keys(keys)
    return f"known here: {', '.join(known)}" if known else f"{format_path(keys)} has no keys inside it"


def _homes(key: str) -> list[str]:
    return [format_path(path) for path in _every_named() if path[-1] == key and len(path) > 1]


def _longer_names(key: str) -> list[str]:
    """Return the paths whose last key begins with this word: `batch` is short for workload.batch_size."""
    return [format_path(path) for path in _every_named() if key and str(path[-1]).startswith(f"{key}_")]


def axis_trouble(path: str) -> tuple[str, str] | None:
    """Return what speaks against varying a path, with a hint; None where it may vary."""
    route = follow(path)
    if route.node is None:
        return "no such key to vary", route.hint
    return None if route.keys[0] in VARIABLE else (f"only {', '.join(VARIABLE)} can vary", "")


@cache
def _every_named() -> tuple[Keys, ...]:
    return tuple(_named_keys())


def _named_keys(keys: Keys = ()) -> Iterator[Keys]:
    for name in known_keys(keys):
        if keys != ("matrix",):  # its nested sections mirror the recipe's own
            yield (*keys, name)
            yield from _named_keys((*keys, name))


def describe_expected(node: Node) -> str:
    """Say what may stand there: `a whole number, 1 or more`."""
    said = list(dict.fromkeys(_one(way) for way in alternatives(node)))
    if "a number" in said and "a whole number" in said:
        said.remove("a whole number")
    return " or ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _one(node: Node) -> str:
    if "const" in node:
        return str(node["const"])
    if "enum" in node:
        return f"one of {', '.join(node['enum'])}"
    if node.get("type") == "string" and "pattern" in node:
        return f"text like {' or '.join(node['examples'])}" if "examples" in node else node["description"]
    if node.get("type") == "array":
        least = " with at least one value" if node.get("minItems") else ""
        return f"a list{least}"
    return _plain(node)


def _plain(node: Node) -> str:
    said = {
        "string": "text that is not empty" if node.get("minLength") else "text",
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "object": "a map",
    }[node["type"]]
    if "minimum" in node and "maximum" in node:
        return f"{said} from {node['minimum']} to {node['maximum']}"
    bounds = {
        "minimum": "{} or more", "exclusiveMinimum": "more than {:g}", "maximum": "{} or less",
        "exclusiveMaximum": "less than {:g}",
    }  # fmt: skip
    told = [words.format(node[key]) for key, words in bounds.items() if key in node]
    return f"{said}, {' and '.join(told)}" if told else said


def show_value(value: Any) -> str:
    """Return the value as its writer would recognise it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:57]!r}..."
    if isinstance(value, int | float):
        return f"{value}"
    return (
        ("a map" if value else "an empty map") if isinstance(value, dict) else ("a list" if value else "an empty list")
    )


def advice(node: Node, value: Any) -> str:
    """Return what to write instead, where that can be told."""
    if value is None:
        return "remove the key, or give it a value"
    types = {way.get("type") for way in alternatives(node)}
    if isinstance(value, str):
        return _advice_on_text(value, types, words(node))
    if "array" in types and not isinstance(value, list | dict):
        return f"write [{value}]"
    if isinstance(value, float) and value.is_integer() and "integer" in types:
        return f"write {int(value)}"
    return "put it in quotes" if isinstance(value, int | float) and types == {"string"} and not words(node) else ""


def words(node: Node) -> list[str]:
    """Return the words that are allowed there, where only some are."""
    ways = alternatives(node)
    return [*(word for way in ways for word in way.get("enum", ())), *(way["const"] for way in ways if "const" in way)]


_SPOKEN = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


def _advice_on_text(value: str, types: set[Any], words: list[str]) -> str:
    if near := nearest_key(value.lower(), words):
        return f"did you mean {near}?"
    if "boolean" in types and value.lower() in _SPOKEN:
        return f"did you mean {_SPOKEN[value.lower()]}?"
    if types & {"integer", "number"} and isinstance(_number(value), float):
        return "remove the quotes"
    return f"write [{value}]" if "array" in types else ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
