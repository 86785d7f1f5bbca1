"""Intervals of a mean, of a rate and of the difference of two rates."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from prony.stats.beta import student_quantile
from prony.stats.quantiles import Array

Interval = tuple[float, float]


def mean_interval(values: Array, confidence: float = 0.95) -> Interval | None:
    """Return Student's t interval of the mean; None of fewer than two values or of one that is not finite."""
    if values.size < 2 or not np.all(np.isfinite(values)):
        return None
    mean = float(np.mean(values))
    reach = (
        student_quantile(values.size - 1, (1 + confidence) / 2) * float(np.std(values, ddof=1)) / math.sqrt(values.size)
    )
    return mean - reach, mean + reach


_BATCHES = 20


def batch_mean_interval(values: Array, confidence: float = 0.95) -> Interval | None:
    """Return Student's t interval of the mean of samples that may be skewed and follow each other.

    By the means of 20 equal stretches in the order of time, which are neither; None of fewer than 1000 samples.
    """
    if values.size < 50 * _BATCHES:
        return None
    length = values.size // _BATCHES
    found = mean_interval(values[: length * _BATCHES].reshape(_BATCHES, length).mean(axis=1), confidence)
    mean = float(np.mean(values))
    # The rest at the end joins no stretch and must not leave the mean itself outside.
    return None if found is None else (min(found[0], mean), max(found[1], mean))


def rate_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval | None:
    """Return Wilson's interval of a rate; None of no trials."""
    if trials < 1:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, spare = successes / trials, z * z / trials
    centre = (rate + spare / 2) / (1 + spare)
    reach = math.sqrt(rate * (1 - rate) * spare + spare * spare / 4) / (1 + spare)
    # At the ends the exact limits are 0 and 1; rounding must not leave the rate itself outside.
    return min(rate, max(0.0, centre - reach)), max(rate, min(1.0, centre + reach))


def rate_difference_interval(
    before: tuple[int, int], after: tuple[int, int], confidence: float = 0.95
) -> Interval | None:
    """Return Newcombe's interval of the second rate less the first, each as (successes, trials); None of no trials."""
    first, second = (rate_interval(*counts, confidence) for counts in (before, after))
    if first is None or second is None:
        return None
    rate, other = before[0] / before[1], after[0] / after[1]
    down = math.hypot(other - second[0], first[1] - rate)
    up = math.hypot(second[1] - other, rate - first[0])
    return other - rate - down, other - rate + up
