"""Collect the problems of a recipe into one error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from prony.errors import RecipeError

_SHOWN = 40
# What a recipe is called that a command made of its options: nobody saw its lines.
OPTIONS = "the options"


@dataclass(frozen=True)
class DocumentProblem:
    """One mistake: `path` is the key's dotted path, `source` the file or the option in which it stands."""

    path: str
    message: str
    hint: str = ""
    source: str = ""
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        return self.source if self.line is None or self.source == OPTIONS else f"{self.source}:{self.line}"

    @property
    def text(self) -> str:
        """The problem in one line, without its hint."""
        return ": ".join(part for part in (self.where, self.path, self.message) if part)

    @property
    def as_line(self) -> str:
        """The problem in one line, with its hint."""
        return f"{self.text} ({self.hint})" if self.hint else self.text


def recipe_error(
    problems: Iterable[DocumentProblem], hint: str = "`prony schema` prints every key that a recipe may have"
) -> RecipeError:
    """Return the error that tells every problem, in the order of the text, the first as its headline.

    `hint` is for all of them, where there are several."""
    found = sorted(dict.fromkeys(problems), key=_place)
    told = [asdict(problem) for problem in found]
    if len(found) == 1:
        return RecipeError(found[0].text, hint=found[0].hint, problems=told)
    lines = [problem.as_line for problem in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more problems")
    return RecipeError("\n".join(lines), hint=hint, problems=told)


def syntax_error(
    form: str, name: str, message: str, place: tuple[int, int] | None = None, hint: str = ""
) -> RecipeError:
    """Return the error of a text that is no document of its format at all."""
    line, column = place or (None, None)
    return recipe_error(
        [DocumentProblem("", f"this is not {form}: {message}", hint, source=name, line=line, column=column)]
    )


def _place(problem: DocumentProblem) -> tuple[int, int]:
    # Options of the command line come after what stands in the file.
    return (problem.line or sys.maxsize, problem.column or 0)
