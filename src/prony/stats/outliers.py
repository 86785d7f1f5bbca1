"""Compute fences and label outliers. A label deletes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prony.stats.quantiles import Array, quantile

# For a normal distribution: one standard deviation is this many mean absolute deviations from the centre, and the
# quartile rule's far fence lies this many standard deviations out. They stand in where half of the values are equal.
_SIGMA_PER_MEAN_DEVIATION = math.sqrt(math.pi / 2)
_SEVERE_SIGMAS = 0.6745 + 3 * 1.349
_SUSPICIOUS_SIGMAS = 3.5
_FEWEST = 5


@dataclass(frozen=True)
class Fences:
    """A value outside `suspicious` or `severe` (low, high) carries that label, the worse one if both."""

    suspicious: tuple[float, float] = (-math.inf, math.inf)
    severe: tuple[float, float] = (-math.inf, math.inf)

    @property
    def nearest(self) -> tuple[float, float]:
        """Everything between these two is unlabelled."""
        return max(self.suspicious[0], self.severe[0]), min(self.suspicious[1], self.severe[1])


def fences(ordered: Array) -> Fences:
    """Return the fences of values in ascending order, judged on the logarithm where all are positive.

    Severe: more than three interquartile ranges beyond a quartile. Suspicious: a robust z-score above 3.5. Where the
    interquartile range or the median absolute deviation is zero, the mean absolute deviation is the scale; where that
    is zero too, or fewer than five values are given, nothing is an outlier. Values that are not finite have no say.
    """
    finite = ordered[np.isfinite(ordered)] if ordered.dtype.kind == "f" else ordered
    if finite.size < _FEWEST or finite[0] == finite[-1]:
        return Fences()
    forth, back = (math.log, _exp) if finite[0] > 0 else (float, float)
    ends = np.array([forth(float(value)) for value in _neighbours(finite)])
    q1, median, q3 = (quantile(ends[pair : pair + 2], share) for pair, share in _places(finite.size))
    sigma = _deviation(finite, forth, median) / 0.6745 or _mean_deviation(finite, forth, median)
    severe = (q1 - 3 * (q3 - q1), q3 + 3 * (q3 - q1))
    if q1 == q3:
        reach = _SEVERE_SIGMAS * _mean_deviation(finite, forth, median)
        severe = (median - reach, median + reach)
    suspicious = (median - _SUSPICIOUS_SIGMAS * sigma, median + _SUSPICIOUS_SIGMAS * sigma)
    return Fences((back(suspicious[0]), back(suspicious[1])), (back(severe[0]), back(severe[1])))


def label_outliers(values: Array) -> Array:
    """Return 0, 1 (suspicious) or 2 (severe) for each value; what is NaN gets 0, what is infinite gets 2."""
    limits = fences(np.sort(values))
    marks = np.zeros(values.shape, dtype=np.int8)
    marks[(values < limits.suspicious[0]) | (values > limits.suspicious[1])] = 1
    marks[(values < limits.severe[0]) | (values > limits.severe[1])] = 2
    marks[np.isinf(values)] = 2
    return marks


def _exp(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf


def _places(count: int) -> list[tuple[int, float]]:
    """Return, for each quartile, where its pair of neighbours begins in `_neighbours` and the share between them."""
    positions = [(count - 1) * share for share in (0.25, 0.5, 0.75)]
    return [(2 * i, position - math.floor(position)) for i, position in enumerate(positions)]


def _neighbours(ordered: Array) -> list[float]:
    below = [math.floor((ordered.size - 1) * share) for share in (0.25, 0.5, 0.75)]
    return [ordered[min(rank + step, ordered.size - 1)] for rank in below for step in (0, 1)]


def _mean_deviation(ordered: Array, forth: Callable[[float], float], median: float) -> float:
    scaled = np.log(ordered) if forth is math.log else ordered
    return float(np.mean(np.abs(scaled - median))) * _SIGMA_PER_MEAN_DEVIATION


def _deviation(ordered: Array, forth: Callable[[float], float], centre: float) -> float:
    """Return the median absolute deviation without touching more than a few values of a long array."""
    half = ordered.size // 2
    upper = _kth_deviation(ordered, forth, centre, half + 1)
    return upper if ordered.size % 2 else (upper + _kth_deviation(ordered, forth, centre, half)) / 2


def _kth_deviation(ordered: Array, forth: Callable[[float], float], centre: float, k: int) -> float:
    """The k values nearest to the centre are neighbours in the order: look for where that window begins."""
    low, high = 0, ordered.size - k
    while low < high:
        middle = (low + high) // 2
        if forth(float(ordered[middle + k])) - centre < centre - forth(float(ordered[middle])):
            low = middle + 1
        else:
            high = middle
    return max(forth(float(ordered[low + k - 1])) - centre, centre - forth(float(ordered[low])))
