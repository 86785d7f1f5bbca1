"""Compute the Pareto front of matrix cells: value against cost or power."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.estimate import Estimate, Grade
from prony.model.matrix import Against, MatrixCell, ParetoPoint
from prony.model.metric import Better

_Point = tuple[MatrixCell, Estimate, Estimate]


def front(cells: Sequence[MatrixCell], better: Better, against: Against | None) -> tuple[ParetoPoint, ...]:
    """Return every cell that has both numbers; one is dominated where another of the same work is no worse in both and
    better in one with its whole interval."""
    if better == "neither":
        return ()
    kinds: tuple[Against, ...] = (against,) if against is not None else ("cost", "power")
    for kind in kinds:
        points = [point for cell in cells if (point := _point(cell, kind)) is not None]
        if len(points) > 1:
            sign = 1 if better == "lower" else -1
            return tuple(
                ParetoPoint(
                    row=cell.row, column=cell.column, value=value, against=price,
                    is_front=not any(_dominates(other, (cell, value, price), sign) for other in points),
                )
                for cell, value, price in points
            )  # fmt: skip
    return ()


def _point(cell: MatrixCell, against: Against) -> _Point | None:
    if cell.estimate is None or cell.grade is Grade.VOID or not cell.worths:
        return None
    worth = cell.worths[0]
    found = worth.per_million if against == "cost" else worth.power_w
    return None if found is None else (cell, cell.estimate, found)


def _dominates(one: _Point, other: _Point, sign: int) -> bool:
    if one[0] is other[0] or one[0].work != other[0].work:
        return False
    pairs = [(one[1], other[1], sign), (one[2], other[2], 1)]
    no_worse = all(way * mine.value <= way * theirs.value for mine, theirs, way in pairs)
    return no_worse and any(_clearly(mine, theirs, way) for mine, theirs, way in pairs)


def _clearly(mine: Estimate, theirs: Estimate, way: int) -> bool:
    if mine.low is None or mine.high is None or theirs.low is None or theirs.high is None:
        return False
    return mine.high < theirs.low if way > 0 else mine.low > theirs.high
