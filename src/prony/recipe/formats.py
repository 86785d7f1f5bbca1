"""Parse text in one of the three recipe formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from prony.errors import InputError, RecipeError
from prony.model.recipe import is_toml
from prony.recipe.limits import DEEPEST, TOO_DEEP, check_limits
from prony.recipe.positions import Parsed, problem_at
from prony.recipe.problems import DocumentProblem, recipe_error

Format = Literal["yaml", "toml", "json"]
SUFFIXES: dict[str, Format] = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json"}
# How `prony bench` is given a script, which is no model.
_SCRIPTS = {".py": "--command 'python {path}'", ".sh": "--command 'sh {path}'"}


def format_of(path: Path) -> Format:
    """Return the format that a file's name promises."""
    known = SUFFIXES.get(path.suffix.lower())
    if known is None:
        what = _SCRIPTS.get(path.suffix.lower(), "{path}").format(path=path)
        hint = f"a recipe's name ends in {', '.join(SUFFIXES)}; without a recipe: prony bench {what}"
        raise InputError(f"{path} is not a recipe: unknown format", hint=hint, code="recipe")
    return known


def parse_document(text: str, form: Format, name: str) -> Parsed:
    """Parse one text; what is no document of that format at all is raised as RecipeError."""
    parser = _parser(form)
    check_limits(text, form, name)
    parsed = parser(text.removeprefix("\ufeff"), name)
    deepest = max(parsed.marks, key=len)
    if len(deepest) > DEEPEST:
        raise recipe_error([problem_at(parsed.marks, deepest[:3], TOO_DEEP)])
    if not isinstance(parsed.document, dict):
        empty = parsed.document is None
        message = "is empty" if empty else "is not a map of keys and values"
        hint = "a recipe begins with a name and a workload"
        raise recipe_error([*parsed.problems, DocumentProblem("", message, hint, source=name)])
    return parsed


def parse_any(text: str, name: str) -> Parsed:
    """Parse a text whose format nobody kept; where it is of none, the error of the likeliest is raised."""
    forms: list[Format] = ["toml", "yaml", "json"] if is_toml(text) else ["yaml", "json", "toml"]
    failures: list[RecipeError] = []
    for form in forms:
        try:
            return parse_document(text, form, name)
        except RecipeError as exc:
            failures.append(exc)
    raise failures[0]


def _parser(form: Format) -> Callable[[str, str], Parsed]:
    if form not in SUFFIXES.values():
        known = ", ".join(sorted(set(SUFFIXES.values())))
        raise InputError(f"{form!r} is not a format of recipes", hint=f"one of {known}", code="recipe")
    # Imported late: the YAML parser is slow to import, and the other two need none of it.
    if form == "yaml":
        from prony.recipe import yaml_text

        return yaml_text.parse
    if form == "toml":
        from prony.recipe import toml_text

        return toml_text.parse
    from prony.recipe import json_text

    return json_text.parse
