"""Parse JSON strictly, with the position of every key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from prony.recipe.positions import Keys, Mark, Parsed, problem_at
from prony.recipe.problems import DocumentProblem, syntax_error

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
_NOT_NUMBERS = ("NaN", "Infinity", "-Infinity")


def parse(text: str, name: str) -> Parsed:
    """Parse the text; a key that stands twice and a number that is none are problems, broken JSON raises."""
    try:
        # Zero stands in for what is no number; the place of each is told by `_locate`.
        document = json.loads(text, parse_constant=lambda _: 0)
    except json.JSONDecodeError as exc:
        raise syntax_error("JSON", name, exc.msg.lower(), (exc.lineno, exc.colno), _hint(text, exc.pos)) from exc
    except RecursionError as exc:
        raise syntax_error("JSON", name, "it is nested too deeply") from exc
    except ValueError as exc:  # a whole number with more digits than Python will read
        raise syntax_error("JSON", name, "a number in it is far too long") from exc
    marks, problems = _locate(text, name)
    return Parsed(document, marks, tuple(problems))


def _hint(text: str, position: int) -> str:
    before = text[:position].rstrip()
    if before.endswith(",") and text[position : position + 1] in ("}", "]"):
        return "remove the comma before it"
    if text[position : position + 1] in ("#", "/"):
        return "JSON has no comments; YAML and TOML have"
    if text[position : position + 1] == "'":
        return "JSON text needs double quotes"
    return ""


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield every token with its line and column."""
    line, line_start, seen = 1, 0, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", seen, match.start())
        line_start = text.rfind("\n", 0, match.start()) + 1 if "\n" in text[seen : match.start()] else line_start
        seen = match.start()
        yield match[0], line, match.start() - line_start + 1


def _locate(text: str, name: str) -> tuple[dict[Keys, Mark], list[DocumentProblem]]:
    """Find every key in a text that is known to be JSON."""
    marks: dict[Keys, Mark] = {(): Mark(name, 1, 1)}
    problems: list[DocumentProblem] = []
    # One entry for each open bracket: the path of what is inside it now, and whether a key must come next.
    stack: list[tuple[Keys, bool]] = [((), False)]
    for token, line, column in _tokens(text):
        keys, is_key = stack[-1]
        mark = Mark(name, line, column)
        if is_key and token.startswith('"'):
            keys = (*keys[:-1], json.loads(token, strict=False))
            if keys in marks:
                problems.append(problem_at({keys: mark}, keys, f"duplicate key, first in line {marks[keys].line}"))
            marks.setdefault(keys, mark)
            stack[-1] = (keys, False)
            continue
        if token in _NOT_NUMBERS:
            problems.append(problem_at({keys: mark}, keys, f"JSON has no {token}", "write a finite number"))
        if token not in (":", ",", "}", "]"):
            marks.setdefault(keys, mark)
        _advance(stack, token)
    return marks, problems


def _advance(stack: list[tuple[Keys, bool]], token: str) -> None:
    keys, _ = stack[-1]
    if token == "{":
        stack.append(((*keys, ""), True))
    elif token == "[":
        stack.append(((*keys, 0), False))
    elif token in ("}", "]"):
        stack.pop()
    elif token == ",":
        last: Any = keys[-1]
        stack[-1] = ((*keys[:-1], last + 1), False) if isinstance(last, int) else (keys, True)
