"""Read what differs between the two sides of a duet, as a person says it, into overrides of a recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.model.recipe import Recipe
from prony.recipe.overrides import anchor_value, read_value

SIDES = ("a", "b")
# What a person says, and where it stands in a recipe.
_SHORT = {"engine.version": "workload.engine_version"}


def read_side(settings: Sequence[str], *, said_as: str, base: Path | None = None) -> dict[str, Any]:
    """Return the paths of a recipe with their values on one side.

    Args:
        settings: Each as `PATH=VALUE`; what is inside the workload may leave that word away.
        said_as: What a mistake is told of, as in `--a`.
        base: Where relative paths of files begin; None leaves them as they are.

    Raises:
        InputError: One is not PATH=VALUE, or a recipe has no such path.
    """
    return dict(_read_setting(text, said_as, base) for text in settings)


def _read_setting(text: str, said_as: str, base: Path | None) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise InputError(f"{said_as} {text} is not PATH=VALUE", hint="for example threads=1")
    whole = _full_path(path.strip())
    found = read_value(whole, value)
    return whole, found if base is None else anchor_value(whole, found, base)


def _full_path(path: str) -> str:
    if path in _SHORT:
        return _SHORT[path]
    return path if path.partition(".")[0] in Recipe.model_fields else f"workload.{path}"


def write_duet(sides: Mapping[str, Mapping[str, Any]], pairs: int | None) -> list[str]:
    """Return the overrides that make a recipe a duet of these sides; a side without values is as the recipe has it."""
    found = [f"duet.{side}={json.dumps(dict(values))}" for side, values in sides.items() if values]
    return found if pairs is None else [*found, f"duet.pairs={pairs}"]
