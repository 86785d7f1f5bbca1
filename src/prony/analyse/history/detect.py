"""Detect a new level, a drift or a suspicious run at the end of a series.

Numbers here are logarithms turned so that more is worse: a unit is a constant that falls out, and a rate is judged as
its inverse is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from prony.analyse.history.machine_speed import MachineSpeeds, explaining_canary, helpful_canary
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
LONGEST_VISIT = 10
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

    def share_among(self, metrics: int) -> Rules:
        """Return the rules of each of several metrics that are watched: together they may cost what one may."""
        return replace(self, alpha=self.alpha / metrics, suspicion=self.suspicion / metrics)

    @property
    def least(self) -> float:
        """The smallest change that is told."""
        return max(0.01, self.threshold * 2 / 3)

    def is_large(self, shift: float) -> bool:
        """Is a difference of logarithms, up or down, a change of interest?"""
        return abs(math.expm1(shift)) >= self.least or abs(math.expm1(-shift)) >= self.least


@dataclass(frozen=True)
class Finding:
    """`position` is the first run of the new level; `seen_before` says that earlier runs left that level repeatedly.

    `is_early`: it seems to be newer than the few runs that a level needs. `canary`: whose share was taken away first.
    `is_machine`: the canary moved with it, so the machine changed.
    """

    kind: Kind
    position: int
    shift: float
    strength: float
    p: float
    correlated: float
    seen_before: bool = False
    is_early: bool = False
    canary: str | None = None
    is_machine: bool = False


NO_SPEEDS = MachineSpeeds()


def detect_change(level: Array, rules: Rules, speeds: MachineSpeeds = NO_SPEEDS) -> Finding | None:
    """Judge the last runs of a level; None where nothing is strong enough even for a suspicion.

    What its canary shows of the machine is taken away where that makes the runs calmer, or explains what was found.
    """
    offset = max(0, level.size - rules.window)
    window, beside = level[offset:], speeds.between(offset).complete()
    found = _detect_beside(window, beside, rules)
    return None if found is None else replace(found, position=offset + found.position)


def _detect_beside(window: Array, beside: MachineSpeeds, rules: Rules) -> Finding | None:
    helpful = helpful_canary(window, beside)
    if helpful is not None:
        rest = _detect_step(window - beside.beside(helpful), rules)
        if rest is not None:
            return replace(rest, canary=helpful)
    found = _detect_step(window, rules)
    if found is None:
        return None
    place = found.position
    explaining = explaining_canary(beside.between(0, place), beside.between(place), found.shift)
    if explaining is None:
        # Where the canary helps, what is left without its share is what counts.
        return found if helpful is None else None
    if helpful is not None or found.kind == "drift":
        return replace(found, canary=explaining, is_machine=True)
    rest = _detect_step(window - beside.beside(explaining), rules)
    return replace(found, canary=explaining, is_machine=True) if rest is None else replace(rest, canary=explaining)


def _detect_step(window: Array, rules: Rules) -> Finding | None:
    marks = scores(window)
    split = strongest_split(marks, least=WEAK) if marks is not None else None
    if marks is None or split is None:
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
    return Finding(kind, position, shift, split.strength, p, correlated, is_early=is_early)


def stands_apart(level: Array, rules: Rules, speeds: MachineSpeeds = NO_SPEEDS) -> float | None:
    """Return how many deviations the last run lies from the ones before, where that is suspicious; else None."""
    offset = max(0, level.size - 1 - _RECENT)
    recent, beside = level[offset:], speeds.between(offset).complete()
    if recent.size - 1 < _LEAST_BEFORE_ONE:
        return None
    earlier = beside.between(0, -1)
    helpful = helpful_canary(recent[:-1], earlier)
    if helpful is not None:
        recent = recent - beside.beside(helpful)
    away, spread = float(recent[-1]) - middle(recent[:-1]), robust_sd(recent[:-1])
    if not rules.is_large(away) or abs(away) <= _FAR * spread:
        return None
    if helpful is None and explaining_canary(earlier, beside.between(recent.size - 1), away) is not None:
        return None
    return away / spread if spread else math.copysign(math.inf, away)


def count_visits(earlier: Array, before: Array, after: Array) -> int:
    """Count how often earlier runs came from the old level, stayed at the new one, and went back.

    Once is what a fault does that was mended and comes back. Twice or more is what a machine does that switches between
    two speeds, and only its canary or runs of both versions side by side can tell that from a fault.
    """
    length = min(after.size, LONGEST_VISIT)
    centre, spread = middle(before), robust_sd(before)
    if earlier.size < 3 * length or spread == 0:
        return 0

    def marks(values: Array) -> Array:
        clipped: Array = ((values - centre) / spread).clip(-_VISIT_REACH, _VISIT_REACH)
        return clipped

    old, new = float(np.mean(marks(before))), float(np.mean(marks(after)))
    if old == new:
        return 0
    means = np.convolve(marks(earlier), np.ones(length) / length, "valid")
    ways = (means - old) / (new - old)
    visits, home = 0, -1
    for place, way in enumerate(ways):
        if way <= 1 - _NEAR:
            home = place if home < 0 else home
        elif way >= _NEAR and 0 <= home <= place - length:
            visits, home = visits + 1, -1
    return visits
