"""Say whether a machine's own results have been calm for long enough that a new level is news.

A machine that wandered before will do so again, and runs of one version cannot tell that from a change of the code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prony.analyse.history.machine_speed import MachineSpeeds, helpful_canary
from prony.stats.changes import middle, robust_sd, scores
from prony.stats.dependence import lag1
from prony.stats.quantiles import Array

# So many results show that a machine seldom changes by itself; what is older than the longest record is forgotten.
CALM_RESULTS, LONGEST_RECORD = 45, 120
# Of how many deviations of chance the likeness of neighbours and a trend must be: of calm results each is in 1 %.
_ALIKE, _TREND = 2.33, 2.6
# Two results in a row beyond half of the change were a visit, where that is so many deviations.
_PART, _CLEARLY = 0.5, 2.0


@dataclass(frozen=True)
class MachineRecord:
    """Results before a change, as logarithms without the changes that were decided to be real, and their canaries."""

    values: Array
    speeds: MachineSpeeds

    def is_calm(self, effect: float) -> bool:
        """Are these enough results, none of them moved by the machine itself in a way that the change may be?

        `effect` is the difference of logarithms that is to be confirmed. What a helpful canary explains does not count.
        """
        if self.values.size < CALM_RESULTS:
            return False
        beside = self.speeds.complete()
        helpful = helpful_canary(self.values, beside)
        if helpful is None:
            return not _moves(self.values, effect)
        canary = beside.beside(helpful)
        return not (_moves(self.values - canary, effect) or _sees_a_part(self.values, canary))


def record_before(values: Array, speeds: MachineSpeeds, borders: Sequence[int]) -> MachineRecord:
    """Return the record of these results; `borders` are the first results of levels that real changes began."""
    parts = np.split(values, [one for one in sorted(borders) if 0 < one < values.size])
    rest = np.concatenate([part - middle(part) for part in parts])
    since = max(0, values.size - LONGEST_RECORD)
    return MachineRecord(rest[since:], speeds.between(since, values.size))


def _moves(values: Array, effect: float) -> bool:
    return _wanders(values) or _was_visited(values, abs(effect))


def _sees_a_part(values: Array, canary: Array) -> bool:
    """Does what is left without the canary's share still move with it, so that the machine moves further than it?"""
    first, second = scores(values - canary), scores(canary)
    if first is None or second is None:
        return False
    both = np.corrcoef(first, second)[0, 1]
    return bool(both * math.sqrt(values.size) > _ALIKE)


def _wanders(values: Array) -> bool:
    marks = scores(values)
    if marks is None:
        return False
    centred, times = marks - np.mean(marks), np.arange(marks.size) - (marks.size - 1) / 2
    root = math.sqrt(marks.size)
    trend = float(centred @ times) / math.sqrt(float(centred @ centred) * float(times @ times))
    # Of independent results the likeness of neighbours comes out too low by one in their number.
    return (lag1(marks) + 1 / marks.size) * root > _ALIKE or abs(trend) * root > _TREND


def _was_visited(values: Array, effect: float) -> bool:
    """Did the machine go as far as half of the change and stay there for two results, up or down?"""
    away, far = values - middle(values), _PART * effect
    if far <= _CLEARLY * robust_sd(values):
        return False
    return any(bool(np.any(side[1:] & side[:-1])) for side in (away > far, away < -far))
