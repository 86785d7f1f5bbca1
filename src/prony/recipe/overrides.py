"""A parsed document and options like `workload.batch_size=8` in, the document with them set out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prony.errors import RecipeError
from prony.model.wanted import looks_like_comparison
from prony.recipe.marks import Keys, Mark, Parsed, value_at, with_value
from prony.recipe.problems import Problem
from prony.recipe.shape import follow, is_plain_text


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
        return parsed.having(Problem("", "is not PATH=VALUE", "for example workload.batch_size=8", source))
    keys, is_text, problem = _target(parsed, path, source)
    if problem:
        return parsed.having(problem)
    try:
        value = text if _is_comparison(keys, text) else _value(text, is_text)
    except RecipeError as exc:
        told = str(exc.problems[0]["message"])
        return parsed.having(Problem(path, told, "put the value in quotes if it is text", source))
    marks = {place: mark for place, mark in parsed.marks.items() if place[: len(keys)] != keys}
    document = with_value(parsed.document, keys, value)
    return replace(parsed, document=document, marks=marks | {keys: Mark(source)})


def _target(parsed: Parsed, path: str, source: str) -> tuple[Keys, bool, Problem | None]:
    """Return the place that an option sets, whether it holds only text, and what speaks against setting it."""
    if path.startswith("matrix."):
        return ("matrix", path.removeprefix("matrix.")), False, None
    route = follow(path)
    if route.node is None:
        return (), False, Problem(path, "unknown key", route.hint, source)
    if value_at(parsed.document, ("matrix", path))[0]:
        hint = f"remove it from the matrix, or set matrix.{path}=[...]"
        return (), False, Problem(path, "the matrix varies this already", hint, source)
    return route.keys, is_plain_text(route.node), None


def _is_comparison(keys: Keys, text: str) -> bool:
    """Say whether this is a comparison with a fact: YAML would take `>` for folded text and `!` for a tag."""
    return keys[:2] == ("place", "where") and len(keys) > 2 and looks_like_comparison(text)


def _value(text: str, is_text: bool) -> Any:
    """Read the value as YAML would; where only text fits, a bare number is text too."""
    from prony.recipe import yaml_text

    value = yaml_text.parse(text, "value").document
    is_word = value is None or isinstance(value, bool | int | float)
    return text if is_text and is_word else value
