"""Check a recipe's matrix and duet, and expand them into jobs."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from pydantic import ValidationError

from prony.model.job import Job
from prony.model.recipe import MOST_COMBINATIONS, Duet, Matrix, Recipe
from prony.model.workload import Scalar
from prony.recipe.limits import MOST_AXES
from prony.recipe.positions import Keys, Mark, Marks, problem_at, with_value
from prony.recipe.problems import DocumentProblem, recipe_error
from prony.recipe.schema_lookup import axis_trouble, follow, nearest_key, show_value
from prony.recipe.validate import problems_of, validate_document

_Values = tuple[tuple[bool, Scalar], ...]
_COUNTABLE = 10**18
# Nobody reads more, and each of them is looked up among all keys of a recipe.
_MOST_TOLD = 100
# What a recipe varies; no job has it.
_VARIED = {"matrix", "units", "duet"}


def matrix_problems(matrix: Matrix, document: Mapping[str, Any], marks: Marks) -> list[DocumentProblem]:
    """Find every axis that leads nowhere or holds a value that does not fit, and every idle `exclude`."""
    if len(matrix.axes) > MOST_AXES:
        message = f"{len(matrix.axes):,} axes are too many: the most is {MOST_AXES}"
        return [problem_at(marks, ("matrix",), message, "split it into several recipes")]
    count = math.prod(len(values) for values in matrix.axes.values())
    if count > MOST_COMBINATIONS:
        shown_count = f"{count:,}" if count < _COUNTABLE else f"more than {_COUNTABLE:,}"
        message = f"{shown_count} combinations are too many: the most is {MOST_COMBINATIONS:,}"
        return [problem_at(marks, ("matrix",), message, "split it into several recipes")]
    return list(islice(_matrix_problems(matrix, document, marks), _MOST_TOLD))


def _matrix_problems(matrix: Matrix, document: Mapping[str, Any], marks: Marks) -> Iterator[DocumentProblem]:
    for path, values in matrix.axes.items():
        yield from _axis(("matrix", path), path, values, document, marks)
    for index, entry in enumerate(matrix.exclude):
        yield from _exclusion(index, entry, matrix.axes, marks)


def duet_problems(duet: Duet, document: Mapping[str, Any], marks: Marks) -> list[DocumentProblem]:
    """Find every path of a side that leads nowhere, and every value that does not fit."""
    return list(islice(_duet_problems(duet, document, marks), _MOST_TOLD))


def _duet_problems(duet: Duet, document: Mapping[str, Any], marks: Marks) -> Iterator[DocumentProblem]:
    for side in ("a", "b"):
        for path, value in getattr(duet, side).items():
            yield from _axis(("duet", side, path), path, [value], document, marks)


def _axis(
    place: Keys, path: str, values: list[Scalar], document: Mapping[str, Any], marks: Marks
) -> Iterator[DocumentProblem]:
    trouble = axis_trouble(path)
    if trouble:
        yield problem_at(marks, place, *trouble)
        return
    keys = follow(path).keys
    seen: set[tuple[bool, Scalar]] = set()  # as `same` has it
    for index, value in enumerate(values):
        if (isinstance(value, bool), value) in seen:
            yield problem_at(marks, (*place, index), f"{show_value(value)} is given twice in this axis")
        seen.add((isinstance(value, bool), value))
        yield from _misfit((*place, index), with_value(document, keys, value), keys, marks)


def _misfit(place: Keys, document: Any, keys: Keys, marks: Marks) -> Iterator[DocumentProblem]:
    """Try one value of an axis in the recipe, and tell only what is wrong with that value."""
    try:
        validate_document(document)
    except ValidationError as exc:
        for problem in problems_of(exc, document, {keys: Mark("here")}):
            if problem.source == "here":
                yield problem_at(marks, place, problem.message, problem.hint)


def _exclusion(
    index: int, entry: Mapping[str, Scalar], axes: Mapping[str, list[Scalar]], marks: Marks
) -> Iterator[DocumentProblem]:
    place: Keys = ("matrix", "exclude", index)
    if not entry:
        yield problem_at(marks, place, "is empty, and would exclude every combination")
    for path, value in entry.items():
        if path not in axes:
            near = nearest_key(path, axes, at_least=0.8)
            hint = f"did you mean {near}?" if near else f"the axes are: {', '.join(axes) or 'none'}"
            yield problem_at(marks, (*place, path), "excludes nothing: this is not an axis of the matrix", hint)
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


Cell = dict[str, Scalar]
Side = Literal["a", "b"]
MOST_JOB_BYTES = 2**28


@dataclass(frozen=True)
class MatrixPiece:
    """One combination of the matrix, on one side where there is a duet, with the whole recipe that it makes."""

    cell: Cell
    side: Side | None
    recipe: Recipe


def expand(recipe: Recipe, experiment_id: str, marks: Marks | None = None, *, apart: bool = False) -> list[Job]:
    """Return the jobs of one submission, the last axis turning fastest.

    With the marks of the text that the recipe came from, a problem names its line. `apart`: each run of a duet is a
    job of its own, in the order in which they are to be run, because they are handed out one by one.
    """
    pieces = recipe_pieces(recipe, marks or {})
    if recipe.duet is not None:
        return _duet_jobs(recipe.duet, pieces, experiment_id, apart=apart)
    return [_job(experiment_id, number, piece) for number, piece in enumerate(pieces, start=1)]


def recipe_pieces(recipe: Recipe, marks: Marks) -> list[MatrixPiece]:
    """Return each combination with the whole recipe that it makes; whatever is wrong is raised, all at once."""
    document = recipe.model_dump(mode="json", exclude=_VARIED)
    problems = _size_problems(recipe, marks)
    if not problems:
        problems = matrix_problems(recipe.variation, document, marks)
        problems += duet_problems(recipe.duet, document, marks) if recipe.duet is not None else []
    if problems:
        raise recipe_error(problems)
    pieces: list[MatrixPiece] = []
    for cell, side in _combine(recipe):
        try:
            pieces.append(MatrixPiece(cell, side, validate_document(_substitute(document, cell))))
        except ValidationError as exc:
            problems += _in_cell(cell, exc, document, marks)
    problems += _twins(pieces, marks)
    if not pieces and not problems:
        problems = [problem_at(marks, ("matrix", "exclude"), "leaves no combination to run", "exclude less")]
    if problems:
        raise recipe_error(problems)
    return pieces


def _size_problems(recipe: Recipe, marks: Marks) -> list[DocumentProblem]:
    """Refuse jobs that are too large together: each holds all of the recipe but its matrix."""
    size = len(recipe.model_dump_json(exclude=_VARIED))
    count = math.prod(len(values) for values in recipe.variation.axes.values())
    if size * count <= MOST_JOB_BYTES or count > MOST_COMBINATIONS:  # too many are told as such
        return []
    message = f"{count:,} jobs of {size:,} bytes each are too much: the most is {MOST_JOB_BYTES // 2**20} MiB together"
    return [problem_at(marks, ("matrix",), message, "shorten the texts of the recipe, or split it")]


def _combine(recipe: Recipe) -> Iterator[tuple[Cell, Side | None]]:
    for cell in combinations(recipe.variation):
        if recipe.duet is None:
            yield cell, None
        else:
            yield cell | recipe.duet.a, "a"
            yield cell | recipe.duet.b, "b"


def _duet_jobs(duet: Duet, pieces: list[MatrixPiece], experiment_id: str, *, apart: bool) -> list[Job]:
    """Return both sides of each combination with as many runs as there are pairs; or each run as a job of its own, a
    pair in an order by chance and the next in the other."""
    jobs: list[Job] = []
    for first, second in zip(pieces[::2], pieces[1::2], strict=True):
        if not apart:
            jobs += [_job(experiment_id, len(jobs) + offset, _repeat(one, duet.pairs))
                     for offset, one in enumerate((first, second), start=1)]  # fmt: skip
            continue
        is_first = _seed(experiment_id, len(jobs)) % 2 == 0
        for pair in range(duet.pairs):
            order = (first, second) if (pair % 2 == 0) == is_first else (second, first)
            for one in order:
                job = _job(experiment_id, len(jobs) + 1, _repeat(one, 1))
                jobs.append(job.model_copy(update={"pair": pair}))
    return jobs


def _repeat(piece: MatrixPiece, repeats: int) -> MatrixPiece:
    recipe = piece.recipe
    part = recipe.workload.section
    section = getattr(recipe, part).model_copy(update={"repeats": repeats})
    return replace(piece, recipe=recipe.model_copy(update={part: section}))


def _substitute(document: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    whole = dict(document)
    for path, value in cell.items():
        whole = with_value(whole, follow(path).keys, value)
    return whole


def _in_cell(cell: Cell, exc: ValidationError, document: Any, marks: Marks) -> Iterator[DocumentProblem]:
    """Each value fits alone, so what is left is values that do not go together."""
    for problem in problems_of(exc, _substitute(document, cell), {}):
        said = f"with {_spoken(cell)}, {problem.path}: {problem.message}"
        yield problem_at(marks, ("matrix",), said, problem.hint or "exclude this combination")


def _twins(pieces: list[MatrixPiece], marks: Marks) -> Iterator[DocumentProblem]:
    """Tell of combinations that are written differently and mean the same, such as `60s` and `1m`."""
    seen: dict[str, MatrixPiece] = {}
    for piece in pieces:
        first = seen.setdefault(piece.recipe.model_dump_json(exclude=_VARIED), piece)
        if first is not piece:
            place = ("matrix",) if piece.side is None else ("duet",)
            same = f"{_spoken(piece.cell)} is the same job as {_spoken(first.cell)}"
            yield problem_at(marks, place, same, "remove one of the two")


def _spoken(cell: Cell) -> str:
    return ", ".join(f"{path}={value}" for path, value in cell.items()) or "the recipe as written"


def _job(experiment_id: str, number: int, piece: MatrixPiece) -> Job:
    recipe = piece.recipe
    return Job(
        id=f"{experiment_id}-{number:03d}",
        experiment_id=experiment_id,
        name=recipe.name,
        cell=piece.cell,
        workload=recipe.workload,
        measure=recipe.measure,
        load=recipe.load,
        limits=recipe.limits,
        labels=recipe.labels,
        seed=_seed(experiment_id, number),
        side=piece.side,
        watch=recipe.watch,
    )


def _seed(experiment_id: str, number: int) -> int:
    """Return the same 32 bits for the same job on every machine and in every version of Python."""
    digest = hashlib.sha256(f"{experiment_id}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
