"""Detect a new level, a drift or a suspicious run at the end of a series.

Numbers here are logarithms turned so that more is worse: a unit is a constant that falls out, and a rate is judged as
its inverse is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prony.stats.changes import (
    WEAK,
    block_length,
    correlation,
    is_drift,
    middle,
    robust_sd,
    scores,
    split_p,
    strongest_split,
)
from prony.stats.quantiles import Array

Kind = Literal["regression", "improvement", "drift"]
_RECENT = 30
_FAR = 2.5
_LEAST_BEFORE_ONE = 8
# How near to the new level runs of long ago must have been for it to count as seen before.
_NEAR = 0.75
_LONGEST_VISIT = 10
_VISIT_REACH = 6.0


@dataclass(frozen=True)
class Rules:
    """When a person is told. `threshold` is the smallest change of interest; a gate at just that size would miss half.

    `alpha` is what one look may cost in false alarms, `suspicion` what a look may cost in confirming runs.
    """

    threshold: float = 0.03
    alpha: float = 0.002
    suspicion: float = 0.02
    window: int = 60
    learning: int = 20
    relearning: int = 12

    @property
    def least(self) -> float:
        """The smallest change that is told."""
        return max(0.01, self.threshold * 2 / 3)

    def is_large(self, shift: float) -> bool:
        """Is a difference of logarithms, up or down, a change of interest?"""
        return abs(math.expm1(shift)) >= self.least or abs(math.expm1(-shift)) >= self.least


@dataclass(frozen=True)
class Finding:
    """`position` is the first run of the new level; `seen_before` says that earlier runs left that level again.

    `is_early`: it seems to be newer than the few runs that a level needs.
    """

    kind: Kind
    position: int
    shift: float
    strength: float
    p: float
    correlated: float
    seen_before: bool = False
    is_early: bool = False


def detect_change(level: Array, rules: Rules) -> Finding | None:
    """Judge the last runs of a level; None where nothing is strong enough even for a suspicion."""
    offset = max(0, level.size - rules.window)
    window = level[offset:]
    marks = scores(window)
    split = strongest_split(marks) if marks is not None else None
    if marks is None or split is None or abs(split.strength) <= WEAK:
        return None
    position = split.position
    shift = middle(np.subtract.outer(window[position:], window[:position]).ravel())
    if not rules.is_large(shift):
        return None
    is_line = is_drift(marks, position)
    correlated = correlation(marks, position, is_line=is_line)
    p = split_p(marks, split, block=block_length(correlated, window.size))
    if p > rules.suspicion:
        return None
    kind: Kind = "drift" if is_line else "regression" if shift > 0 else "improvement"
    # Two runs are so far off that a third one is counted with them: then it is too early to say where it began.
    is_early = strongest_split(marks, after=1) != split
    return Finding(kind, offset + position, shift, split.strength, p, correlated, is_early=is_early)


def stands_apart(level: Array, rules: Rules) -> float | None:
    """Return how many deviations the last run lies from the ones before, where that is suspicious; else None."""
    earlier, last = level[-_RECENT - 1 : -1], float(level[-1])
    if earlier.size < _LEAST_BEFORE_ONE:
        return None
    away, spread = last - middle(earlier), robust_sd(earlier)
    if not rules.is_large(away) or abs(away) <= _FAR * spread:
        return None
    return away / spread if spread else math.copysign(math.inf, away)


def was_visited(earlier: Array, before: Array, after: Array) -> bool:
    """Say whether earlier runs were at the new level, came from the old one, and went back to it.

    A machine that switches between two speeds does that; so does a fault that was mended and came back, and only runs
    of both versions side by side can tell these two apart.
    """
    length = min(after.size, _LONGEST_VISIT)
    centre, spread = middle(before), robust_sd(before)
    if earlier.size < 3 * length or spread == 0:
        return False

    def marks(values: Array) -> Array:
        clipped: Array = ((values - centre) / spread).clip(-_VISIT_REACH, _VISIT_REACH)
        return clipped

    old, new = float(np.mean(marks(before))), float(np.mean(marks(after)))
    if old == new:
        return False
    means = np.convolve(marks(earlier), np.ones(length) / length, "valid")
    ways = (means - old) / (new - old)
    there, home = np.flatnonzero(ways >= _NEAR), np.flatnonzero(ways <= 1 - _NEAR)
    return bool(there.size and home.size and there[-1] >= home[0] + length)
