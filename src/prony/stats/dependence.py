"""Measure how far samples and runs follow their neighbours, and widen a confidence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from prony.stats.quantiles import Array

_DEPENDENT_ABOVE = 0.2
# Of fewer runs nobody can tell whether they follow each other.
FEWEST_TO_TELL = 10
_LONGEST_LAG = 100
_MOST_SAMPLES = 100_000


def lag1(values: Array) -> float:
    """Return the lag-1 autocorrelation; 0 of a series that is too short or does not vary."""
    centred = values - np.mean(values) if values.size else values
    power = float(np.sum(centred * centred))
    return float(np.sum(centred[1:] * centred[:-1])) / power if values.size > 2 and power > 0 else 0.0


def worth_of_runs(values: Array) -> float:
    """Return how many independent runs one of these is worth, in the order in which they were made; at most 1.

    The autocorrelation of a few values comes out too low by about (1 + 3 rho) / n, which is added.
    """
    if values.size < FEWEST_TO_TELL:
        return 1.0
    found = lag1(values)
    rho = min(found + (1 + 3 * found) / values.size, 0.95) if found else 0.0
    return (1 - rho) / (1 + rho) if rho > _DEPENDENT_ABOVE else 1.0


def cluster_size(exceeds: Sequence[Array]) -> float:
    """Return how many samples tell as much as one independent sample would, by where each run exceeds its level.

    One plus twice the autocorrelations of all runs together, up to the first that is lost in the noise. At least 1.
    """
    runs = [one[:_MOST_SAMPLES] for one in exceeds if one.size > 2]
    shares = [float(np.count_nonzero(one)) / one.size for one in runs]
    power = sum(one.size * share * (1 - share) for one, share in zip(runs, shares, strict=True))
    if power <= 0:
        return 1.0
    noise = 2 / math.sqrt(sum(one.size for one in runs))
    found = 1.0
    for lag in range(1, min(_LONGEST_LAG, min(one.size for one in runs) // 2) + 1):
        # A run is measured against its own level, so its autocorrelation comes out too low by one in its samples.
        together = sum(
            int(np.count_nonzero(one[lag:] & one[:-lag])) - (one.size - lag) * share * share + share * (1 - share)
            for one, share in zip(runs, shares, strict=True)
        )
        if together / power < noise:
            break
        found += 2 * together / power
    return found


def widen_confidence(confidence: float, worth: float) -> float:
    """Return what to ask of independent values to get this confidence from values that are worth less."""
    normal = NormalDist()
    return min(2 * normal.cdf(normal.inv_cdf((1 + confidence) / 2) / math.sqrt(worth)) - 1, 1 - 1e-9)
