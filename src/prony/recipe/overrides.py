"""Set options like `workload.batch_size=8` in a parsed document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prony.errors import InputError, RecipeError
from prony.model.fact import looks_like_comparison
from prony.recipe.positions import Keys, Mark, Parsed, value_at, with_value
from prony.recipe.problems import DocumentProblem
from prony.recipe.schema_lookup import Node, follow, is_nullable, is_plain_text


def overridden(parsed: Parsed, overrides: Sequence[str]) -> Parsed:
    """Set each option in turn; one that cannot be set is a problem that names the option."""
    for option in overrides:
        parsed = _set(parsed, option)
    return parsed


def _set(parsed: Parsed, option: str) -> Parsed:
    source = f"--set {option}".encode(errors="replace").decode()
    path, equals, text = option.partition("=")
    path = path.strip()
    if not equals or not path:
        return parsed.having(DocumentProblem("", "is not PATH=VALUE", "for example workload.batch_size=8", source))
    keys, node, problem = _target(parsed, path, source)
    if problem:
        return parsed.having(problem)
    try:
        value = text if _is_comparison(keys, text) else _value(text, node)
    except RecipeError as exc:
        told = str(exc.problems[0]["message"])
        return parsed.having(DocumentProblem(path, told, "put the value in quotes if it is text", source))
    marks = {place: mark for place, mark in parsed.marks.items() if place[: len(keys)] != keys}
    document = with_value(parsed.document, keys, value)
    return replace(parsed, document=document, marks=marks | {keys: Mark(source)})


def read_value(path: str, text: str) -> Any:
    """Return what a text means as the value of a path: `1.20` is a number, but a version where only text fits."""
    route = follow(path)
    if route.node is None:
        raise InputError(f"{path}: unknown key", hint=route.hint, code="recipe")
    return _value(text, route.node)


def _target(parsed: Parsed, path: str, source: str) -> tuple[Keys, Node | None, DocumentProblem | None]:
    """Return the place that an option sets, what may stand there, and what speaks against setting it."""
    if path.startswith("matrix."):
        return ("matrix", path.removeprefix("matrix.")), None, None
    route = follow(path)
    if route.node is None:
        return (), None, DocumentProblem(path, "unknown key", route.hint, source)
    if value_at(parsed.document, ("matrix", path))[0]:
        hint = f"remove it from the matrix, or set matrix.{path}=[...]"
        return (), None, DocumentProblem(path, "the matrix varies this already", hint, source)
    return route.keys, route.node, None


def _is_comparison(keys: Keys, text: str) -> bool:
    """Say whether this is a comparison with a fact: YAML would take `>` for folded text and `!` for a tag."""
    return keys[:2] == ("place", "where") and len(keys) > 2 and looks_like_comparison(text)


def _value(text: str, node: Node | None) -> Any:
    """Read the value as YAML would; where only text fits, a bare number is text too."""
    from prony.recipe import yaml_text

    value = yaml_text.parse(text, "value").document
    if node is None or not is_plain_text(node):
        return value
    if value is None:
        return None if is_nullable(node) else text
    return text if isinstance(value, bool | int | float) else value
