"""Describe what the schema expects of a value, in a sentence."""

from __future__ import annotations

from typing import Any

from prony.recipe.schema_lookup import Node, alternatives, nearest


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
    if "maximum" in node:
        return f"{said} from {node['minimum']} to {node['maximum']}"
    return said + (f", {node['minimum']} or more" if "minimum" in node else "")


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
    if near := nearest(value.lower(), words):
        return f"did you mean {near}?"
    if "boolean" in types and value.lower() in _SPOKEN:
        return f"did you mean {_SPOKEN[value.lower()]}?"
    if types & {"integer", "number"} and isinstance(_number(value), float):
        return "leave the quotes out"
    return f"write [{value}]" if "array" in types else ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
