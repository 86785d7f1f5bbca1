"""Set options like `workload.batch_size=8` in a parsed document."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prony.errors import InputError, RecipeError
from prony.model.fact import looks_like_comparison
from prony.ports.models import scheme_of
from prony.recipe.positions import Keys, Mark, Parsed, value_at, with_value
from prony.recipe.problems import DocumentProblem
from prony.recipe.schema_lookup import Node, alternatives, follow, is_nullable, is_plain_text


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


def anchor_overrides(overrides: Sequence[str], base: Path, *, here: bool = True) -> list[str]:
    """Return the options with relative paths of files beginning at `base`, as paths on a command line do.

    Not `here`, only what travels to a server is a path of this machine: the folder of a script.
    """
    found = []
    for option in overrides:
        path, equals, text = option.partition("=")
        whole = path.strip()
        kind = _path_kind(whole.removeprefix("matrix."))
        if not equals or kind is None or not (here or kind == "scripts"):
            found.append(option)
            continue
        try:
            value = _value(text, follow(whole.removeprefix("matrix.")).node)
        except RecipeError:  # told with its option where it is set
            found.append(option)
            continue
        anchored = anchor_value(whole.removeprefix("matrix."), value, base)
        found.append(option if anchored == value else f"{whole}={json.dumps(anchored)}")
    return found


def anchor_value(path: str, value: Any, base: Path) -> Any:
    """Return the value of a key, or the values of an axis; a relative path of a file then begins at `base`."""
    if _path_kind(path) is None:
        return value
    if isinstance(value, list):
        return [anchor_value(path, one, base) for one in value]
    if not isinstance(value, str) or not value or scheme_of(value) != "file" or value.startswith("file://"):
        return value
    return str(base / os.path.expanduser(value.removeprefix("file:")))  # noqa: PTH111 - keeps an unknown user's home


def names_a_file(path: str) -> bool:
    """May the value of this key be the path of a file or a folder?"""
    return _path_kind(path) is not None


def _path_kind(path: str) -> bool | str | None:
    """Return what the schema calls the path that may stand there; None where it is no path of a file."""
    ways = alternatives(follow(path).node or {})
    return next((way["path"] for way in ways if way.get("path") in (True, "reference", "scripts")), None)


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
