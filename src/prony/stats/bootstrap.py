"""Bootstrap intervals of means over items, as over the documents of a task, and of two systems on the same items.

Items are drawn with a fixed seed, so that the same numbers always give the same interval. Both systems are drawn
together: an item that is hard for one is mostly hard for the other, and only how they differ on it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from prony.stats.quantiles import Array

RESAMPLES = 10_000
SEED = 20_100
_FEWEST = 3
_MOST_AT_ONCE = 4_000_000


class BootstrapInterval(NamedTuple):
    """`low` and `high` are None of fewer than three items, and where a resample has no value."""

    value: float
    low: float | None
    high: float | None


def bootstrap_mean(items: Array, confidence: float = 0.95, *, resamples: int = RESAMPLES) -> BootstrapInterval:
    """Return the mean of one number an item, with a bias-corrected and accelerated interval."""
    return _interval([items], lambda means: means[0], confidence, resamples)


def bootstrap_difference(before: Array, after: Array, confidence: float = 0.95) -> BootstrapInterval:
    """Return how much the mean of the same items grew; each item is drawn with both of its numbers."""
    return _interval([after - before], lambda means: means[0], confidence, RESAMPLES)


def bootstrap_ratio(before: Array, after: Array, confidence: float = 0.95) -> BootstrapInterval:
    """Return the mean after by the mean before; each item is drawn with both of its numbers."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _interval([before, after], lambda means: means[1] / means[0], confidence, RESAMPLES)


def _interval(
    columns: list[Array], statistic: Callable[[list[Array]], Array], confidence: float, resamples: int
) -> BootstrapInterval:
    count = columns[0].size
    value = float(statistic([np.array([np.mean(one)]) for one in columns])[0])
    if count < _FEWEST:
        return BootstrapInterval(value, None, None)
    drawn = np.sort(np.concatenate([statistic(means) for means in _resampled_means(columns, resamples)]))
    if not np.isfinite(drawn).all():
        return BootstrapInterval(value, None, None)
    if drawn[0] == drawn[-1]:
        return BootstrapInterval(value, float(drawn[0]), float(drawn[-1]))
    left_out = statistic([(np.sum(one) - one) / (count - 1) for one in columns])
    low, high = (_place(drawn, value, left_out, share) for share in ((1 - confidence) / 2, (1 + confidence) / 2))
    return BootstrapInterval(value, low, high)


def _resampled_means(columns: list[Array], resamples: int) -> Iterator[list[Array]]:
    """Yield the means of so many draws with replacement, no more of them at a time than memory should hold."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    count = columns[0].size
    size = max(1, min(resamples, _MOST_AT_ONCE // count))
    for begin in range(0, resamples, size):
        picked = rng.integers(0, count, size=(min(size, resamples - begin), count))
        yield [one[picked].mean(axis=1) for one in columns]


def _place(drawn: Array, value: float, left_out: Array, share: float) -> float:
    """Return the quantile of the draws at a share that is corrected for bias and for skewness (BCa)."""
    normal = NormalDist()
    # Draws that equal the value count half, else few distinct values would look like bias.
    below = (np.searchsorted(drawn, value, "left") + np.searchsorted(drawn, value, "right")) / 2 / drawn.size
    bias = normal.inv_cdf(min(max(float(below), 1 / drawn.size), 1 - 1 / drawn.size))
    away = float(np.mean(left_out)) - left_out
    squares = float(np.sum(away**2))
    acceleration = float(np.sum(away**3)) / (6 * squares**1.5) if squares > 0 else 0.0
    moved = bias + normal.inv_cdf(share)
    return float(np.quantile(drawn, normal.cdf(bias + moved / (1 - acceleration * moved))))
