"""Text in one of three formats in, a parsed document out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import date, time
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from prony.errors import InputError
from prony.recipe.marks import Keys, Parsed, problem_at
from prony.recipe.problems import Problem, recipe_error

Format = Literal["yaml", "toml", "json"]
SUFFIXES: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}
LARGEST_BYTES = 2**20


def format_of(path: Path) -> Format:
    """Return the format that a file's name promises."""
    known = SUFFIXES.get(path.suffix.lower())
    if known is None:
        raise InputError(
            f"{path}: a recipe is YAML, TOML or JSON, and this name does not tell which",
            hint=f"end the name with {', '.join(SUFFIXES)}",
            code="recipe",
        )
    return known


def parse(text: str, form: Format, name: str) -> Parsed:
    """Parse one text; what is no document of that format at all is raised as RecipeError."""
    if len(text.encode(errors="replace")) > LARGEST_BYTES:
        raise recipe_error([Problem("", "is too large for a recipe: the most is 1 MiB", source=name)])
    parsed = _parser(form)(text.removeprefix("\ufeff"), name)
    if not isinstance(parsed.document, dict):
        empty = parsed.document is None
        message = "is empty" if empty else "is not a map of keys and values"
        hint = "a recipe begins with a name and a workload"
        raise recipe_error([*parsed.problems, Problem("", message, hint, source=name)])
    return parsed.having(*_unsound(parsed))


def _parser(form: Format) -> Callable[[str, str], Parsed]:
    # Imported late: the YAML parser is slow to import, and the other two need none of it.
    if form not in SUFFIXES.values():
        known = ", ".join(sorted(set(SUFFIXES.values())))
        raise InputError(f"{form!r} is not a format of recipes", hint=f"one of {known}", code="recipe")
    parser: Callable[[str, str], Parsed] = import_module(f"prony.recipe.{form}_text").parse
    return parser


def _unsound(parsed: Parsed) -> Iterator[Problem]:
    """Find what a format can say and a recipe cannot: dates, infinities, numbers beyond 64 bits, half characters."""
    stack: list[tuple[Keys, Any]] = [((), parsed.document)]
    while stack:
        keys, value = stack.pop()
        message = _unsound_scalar(value)
        if message:
            yield problem_at(parsed.marks, keys, message, "write it as text, in quotes")
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        stack += [((*keys, key), item) for key, item in inner]
        if isinstance(value, dict):
            yield from (
                problem_at(parsed.marks, keys, "has a key with half a character") for key in value if _is_broken(key)
            )


def _unsound_scalar(value: Any) -> str:
    if isinstance(value, date | time):
        return "is a date or a time, which no key of a recipe takes"
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, not {value}"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "is a whole number beyond 64 bits"
    if isinstance(value, str) and _is_broken(value):
        return "has half a character in it (a lone surrogate)"
    return ""


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
