"""Hodges-Lehmann shift between two sets of numbers or pairs, with a distribution-free interval.

The value is that of Hodges and Lehmann: the median of all differences between a number of one set and one of the other
(of pairs: of all means of two differences). The ends of its interval are two of these differences, chosen by the exact
distribution of the rank test that belongs to it, so the interval is right for five runs as for fifty; being discrete,
it carries its own true confidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

import numpy as np

from prony.stats.quantiles import Array, Ranks, quantile

# Beyond so many numbers the normal approximation is exact to a rank.
_EXACT_UP_TO = 100


@dataclass(frozen=True)
class Shift:
    """`low` and `high` are None where no interval exists; `confidence` is how often such an interval covers."""

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float | None = None


def shift(before: Array, after: Array, confidence: float = 0.95) -> Shift:
    """Return how far `after` lies above `before`; both must be finite and not empty."""
    differences = np.sort(np.subtract.outer(after, before), axis=None)
    return _between(differences, rank_sum_ranks(before.size, after.size, confidence))


def ratio(before: Array, after: Array, confidence: float = 0.95) -> Shift:
    """Return how many times as large `after` is; all numbers must be positive and finite."""
    return _exponential(shift(np.log(before), np.log(after), confidence))


def paired_shift(differences: Array, confidence: float = 0.95) -> Shift:
    """Return where the differences of pairs lie, by the means of every two of them."""
    rows, columns = np.triu_indices(differences.size)
    means = np.sort((differences[rows] + differences[columns]) / 2)
    return _between(means, signed_rank_ranks(differences.size, confidence))


def paired_ratio(before: Array, after: Array, confidence: float = 0.95) -> Shift:
    """Return how many times as large the second of each pair is; all numbers must be positive and finite."""
    return _exponential(paired_shift(np.log(after) - np.log(before), confidence))


def cliffs_delta(before: Array, after: Array) -> float:
    """Return how much more often a number of `after` is above one of `before` than below: 1 always, -1 never."""
    return float(np.mean(np.sign(np.subtract.outer(after, before))))


def _between(ordered: Array, ranks: Ranks | None) -> Shift:
    value = quantile(ordered, 0.5)
    if ranks is None:
        return Shift(value)
    return Shift(value, float(ordered[ranks.low - 1]), float(ordered[ranks.high - 1]), ranks.confidence)


def _exponential(found: Shift) -> Shift:
    low, high = (None if end is None else math.exp(end) for end in (found.low, found.high))
    return Shift(math.exp(found.value), low, high, found.confidence)


@lru_cache(maxsize=256)
def rank_sum_ranks(first: int, second: int, confidence: float = 0.95) -> Ranks | None:
    """Return between which of the sorted differences of two sets the shift lies; None of one number against one."""
    pairs = first * second
    if first + second > _EXACT_UP_TO:
        deviation = math.sqrt(pairs * (first + second + 1) / 12)
        return _normal_ranks(pairs, pairs / 2, deviation, confidence)
    return _exact_ranks(_rank_sums(min(first, second), max(first, second)), confidence)


@lru_cache(maxsize=256)
def signed_rank_ranks(pairs: int, confidence: float = 0.95) -> Ranks | None:
    """Return between which of the sorted means of two differences their centre lies; None of a single pair."""
    means = pairs * (pairs + 1) // 2
    if pairs > _EXACT_UP_TO:
        return _normal_ranks(means, means / 2, math.sqrt(means * (2 * pairs + 1) / 12), confidence)
    return _exact_ranks(_signed_ranks(pairs), confidence)


def _rank_sums(first: int, second: int) -> list[int]:
    """Return in how many ways of mixing two sets each count of pairs in order comes about, from none to all."""
    ways = [1] + [0] * (first * second)
    for size in range(1, first + 1):
        above = second + size
        for count in range(len(ways) - 1, above - 1, -1):
            ways[count] -= ways[count - above]
        for count in range(size, len(ways)):
            ways[count] += ways[count - size]
    return ways


def _signed_ranks(pairs: int) -> list[int]:
    """Return in how many ways of choosing signs each sum of the positive ranks comes about."""
    ways = [1] + [0] * (pairs * (pairs + 1) // 2)
    for rank in range(1, pairs + 1):
        for total in range(len(ways) - 1, rank - 1, -1):
            ways[total] += ways[total - rank]
    return ways


def _exact_ranks(ways: list[int], confidence: float) -> Ranks | None:
    """Return the tightest interval that is confident enough, or else the widest there is with what it is worth."""
    differences, total = len(ways) - 1, sum(ways)
    tail = (1 - confidence) / 2 * total
    # Ranks low to high miss the truth as often as fewer than `low` of the differences lie on one side.
    below = list(accumulate(ways))
    low = max(1, sum(count <= tail for count in below))
    high = differences + 1 - low
    return Ranks(low, high, 1 - 2 * below[low - 1] / total) if low < high else None


def _normal_ranks(differences: int, mean: float, deviation: float, confidence: float) -> Ranks:
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    low = max(1, math.floor(mean + 0.5 - z * deviation))
    reached = 2 * NormalDist().cdf((mean + 0.5 - low) / deviation) - 1
    return Ranks(low, differences + 1 - low, reached)
