"""Reject values that a format can express and a recipe cannot, such as dates and infinities."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, time
from typing import Any

from prony.recipe.positions import Keys, Marks, Parsed, problem_at
from prony.recipe.problems import Problem


def sound(parsed: Parsed) -> Parsed:
    """Return the document with a problem and a stand-in for each date, infinity, giant and half character."""
    problems: list[Problem] = []
    document = _sound(parsed.document, (), parsed.marks, problems)
    return replace(parsed, document=document).having(*problems)


def _sound(value: Any, keys: Keys, marks: Marks, problems: list[Problem]) -> Any:
    """Return the value without what a format can say and a recipe cannot, each with a problem and a stand-in."""
    if isinstance(value, dict):
        names = {key: _sound(key, (*keys, key), marks, problems) for key in value}
        return {names[key]: _sound(inner, (*keys, key), marks, problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner, (*keys, index), marks, problems) for index, inner in enumerate(value)]
    message, stand_in = _unsound(value)
    if message:
        problems.append(problem_at(marks, keys, message, "write it as text, in quotes"))
    return stand_in if message else value


def _unsound(value: Any) -> tuple[str, Any]:
    if isinstance(value, date | time):
        return "is a date or a time, which no key of a recipe takes", str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be a finite number, not {value}", 0
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "is a whole number beyond 64 bits", 0
    if isinstance(value, str) and (mended := value.encode(errors="replace").decode()) != value:
        return "has half a character in it (a lone surrogate)", mended
    return "", value
