"""The tables of docs/recipe.md: every key of a recipe, from its schema with the kinds that are installed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from prony.recipe.schema_lookup import Node, alternatives, describe_expected, recipe_schema
from tools.reference.markdown import format_table, format_text

_HEAD = ("key", "value", "default", "meaning")
# The comment before a table names the noun whose keys it has.
_TABLE = re.compile(r"^<!-- keys: (\w+) -->\n\n?(?:\|[^\n]*\n)*", re.MULTILINE)


def write_key_tables(page: str) -> str:
    """Return the page of the recipe with every table of keys as the schema has it."""
    return _TABLE.sub(lambda found: f"<!-- keys: {found[1]} -->\n\n{_format_keys(found[1])}", page)


def list_nouns() -> dict[str, Node]:
    """Return the maps of the schema by name. The matrix has paths for keys: people explain it."""
    schema = recipe_schema()
    found = {"Recipe": schema} | schema["$defs"]
    return {name: node for name, node in found.items() if "properties" in node and name != "Matrix"}


def _format_keys(name: str) -> str:
    nouns = list_nouns()
    if name not in nouns:
        raise ValueError(f"docs/recipe.md: no part of a recipe is called {name}")
    return format_table(_HEAD, (tuple(_cells(key, node)) for key, node in nouns[name]["properties"].items()))


def _cells(key: str, node: Node) -> Iterator[str]:
    meaning, _, default = node["description"].partition("; default: ")
    yield f"`{key}`"
    yield " or ".join(dict.fromkeys(_format_value(way) for way in alternatives(node)))
    yield format_text(default) or _format_default(key, node)
    yield format_text(meaning)


def _format_value(node: Node) -> str:
    """Return what may stand there; where only a pattern says it, the meaning explains the text."""
    if words := [node["const"]] if "const" in node else node.get("enum"):
        return ", ".join(f"`{word}`" for word in words)
    if node["type"] == "array" and "enum" in node["items"]:
        return f"list of {_format_value(node['items'])}"
    if "pattern" in node and "examples" not in node:
        return "text"
    expected = describe_expected(node).replace(" that is not empty", "").replace(" with at least one value", "")
    return expected.removeprefix("a ")


def _format_default(key: str, node: Node) -> str:
    """Return what is used where the key is missing; the defaults of a map are those of its own table."""
    default = node.get("default", "")
    if "default" not in node and not key.startswith("$"):
        return "required"
    if default in (None, [], {}, ""):
        return "none"
    if isinstance(default, dict):
        return "see its table"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"
