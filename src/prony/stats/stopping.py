"""Decide whether the runs pin down their median tightly enough to stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.stats.run_intervals import median_interval

_CONFIDENCE = 0.95


def achieved_precision(run_values: Sequence[float]) -> float | None:
    """Return the relative half-width of the 95 % interval of the median that will be printed of these runs.

    The values are in the order of the runs. None where no such interval exists: fewer than ten runs, more where they
    follow each other, a median of zero, a value that is not finite.
    """
    values = np.asarray(run_values, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        return None
    ranks = median_interval(values, is_stopped=True)
    median = float(np.median(values)) if values.size else 0.0
    if ranks is None or ranks.confidence < _CONFIDENCE or median == 0:
        return None
    ordered = np.sort(values)
    return float(ordered[ranks.high - 1] - ordered[ranks.low - 1]) / 2 / abs(median)


def tight_enough(run_values: Sequence[float], ci: float) -> bool:
    """Say whether the achieved half-width is at most `ci`; never on significance, never below ten runs."""
    width = achieved_precision(run_values)
    return width is not None and width <= ci
