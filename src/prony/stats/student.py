"""Student's test of a ratio, on logarithms whose outliers are cut.

A permutation test of five runs against five never comes below 0.8 %, however far apart they lie, and so says nothing
more once many are compared at once. Student's has no such end.
"""

from __future__ import annotations

import math

import numpy as np

from prony.stats.beta import student_cdf
from prony.stats.quantiles import Array
from prony.stats.spread import noise_of

# Beyond so many times the usual spread a run is an outlier; of few runs, less would cut normal noise.
_CUT = 5.0


def student_ratio_p(before: Array, after: Array) -> float:
    """Return the two-sided probability of Welch's test of equal logarithms; each set needs three positive numbers."""
    noise = noise_of(before, after) or 0.0
    return student_p(*(_cut(np.log(values), noise) for values in (before, after)))


def student_p(before: Array, after: Array) -> float:
    """Return the two-sided probability of Welch's test of equal means; each set needs two numbers."""
    parts = [float(np.var(values, ddof=1)) / values.size for values in (before, after)]
    freedom = _welch_freedom(parts, (before.size, after.size))
    return _two_sided(float(np.mean(after) - np.mean(before)), math.sqrt(sum(parts)), freedom)


def paired_student_ratio_p(before: Array, after: Array) -> float:
    """Return the same of pairs, by the logarithms of their quotients."""
    noise = noise_of(after / before) or 0.0
    logs = _cut(np.log(after / before), noise)
    return _two_sided(float(np.mean(logs)), float(np.std(logs, ddof=1)) / math.sqrt(logs.size), logs.size - 1)


def _cut(logs: Array, noise: float) -> Array:
    middle = float(np.median(logs))
    cut: Array = np.clip(logs, middle - _CUT * noise, middle + _CUT * noise)
    return cut


def _welch_freedom(parts: list[float], sizes: tuple[int, int]) -> float:
    below = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    return sum(parts) ** 2 / below if below > 0 else float(sum(sizes) - 2)


def _two_sided(difference: float, error: float, freedom: float) -> float:
    if error <= 0:
        return 0.0 if difference else 1.0
    return 2 * student_cdf(freedom, -abs(difference) / error)
