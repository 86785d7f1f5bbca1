"""Measure how far samples and runs follow their neighbours, and widen a confidence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from statistics import NormalDist

import numpy as np

from prony.stats.quantiles import Array

_DEPENDENT_ABOVE = 0.2
_LONGEST_LAG = 100
_MOST_SAMPLES = 100_000


def lag1(values: Array) -> float:
    """Return the lag-1 autocorrelation; 0 of a series that is too short or does not vary."""
    centred = values - np.mean(values) if values.size else values
    power = float(np.sum(centred * centred))
    return float(np.sum(centred[1:] * centred[:-1])) / power if values.size > 2 and power > 0 else 0.0


def worth_of_runs(values: Array, *, caution: float = 0.0) -> float:
    """Return how many independent runs one of these is worth, in the order in which they were made; at most 1.

    The autocorrelation of a few values comes out too low by about (1 + 3 rho) / n, which is added. With `caution` it is
    taken higher by so many of its standard errors.
    """
    found = lag1(values)
    more = (1 + 3 * found) / values.size + caution / math.sqrt(values.size)
    rho = min(found + more, 0.95) if found else 0.0
    return (1 - rho) / (1 + rho) if rho > _DEPENDENT_ABOVE else 1.0


class Exceedances:
    """Where the samples of one run, in the order of time, exceed a level."""

    def __init__(self, where: Array) -> None:
        self._where = where[:_MOST_SAMPLES]
        self._together: list[float] = []

    @property
    def count(self) -> int:
        return int(self._where.size)

    @cached_property
    def share(self) -> float:
        return float(np.count_nonzero(self._where)) / self.count

    @cached_property
    def power(self) -> float:
        return self.count * self.share * (1 - self.share)

    def together(self, lag: int) -> float:
        """Return how many more pairs so far apart both exceed the level than independent samples would have."""
        while len(self._together) < lag:
            self._together.append(self._count_pairs(len(self._together) + 1))
        return self._together[lag - 1]

    def _count_pairs(self, lag: int) -> float:
        pairs = int(np.count_nonzero(self._where[lag:] & self._where[:-lag]))
        # A run is measured against its own level, so its autocorrelation comes out too low by one in its samples.
        return pairs - (self.count - lag) * self.share**2 + self.share * (1 - self.share)


def cluster_size(exceeds: Sequence[Exceedances]) -> float:
    """Return how many samples tell as much as one independent sample would, by where each run exceeds its level.

    One plus twice the autocorrelations of all runs together, up to the first that is lost in the noise. At least 1.
    """
    runs = [one for one in exceeds if one.count > 2]
    power = sum(one.power for one in runs)
    if power <= 0:
        return 1.0
    noise = 2 / math.sqrt(sum(one.count for one in runs))
    found = 1.0
    for lag in range(1, min(_LONGEST_LAG, min(one.count for one in runs) // 2) + 1):
        together = sum(one.together(lag) for one in runs) / power
        if together < noise:
            break
        found += 2 * together
    return found


def correlation_of_neighbours(exceeds: Sequence[Exceedances]) -> float:
    """Return how far a sample that exceeds its run's level is followed by another one, over all runs together."""
    runs = [one for one in exceeds if one.count > 2]
    power = sum(one.power for one in runs)
    return sum(one.together(1) for one in runs) / power if power > 0 else 0.0


def widen_confidence(confidence: float, worth: float) -> float:
    """Return what to ask of independent values to get this confidence from values that are worth less."""
    normal = NormalDist()
    return min(2 * normal.cdf(normal.inv_cdf((1 + confidence) / 2) / math.sqrt(worth)) - 1, 1 - 1e-9)
