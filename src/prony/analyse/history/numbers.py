"""Select the points of a history that can be judged, as logarithms where more is worse."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prony.model.estimate import Grade
from prony.model.history import Level, Point
from prony.model.metric import Better
from prony.stats.quantiles import Array, median_ranks


@dataclass(frozen=True)
class JudgedNumbers:
    """`points` are those that count, in the order in which they were measured; `values` are theirs, `turned` too."""

    points: tuple[Point, ...]
    values: Array
    turned: Array
    note: str = ""

    def place_of(self, job_id: str) -> int | None:
        return next((index for index, point in enumerate(self.points) if point.job_id == job_id), None)

    def digest(self, count: int) -> str:
        """Return what these numbers are known by: another order or another result is another digest."""
        told = [f"{point.job_id}={value!r}" for point, value in zip(self.points[:count], self.values, strict=False)]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()[:32]


def select_numbers(points: Sequence[Point], metric: str, better: Better) -> JudgedNumbers:
    """Take what can be judged: a void result is shown and not judged, and what is not above zero has no ratio."""
    kept: list[tuple[Point, float]] = []
    void = absent = no_ratio = 0
    for point in sorted(points, key=lambda point: (point.measured_at, point.job_id)):
        value = value_of(point, metric)
        if point.grade is Grade.VOID:
            void += 1
        elif value is None or not math.isfinite(value):
            absent += 1
        elif value <= 0:
            no_ratio += 1
        else:
            kept.append((point, value))
    values = np.array([value for _, value in kept], dtype=np.float64)
    logarithms = np.log(values)
    turned = -logarithms if better == "higher" else logarithms
    return JudgedNumbers(tuple(point for point, _ in kept), values, turned, _note(void, absent, no_ratio))


def value_of(point: Point, metric: str) -> float | None:
    return point.values.get(metric)


def level_of(values: Array) -> Level:
    """Return where some numbers lie; at least one must be given."""
    ordered = np.sort(values)
    ranks = median_ranks(ordered.size)
    low, high = (None, None) if ranks is None else (float(ordered[ranks.low - 1]), float(ordered[ranks.high - 1]))
    return Level(median=float(np.median(ordered)), low=low, high=high, runs=int(ordered.size))


def _note(void: int, absent: int, no_ratio: int) -> str:
    told = [
        f"{void} void" if void else "",
        f"{absent} without this number" if absent else "",
        f"{no_ratio} of zero or less, which cannot be compared as a ratio" if no_ratio else "",
    ]
    shown = ", ".join(part for part in told if part)
    return f"not judged: {shown}" if shown else ""
