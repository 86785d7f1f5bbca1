"""Limits on the size, the nesting and the number of values of a recipe's text, checked before a parser reads it.

Parsers take time and memory that grow faster than the text: tomllib needs minutes for one dotted key of 250,000 parts.
The checks here take one pass over the text, whatever it holds. They only have to be right for a text that the parser
accepts: where a text is broken, the parser stops at that place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prony.errors import RecipeError
from prony.recipe.problems import DocumentProblem, recipe_error

LARGEST_BYTES = 2**20
DEEPEST = 64
MOST_VALUES = 100_000
MOST_DIRECTIVES = 10
MOST_AXES = 64
TOO_DEEP = f"is nested too deeply: the most is {DEEPEST} levels"
TOO_MANY = f"holds too many values: the most is {MOST_VALUES:,} keys, values and list items"
_SPLIT = "split it into several recipes"
_FLATTEN = "a recipe needs fewer than ten levels: is a bracket, or a part of a dotted key, left open or repeated?"

# Every quantifier is possessive, so that no text makes these go back: strings that are never closed end with the text.
_JSON = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[{}\[\],:]', re.DOTALL)
_TOML = re.compile(
    r'"""(?:[^"\\]++|\\.|""?(?!"))*+(?:"{3,5}+)?+' + r"|'''(?:[^']++|''?(?!'))*+(?:'{3,5}+)?+"
    r'|"(?:[^"\\\n]++|\\.)*+"?+' + r"|'[^'\n]*+'?+" + r"|#[^\n]*+" + r"|[{}\[\],=.\n]",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)


def check_limits(text: str, form: str, name: str) -> None:
    """Refuse a text that is too large, too deep or too full to be a recipe; `name` is what the error calls it."""
    if len(text.encode(errors="replace")) > LARGEST_BYTES:
        raise recipe_error([DocumentProblem("", "is too large for a recipe: the most is 1 MiB", _SPLIT, source=name)])
    if form == "yaml":
        _check_yaml(text, name)
        return
    for position, depth, count in _walk_toml(text) if form == "toml" else _walk_json(text):
        if depth > DEEPEST:
            raise _limit_error(text, name, position, TOO_DEEP, _FLATTEN)
        if count > MOST_VALUES:
            raise _limit_error(text, name, position, TOO_MANY, _SPLIT)


def _limit_error(text: str, name: str, position: int, message: str, hint: str = _SPLIT) -> RecipeError:
    """Return the error of a text that goes over a limit at this position."""
    line, column = text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return recipe_error([DocumentProblem("", message, hint, source=name, line=line, column=column)])


def _check_yaml(text: str, name: str) -> None:
    """Look at what libyaml reads before its first event; the values are counted one by one as it reports them."""
    for number, found in enumerate(_DIRECTIVE.finditer(text), start=1):
        if number > MOST_DIRECTIVES:
            raise _limit_error(
                text, name, found.start(), f"holds more than {MOST_DIRECTIVES} YAML directives", "a recipe needs none"
            )


def _walk_json(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every place where the text gets deeper or fuller: its position, its depth and the values so far."""
    depth, count = 0, 1
    for match in _JSON.finditer(text):
        sign = text[match.start()]
        if sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
            continue
        elif sign == '"':
            continue
        count += 1
        yield match.start(), depth, count


def _walk_toml(text: str) -> Iterator[tuple[int, int, int]]:
    """Do the same for TOML, where each part of a dotted key is a level of its own."""
    around: list[int] = []  # the depth outside of each open bracket
    base, dots, count = 0, 0, 1
    for match in _TOML.finditer(text):
        sign = text[match.start()]
        if sign in "\"'#":
            continue
        if sign in "\n,":
            dots = 0
        if sign in "[{":
            around.append(base)
            base, dots = base + dots + 1, 0
        elif sign in "]}":
            base, dots = (around.pop() if around else 0), 0
        elif sign == ".":
            dots += 1
        count += 2 if sign == "=" else sign in ".,[{"
        yield match.start(), base + dots, count
