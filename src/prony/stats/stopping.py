"""Decide whether the runs pin down their median tightly enough to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from prony.stats.quantiles import Array, interval_ranks

_DEPENDENT_ABOVE = 0.2


def achieved_precision(run_values: Sequence[float]) -> float | None:
    """Return the relative half-width of the 95 % order-statistic interval of the median, in the order of the runs.

    None where no such interval exists: fewer than six runs, a median of zero, a value that is not finite. Runs that
    follow each other (lag-1 correlation above 0.2) count for less: rho widens by sqrt((1 + rho) / (1 - rho)), as if
    that much fewer runs had been made.
    """
    values = np.asarray(run_values, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        return None
    worth = _worth(values)
    if interval_ranks(math.floor(values.size * worth), 0.5) is None:
        return None
    ranks = interval_ranks(values.size, 0.5)
    ordered = np.sort(values)
    median = float(np.median(values))
    if ranks is None or median == 0:
        return None
    half_width = float(ordered[ranks.high - 1] - ordered[ranks.low - 1]) / 2 / abs(median)
    return half_width / math.sqrt(worth)


def tight_enough(run_values: Sequence[float], ci: float) -> bool:
    """Say whether the achieved half-width is at most `ci`; never on significance, never below six runs."""
    width = achieved_precision(run_values)
    return width is not None and width <= ci


def lag1(values: Array) -> float:
    """Return the lag-1 autocorrelation; 0 of a series that is too short or does not vary."""
    centred = values - np.mean(values) if values.size else values
    power = float(np.sum(centred * centred))
    return float(np.sum(centred[1:] * centred[:-1])) / power if values.size > 2 and power > 0 else 0.0


def _worth(values: Array) -> float:
    """Return how many independent runs one of these is worth."""
    rho = min(lag1(values), 0.99)
    return (1 - rho) / (1 + rho) if rho > _DEPENDENT_ABOVE else 1.0
