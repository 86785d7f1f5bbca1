"""A document as it was parsed, with the place of every key in its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prony.recipe.problems import DocumentProblem

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
    """Where a key stands: a file with line and column (from 1), or the option that set it."""

    source: str
    line: int | None = None
    column: int | None = None


Marks = Mapping[Keys, Mark]


@dataclass(frozen=True)
class Parsed:
    """What one text says. `problems` are those that leave the rest readable, such as a key that stands twice."""

    document: Any
    marks: Marks = field(default_factory=dict)
    problems: tuple[DocumentProblem, ...] = ()

    def having(self, *problems: DocumentProblem) -> Parsed:
        return replace(self, problems=self.problems + problems)


def format_path(keys: Keys) -> str:
    """Return the path as people write it: `matrix.exclude[0].workload.engine`."""
    parts = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys]
    # What cannot be encoded cannot be printed either.
    return "".join(parts).removeprefix(".").encode(errors="replace").decode()


def mark_of(marks: Marks, keys: Keys) -> Mark:
    """Return the mark of the key itself, or of the nearest thing around it."""
    for length in range(len(keys), -1, -1):
        if keys[:length] in marks:
            return marks[keys[:length]]
    return Mark("")


def problem_at(marks: Marks, keys: Keys, message: str, hint: str = "") -> DocumentProblem:
    """Return a problem of the key, placed as exactly as the marks allow."""
    mark = mark_of(marks, keys)
    return DocumentProblem(format_path(keys), message, hint, source=mark.source, line=mark.line, column=mark.column)


def with_value(document: Any, keys: Keys, value: Any) -> Any:
    """Return the document with one value set; maps on the way are made where there are none."""
    if not keys:
        return value
    inner = document if isinstance(document, dict) else {}
    return inner | {keys[0]: with_value(inner.get(keys[0]), keys[1:], value)}


def value_at(document: Any, keys: Keys) -> tuple[bool, Any]:
    """Return whether the document has something there, and what."""
    for key in keys:
        inner = dict(enumerate(document)) if isinstance(document, list) else document
        if not isinstance(inner, dict) or key not in inner:
            return False, None
        document = inner[key]
    return True, document
