"""Quantiles, and the order-statistic ranks of their distribution-free intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Ranks:
    """The interval from the `low`-th to the `high`-th smallest value (from 1), and how often it covers the quantile."""

    low: int
    high: int
    confidence: float


def quantile(ordered: Array, q: float) -> float:
    """Return the type-7 quantile (linear between neighbours) of values in ascending order; NaN of none."""
    if ordered.size == 0:
        return math.nan
    position = (ordered.size - 1) * q
    below = math.floor(position)
    low = float(ordered[below])
    # Equal neighbours are returned untouched, so that a constant stays the same constant and inf stays inf.
    high = float(ordered[min(below + 1, ordered.size - 1)])
    return low if low == high else low + (position - below) * (high - low)


def median_unbiased(ordered: Array, q: float, shift: float = 0.0) -> float:
    """Return the type-8 quantile of values in ascending order, NaN of none: as often too low as too high.

    Type 7 lies too low in the tail: its p99 of 368 values is below the truth in two of three runs. `shift` moves the
    position by so many ranks.
    """
    if ordered.size == 0:
        return math.nan
    position = min(max((ordered.size + 1 / 3) * q + 1 / 3 + shift, 1.0), float(ordered.size))
    below = math.floor(position)
    low, high = float(ordered[below - 1]), float(ordered[min(below, ordered.size - 1)])
    # As above; and a position that is a whole number takes nothing of its neighbour, which may be infinite.
    return low if low == high or position == below else low + (position - below) * (high - low)


def nearest_rank(ordered: Array, q: float) -> float:
    """Return the smallest observed value that at least a share `q` does not exceed; NaN of none."""
    if ordered.size == 0:
        return math.nan
    # The product of a decimal share and a count may land a hair above the whole number that it means.
    rank = math.ceil(round(ordered.size * q, 9))
    return float(ordered[min(max(rank, 1), ordered.size) - 1])


def least_count(q: float, confidence: float = 0.95) -> int:
    """Return the fewest values for which the quantile has a two-sided interval: both extremes must be improbable."""
    tail = (1 - confidence) / 2
    return math.ceil(math.log(tail) / math.log(max(q, 1 - q)))


# A fleet brings many results of as many samples.
@lru_cache(maxsize=1024)
def interval_ranks(count: int, q: float, confidence: float = 0.95) -> Ranks | None:
    """Return the tightest equal-tailed interval of a quantile, or None if no order statistics are confident enough."""
    start, cumulative = _binomial(count, q)
    tail = (1 - confidence) / 2
    low = start + int(np.searchsorted(cumulative, tail, side="right"))
    # Of a confidence so near to 1 that the arithmetic cannot tell them apart, the last value that matters.
    high = start + min(int(np.searchsorted(cumulative, 1 - tail, side="left")), cumulative.size - 1) + 1
    if low < 1 or high > count:
        return None
    return Ranks(low, high, float(cumulative[high - 1 - start] - _at(cumulative, low - 1 - start)))


def median_ranks(count: int, confidence: float = 0.95) -> Ranks | None:
    """Return the ranks for the median; of 2 to 5 values the widest there is, with its true and lower confidence."""
    ranks = interval_ranks(count, 0.5, confidence)
    if ranks is not None or count < 2:
        return ranks
    return Ranks(1, count, 1 - 0.5 ** (count - 1))


@lru_cache(maxsize=1024)
def lower_rank(count: int, q: float, confidence: float = 0.975) -> int | None:
    """Return the highest rank whose value is a one-sided lower bound of the quantile."""
    start, cumulative = _binomial(count, q)
    low = start + int(np.searchsorted(cumulative, 1 - confidence, side="right"))
    return low if 1 <= low <= count else None


def _at(cumulative: Array, position: int) -> float:
    return float(cumulative[position]) if position >= 0 else 0.0


def _binomial(count: int, q: float) -> tuple[int, Array]:
    """Return where the binomial distribution begins to matter, and its cumulative probabilities from there on.

    Twelve standard deviations around the mean are kept; the rest weighs less than the arithmetic can hold.
    """
    reach = 12 * (math.sqrt(count * q * (1 - q)) + 1)
    start = max(0, math.floor(count * q - reach))
    k = np.arange(start + 1, min(count, math.ceil(count * q + reach)) + 1)
    first = math.lgamma(count + 1) - math.lgamma(start + 1) - math.lgamma(count - start + 1)
    first += start * math.log(q) + (count - start) * math.log1p(-q)
    steps = np.log((count - k + 1) / k) + math.log(q) - math.log1p(-q)
    return start, np.cumsum(np.exp(np.concatenate(([first], first + np.cumsum(steps)))))
