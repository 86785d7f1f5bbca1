"""Estimate the noise of runs, and how many runs would show a change. See `stats.spread` for the reverse."""

from __future__ import annotations

import math

import numpy as np

from prony.stats.quantiles import Array
from prony.stats.spread import MADN

# Normal quantiles of a two-sided test at 1 % and of a power of 80 %, together.
_REACH = 3.42
FEWEST_RUNS = 5  # of four against four no rank or permutation test comes below 2.9 %


def runs_needed(robust_cv: float, change: float) -> int:
    """Return how many runs on each side show a relative change with power 80 % at level 1 %."""
    return max(FEWEST_RUNS, math.ceil(2 * (_REACH * robust_cv / change) ** 2))


def noise_of(*sets: Array) -> float | None:
    """Return the relative noise between runs of sets that may lie apart; None of fewer than three positive runs each.

    Robust, by the median absolute deviation; the standard deviation where half of the runs are equal.
    """
    if any(values.size < 3 or np.any(~np.isfinite(values) | (values <= 0)) for values in sets):
        return None
    centred = [np.log(values) - np.median(np.log(values)) for values in sets]
    weights = [values.size for values in sets]
    robust = [(MADN * float(np.median(np.abs(values)))) ** 2 for values in centred]
    plain = [float(np.var(values, ddof=1)) for values in centred]
    return math.sqrt(np.average([r or p for r, p in zip(robust, plain, strict=True)], weights=weights))
