"""Build a recipe's document from a translated one, keeping the source position of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from prony.model.base import Noun
from prony.recipe.dialects.strict import read_part
from prony.recipe.positions import Keys, Mark, Parsed, format_path, mark_of, problem_at, with_value
from prony.recipe.problems import Problem

T = TypeVar("T", bound=Noun)


@dataclass(frozen=True)
class Translation:
    """`parsed` is a recipe's document; each note says where in the text something stands that was not honoured.

    `origins` says for paths of the recipe which path of the other program's document they were made from, and
    `users_of_client` how many users one of its clients became.
    """

    parsed: Parsed
    notes: tuple[Problem, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    users_of_client: int = 1

    def as_written(self, problem: Problem) -> Problem:
        """Return a problem of the recipe as one of the key that somebody wrote, where it is known which that was."""
        around = [path for path in self.origins if _is_within(problem.path, path)]
        if problem.line is None or not around:  # an option has no line, and speaks the recipe's own words
            return problem
        hint = "; ".join(part for part in (problem.hint, f"it becomes {problem.path}") if part)
        return replace(problem, path=self.origins[max(around, key=len)], hint=hint)


def _is_within(path: str, around: str) -> bool:
    return path == around or path.startswith((f"{around}.", f"{around}["))


@dataclass
class Draft:
    """A recipe that is being made from a document of another program."""

    origin: Parsed
    document: dict[str, Any] = field(default_factory=dict)
    marks: dict[Keys, Mark] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    notes: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    users_of_client: int = 1

    def set(self, path: str, value: Any, origin: Keys = ()) -> None:
        """Set the value of a dotted path; `origin` is where it stood in the document that it is made from."""
        keys = tuple(path.split("."))
        self.document = with_value(self.document, keys, value)
        self.at(keys, origin)

    def at(self, keys: Keys, origin: Keys) -> None:
        """Say where a part of what was set comes from."""
        self.marks[keys] = mark_of(self.origin.marks, origin)
        if origin:
            self.origins[format_path(keys)] = format_path(origin)

    def note(self, origin: Keys, message: str, hint: str = "") -> None:
        """Say what of the document is not honoured, or otherwise than it was meant there."""
        self.notes.append(problem_at(self.origin.marks, origin, message, hint))

    def refuse(self, origin: Keys, message: str, hint: str = "") -> None:
        self.problems.append(problem_at(self.origin.marks, origin, message, hint))

    def read(self, kind: type[T], written: Any, place: Keys) -> T | None:
        """Read a part of the document strictly; None where it is wrong, and then its problems are told here."""
        found, problems = read_part(kind, written, place, self.origin)
        self.problems += problems
        return found

    def translation(self) -> Translation:
        marks = {(): mark_of(self.origin.marks, ()), **self.marks}
        parsed = Parsed(self.document, marks, (*self.origin.problems, *self.problems))
        return Translation(parsed, tuple(self.notes), self.origins, self.users_of_client)
