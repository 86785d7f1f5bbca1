"""Read a recipe that was submitted, and check what it asks for; nothing of the store is needed for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.app.check_jobs import check_names, check_one_place, check_target
from prony.dispatch.matching import demand_of
from prony.errors import InputError
from prony.model.job import Job
from prony.model.queue import Submission
from prony.model.recipe import Recipe
from prony.recipe import LoadedRecipe, loads
from prony.recipe.formats import format_of

MOST_JOBS = 20_000
MOST_DEMANDS = 200


@dataclass(frozen=True)
class ReadOrder:
    """A recipe to be read; its jobs get ids of this experiment. `apart`: each run of a duet is a job of its own."""

    submission: Submission
    identity: str = "compatibility"
    apart: bool = False


@dataclass(frozen=True)
class ReadRecipe:
    """What was read of a recipe: it without its marks, and the jobs that it becomes."""

    order: ReadOrder
    loaded: LoadedRecipe
    cells: list[Job]


def read_recipe(order: ReadOrder) -> ReadRecipe:
    """Read the recipe and return the jobs that it becomes; nobody has submitted them yet."""
    submission = order.submission
    loaded = loads(submission.text, format_of(Path(submission.name)), submission.name, submission.overrides)
    check_target(loaded)
    cells = loaded.jobs(order.identity, apart=order.apart)
    check_job_count(len(cells))
    for cell in cells:
        check_one_place(cell.load)
    check_names(cells)
    _check_demands(loaded.recipe, cells)
    return ReadRecipe(order, replace(loaded, marks={}, document={}), cells)


def check_job_count(count: int) -> None:
    if count > MOST_JOBS:
        raise InputError(
            f"this recipe makes {count} jobs, more than the {MOST_JOBS} that a server takes at once",
            hint="submit it in parts: leave values out of the matrix, or exclude some",
            code="too_many_jobs",
        )


def _check_demands(recipe: Recipe, cells: Sequence[Job]) -> None:
    """Refuse jobs that want too many different things of a device: each of them is held against every agent."""
    count = len({demand_of(cell, recipe.place).id for cell in cells})
    if count > MOST_DEMANDS:
        raise InputError(
            f"the jobs of this recipe ask for {count} different combinations of engine, unit and precision; the most "
            f"is {MOST_DEMANDS}",
            hint="split the recipe, and submit its parts",
            code="too_many_jobs",
        )
