"""Huber scores: distances from the median in robust standard deviations, capped at three.

One spike of any size weighs three and no more. Scores do not know the unit, and those of the negative numbers are the
same with the other sign; they are rounded, so that a last digit of the arithmetic decides nothing.
"""

from __future__ import annotations

import math

import numpy as np

from prony.stats.quantiles import Array, quantile
from prony.stats.spread import MADN

REACH = 3.0
_DIGITS = 9


def middle(values: Array) -> float:
    """Return the median; of the few runs of a series many times faster than numpy's, which asks more questions."""
    return quantile(np.sort(values), 0.5)


def robust_sd(values: Array, centre: float | None = None) -> float:
    """Return a standard deviation that half of the values decide; the mean deviation where more than half are equal."""
    sizes = np.abs(values - (middle(values) if centre is None else centre))
    return MADN * middle(sizes) or math.sqrt(math.pi / 2) * float(np.mean(sizes))


def scores(values: Array, reach: float = REACH) -> Array | None:
    """Return Huber's scores of finite numbers; None where all are equal, or as good as equal."""
    centre = middle(values)
    spread = robust_sd(values, centre)
    # Logarithms of equal numbers in another unit differ in their last digit: that is no spread.
    if spread <= 1e-12 * max(1.0, abs(centre)):
        return None
    found: Array = ((values - centre) / spread).clip(-reach, reach).round(_DIGITS)
    return found
