"""A recipe looked at before it is submitted: what is wrong with it, what it becomes, who could run it, how long."""

from __future__ import annotations

from prony.model.base import Noun
from prony.model.queue import LotFit
from prony.model.workload import Scalar


class RecipeProblem(Noun):
    """One mistake; `line` and `column` count from 1, None where it stands nowhere in the text."""

    path: str = ""
    message: str
    hint: str = ""
    source: str = ""
    line: int | None = None
    column: int | None = None


class Planned(Noun):
    """One job that the recipe becomes."""

    title: str
    cell: dict[str, Scalar] = {}


class Expected(Noun):
    """How long all jobs take together on the agents that fit; None where nobody knows. `basis` says where from."""

    seconds: float | None = None
    basis: str


class RecipeCheck(Noun):
    """With `problems`, the rest is empty. `planned` are the first of `jobs`; `notes` say what of another program's
    format was not honoured."""

    problems: tuple[RecipeProblem, ...] = ()
    name: str = ""
    kind: str = ""
    dialect: str = ""
    notes: tuple[str, ...] = ()
    jobs: int = 0
    planned: tuple[Planned, ...] = ()
    lots: tuple[LotFit, ...] = ()
    runnable: bool = False
    expected: Expected | None = None


class Example(Noun):
    """A recipe that runs as it is; `summary` is what it says of itself."""

    name: str
    file: str
    kind: str
    summary: str
    text: str


class Examples(Noun):
    """The recipes that come with Prony."""

    items: tuple[Example, ...]


class Named(Noun):
    """A name that may stand in a recipe, and what it means."""

    name: str
    about: str = ""


class Catalogue(Noun):
    """The names that this Prony knows; which of them an agent can run is told by its abilities.

    `by_path` are the same by the place in a recipe where they may stand; `comparison_rules` and `axes` may be asked for
    in a comparison and in a matrix. `metric_titles` are what pages call a number, by its key or by its metric alone.
    """

    models: tuple[Named, ...]
    engines: tuple[Named, ...]
    services: tuple[Named, ...]
    drivers: tuple[Named, ...]
    tasks: tuple[Named, ...]
    by_path: dict[str, tuple[Named, ...]] = {}
    comparison_rules: tuple[Named, ...] = ()
    axes: tuple[str, ...] = ()
    metric_titles: dict[str, str] = {}
