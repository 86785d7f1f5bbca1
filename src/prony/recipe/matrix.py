"""Check a recipe's matrix and duet, and list the combinations of the matrix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from pydantic import ValidationError

from prony.model.recipe import Duet, Matrix
from prony.model.workload import Scalar
from prony.recipe.limits import MOST_AXES
from prony.recipe.messages import show_value
from prony.recipe.positions import Keys, Mark, Marks, problem_at, with_value
from prony.recipe.problems import Problem
from prony.recipe.schema_lookup import axis_trouble, follow, nearest
from prony.recipe.validate import problems_of, validate_document

MOST_JOBS = 10_000
_Values = tuple[tuple[bool, Scalar], ...]
_COUNTABLE = 10**18
# Nobody reads more, and each of them is looked up among all keys of a recipe.
_MOST_TOLD = 100


def matrix_problems(matrix: Matrix, document: Mapping[str, Any], marks: Marks) -> list[Problem]:
    """Find every axis that leads nowhere or holds a value that does not fit, and every idle `exclude`."""
    if len(matrix.axes) > MOST_AXES:
        message = f"{len(matrix.axes):,} axes are too many: the most is {MOST_AXES}"
        return [problem_at(marks, ("matrix",), message, "split it into several recipes")]
    count = math.prod(len(values) for values in matrix.axes.values())
    if count > MOST_JOBS:
        shown_count = f"{count:,}" if count < _COUNTABLE else f"more than {_COUNTABLE:,}"
        message = f"{shown_count} combinations are too many: the most is {MOST_JOBS:,}"
        return [problem_at(marks, ("matrix",), message, "split it into several recipes")]
    return list(islice(_matrix_problems(matrix, document, marks), _MOST_TOLD))


def _matrix_problems(matrix: Matrix, document: Mapping[str, Any], marks: Marks) -> Iterator[Problem]:
    for path, values in matrix.axes.items():
        yield from _axis(("matrix", path), path, values, document, marks)
    for index, entry in enumerate(matrix.exclude):
        yield from _exclusion(index, entry, matrix.axes, marks)


def duet_problems(duet: Duet, document: Mapping[str, Any], marks: Marks) -> list[Problem]:
    """Find every path of a side that leads nowhere, and every value that does not fit."""
    return list(islice(_duet_problems(duet, document, marks), _MOST_TOLD))


def _duet_problems(duet: Duet, document: Mapping[str, Any], marks: Marks) -> Iterator[Problem]:
    for side in ("a", "b"):
        for path, value in getattr(duet, side).items():
            yield from _axis(("duet", side, path), path, [value], document, marks)


def _axis(place: Keys, path: str, values: list[Scalar], document: Mapping[str, Any], marks: Marks) -> Iterator[Problem]:
    trouble = axis_trouble(path)
    if trouble:
        yield problem_at(marks, place, *trouble)
        return
    keys = follow(path).keys
    seen: set[tuple[bool, Scalar]] = set()  # as `same` has it
    for index, value in enumerate(values):
        if (isinstance(value, bool), value) in seen:
            yield problem_at(marks, (*place, index), f"{show_value(value)} stands twice in this axis")
        seen.add((isinstance(value, bool), value))
        yield from _misfit((*place, index), with_value(document, keys, value), keys, marks)


def _misfit(place: Keys, document: Any, keys: Keys, marks: Marks) -> Iterator[Problem]:
    """Try one value of an axis in the recipe, and tell only what is wrong with that value."""
    try:
        validate_document(document)
    except ValidationError as exc:
        for problem in problems_of(exc, document, {keys: Mark("here")}):
            if problem.source == "here":
                yield problem_at(marks, place, problem.message, problem.hint)


def _exclusion(
    index: int, entry: Mapping[str, Scalar], axes: Mapping[str, list[Scalar]], marks: Marks
) -> Iterator[Problem]:
    place: Keys = ("matrix", "exclude", index)
    if not entry:
        yield problem_at(marks, place, "is empty, and would exclude every combination")
    for path, value in entry.items():
        if path not in axes:
            near = nearest(path, axes, at_least=0.8)
            hint = f"did you mean {near}?" if near else f"the axes are: {', '.join(axes) or 'none'}"
            yield problem_at(marks, (*place, path), "excludes nothing: this is no axis of the matrix", hint)
        elif not any(same(value, other) for other in axes[path]):
            hint = f"its values are {', '.join(str(other) for other in axes[path])}"
            yield problem_at(marks, (*place, path), f"excludes nothing: the axis has no {show_value(value)}", hint)


def combinations(matrix: Matrix) -> Iterator[dict[str, Scalar]]:
    """Yield what `exclude` leaves of the product, the last axis turning fastest."""
    excluded: dict[tuple[str, ...], set[_Values]] = {}  # by the paths that an entry names
    for entry in matrix.exclude:
        excluded.setdefault(tuple(entry), set()).add(_values(entry, entry))
    for values in itertools.product(*matrix.axes.values()):
        cell = dict(zip(matrix.axes, values, strict=True))
        if not any(_values(cell, paths) in entries for paths, entries in excluded.items()):
            yield cell


def _values(cell: Mapping[str, Scalar], paths: Iterable[str]) -> _Values:
    """Return the values of these paths, such that those are equal which are the `same`."""
    return tuple((isinstance(cell[path], bool), cell[path]) for path in paths)


def same(one: Scalar, other: Scalar) -> bool:
    """Say whether two values are one: `true` is not 1, though Python thinks so."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
