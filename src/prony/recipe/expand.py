"""Recipe in, jobs out: one for each combination of the matrix."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from prony.model.job import Job
from prony.model.recipe import Recipe, Scalar
from prony.recipe.marks import Marks, problem_at, with_value
from prony.recipe.matrix import combinations, matrix_problems
from prony.recipe.problems import Problem, recipe_error
from prony.recipe.shape import follow
from prony.recipe.validate import problems_of, validated

Cell = dict[str, Scalar]


def expand(recipe: Recipe, experiment_id: str, marks: Marks | None = None) -> list[Job]:
    """Return the jobs of one submission, the last axis turning fastest.

    With the marks of the text that the recipe came from, a problem names its line.
    """
    cells = recipe_cells(recipe, marks or {})
    return [_job(experiment_id, number, cell, whole) for number, (cell, whole) in enumerate(cells, start=1)]


def recipe_cells(recipe: Recipe, marks: Marks) -> list[tuple[Cell, Recipe]]:
    """Return each combination with the whole recipe that it makes; whatever is wrong is raised, all at once."""
    document = recipe.model_dump(mode="json", exclude={"matrix"})
    problems = matrix_problems(recipe.matrix, document, marks)
    if problems:
        raise recipe_error(problems)
    cells: list[tuple[Cell, Recipe]] = []
    for cell in combinations(recipe.matrix):
        try:
            cells.append((cell, validated(_substituted(document, cell))))
        except ValidationError as exc:
            problems += _in_cell(cell, exc, document, marks)
    problems += _twins(cells, marks)
    if not cells and not problems:
        problems = [problem_at(marks, ("matrix", "exclude"), "leaves no combination to run", "exclude less")]
    if problems:
        raise recipe_error(problems)
    return cells


def _substituted(document: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
    whole = dict(document)
    for path, value in cell.items():
        whole = with_value(whole, follow(path).keys, value)
    return whole


def _in_cell(cell: Cell, exc: ValidationError, document: Any, marks: Marks) -> Iterator[Problem]:
    """Each value fits alone, so what is left is values that do not go together."""
    for problem in problems_of(exc, _substituted(document, cell), {}):
        said = f"with {_spoken(cell)}, {problem.path}: {problem.message}"
        yield problem_at(marks, ("matrix",), said, problem.hint or "exclude this combination")


def _twins(cells: list[tuple[Cell, Recipe]], marks: Marks) -> Iterator[Problem]:
    """Tell of combinations that are written differently and mean the same, such as `60s` and `1m`."""
    seen: dict[str, Cell] = {}
    for cell, whole in cells:
        first = seen.setdefault(whole.model_dump_json(exclude={"matrix"}), cell)
        if first is not cell:
            yield problem_at(marks, ("matrix",), f"{_spoken(cell)} is the same job as {_spoken(first)}")


def _spoken(cell: Cell) -> str:
    return ", ".join(f"{path}={value}" for path, value in cell.items())


def _job(experiment_id: str, number: int, cell: Cell, recipe: Recipe) -> Job:
    return Job(
        id=f"{experiment_id}-{number:03d}",
        experiment_id=experiment_id,
        name=recipe.name,
        cell=cell,
        workload=recipe.workload,
        measure=recipe.measure,
        load=recipe.load,
        limits=recipe.limits,
        labels=recipe.labels,
        seed=_seed(experiment_id, number),
    )


def _seed(experiment_id: str, number: int) -> int:
    """Return the same 32 bits for the same job on every machine and in every version of Python."""
    digest = hashlib.sha256(f"{experiment_id}/{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
