"""A comparison of configurations in rows and columns, with what each costs and how many watts it takes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prony.model.base import Noun
from prony.model.estimate import Estimate, Grade
from prony.model.metric import Better

Against = Literal["cost", "power", "energy"]


class MatrixTerms(Noun):
    """What stands where: a word such as `device` or `engine`, or the path of any setting or label."""

    rows: str = Field(default="device", max_length=200)
    columns: str = Field(default="engine", max_length=200)
    metric: str | None = Field(default=None, max_length=200, description="default: the headline of the workload")
    against: Against | None = Field(
        default=None, description="second axis of the Pareto front (default: cost, else power)"
    )


class Price(Noun):
    """What an hour costs, and who says so."""

    per_hour: float
    currency: str
    source: str


class Worth(Noun):
    """What one thing that a job does costs; None where no price or no energy counter is there.

    `per_million` is money for a million of `things`, `per_money` things for one unit of money, `per_joule` things for
    one joule, which is also things a second for one watt, and `joules_each` the joules of one thing.
    """

    things: str
    price: Price | None = None
    per_million: Estimate | None = None
    per_money: Estimate | None = None
    power_w: Estimate | None = None
    per_joule: Estimate | None = None
    joules_each: Estimate | None = None
    note: str = ""


class MatrixCell(Noun):
    """One row and column. `mark`: best, or not distinguishable from the best; empty where nothing may be said."""

    row: str
    column: str
    jobs: tuple[str, ...] = ()
    estimate: Estimate | None = None
    grade: Grade | None = None
    worths: tuple[Worth, ...] = ()
    mark: Literal["best", "as good", ""] = ""
    # What is compared with what: cells of other work have another name here.
    work: str = ""
    note: str = ""


class ParetoPoint(Noun):
    """`is_front`: nothing else is better in one and no worse in the other."""

    row: str
    column: str
    value: Estimate
    against: Estimate
    is_front: bool


class MatrixReport(Noun):
    """A metric of every configuration, row by column, with the configurations that no other beats."""

    experiments: tuple[str, ...]
    terms: MatrixTerms
    metric: str
    unit: str
    better: Better
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    pareto: tuple[ParetoPoint, ...] = ()
    notes: tuple[str, ...] = ()
