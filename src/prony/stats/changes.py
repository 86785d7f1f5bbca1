"""Find the strongest level change in a series, and test it by permutation.

The test is a permutation test of the strongest split: the order of the runs is shuffled, and each shuffle may choose
its own best split, so nothing is assumed of the noise and nothing is gained by choosing. Where runs follow their
neighbours, whole blocks are shuffled. The shuffles are the same every time, so the same series has the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from prony.stats.quantiles import Array

BEFORE, AFTER = 8, 3
# A split that is no stronger than this is never worth a shuffle: no level that anybody would choose is so low.
WEAK = 2.8
# So many shuffles at a time, until so many were as strong in all: the probability cannot become small any more.
_STAGES = ((49, 3), (150, 6), (1800, 1))
_TOLERANCE = 1e-9
_SEED = 20_260_301
_MOST_CORRELATION = 0.95
# Of a straight line the best step explains three quarters, and a line three quarters of a step in the middle.
_AS_GOOD = 0.85
# What removing the best split takes away from the correlation of neighbours, in parts of the count.
_LOST = 4.0


@dataclass(frozen=True)
class Split:
    """`position` is the first run of the later part; `strength` is signed: above zero the later part is higher."""

    position: int
    strength: float


def strongest_split(scores: Array, *, before: int = BEFORE, after: int = AFTER) -> Split | None:
    """Return where the two parts differ most; None where they are too short for one, or nothing differs."""
    count = scores.size
    if count < before + after:
        return None
    centred, deviation = _centre(scores)
    if deviation == 0:
        return None
    sums = centred.cumsum()[before - 1 : count - after]
    strengths = (sums * _weights(count, before, after) / -deviation).round(9)
    best = int(np.abs(strengths).argmax())
    return Split(before + best, float(strengths[best]))


def split_p(scores: Array, found: Split, *, block: int = 1, before: int = BEFORE, after: int = AFTER) -> float:
    """Return how often shuffled runs show as strong a split; it is exact where it is small, and rough where not."""
    count = scores.size
    centred, deviation = _centre(scores)
    bound = abs(found.strength) * deviation * (1 - _TOLERANCE)
    weights = _weights(count, before, after)
    done = as_strong = 0
    for shuffles, enough in _STAGES:
        sums = np.cumsum(centred[_orders(count, block, shuffles)], axis=1)[:, before - 1 : count - after]
        as_strong += int(np.count_nonzero(np.max(np.abs(sums * weights), axis=1) >= bound))
        done += shuffles
        if as_strong >= enough:
            break
    return (1 + as_strong) / (1 + done)


def correlation(scores: Array, position: int, *, is_line: bool = False) -> float:
    """Return how much each run follows the one before, once the split, or a straight line, is taken away."""
    if is_line:
        residuals, times = _centre(scores)[0], _times(scores.size)
        residuals = residuals - times * float(residuals @ times) / float(times @ times)
    else:
        residuals = scores.copy()
        residuals[:position] -= np.mean(residuals[:position])
        residuals[position:] -= np.mean(residuals[position:])
    total = float(np.dot(residuals, residuals))
    if total == 0:
        return 0.0
    found = float(np.dot(residuals[1:], residuals[:-1])) / total + _LOST / scores.size
    return max(-_MOST_CORRELATION, min(_MOST_CORRELATION, found))


def block_length(correlated: float, count: int) -> int:
    """Return how many neighbours stay together in a shuffle, so that it is as correlated as the series."""
    if correlated <= 0:
        return 1
    wanted = (2 * correlated / (1 - correlated**2)) ** (2 / 3) * count ** (1 / 3)
    return max(1, min(int(round(wanted, 0)), count // 4))


def is_drift(scores: Array, position: int) -> bool:
    """Say whether a straight line explains the scores about as well as two levels do, chosen as these were."""
    count = scores.size
    centred, _ = _centre(scores)
    times = _times(count)
    line = float(np.dot(centred, times)) ** 2 / float(np.dot(times, times))
    step = float(np.sum(centred[position:])) ** 2 * count / (position * (count - position))
    return line >= _AS_GOOD * step


def _times(count: int) -> Array:
    return np.arange(count) - (count - 1) / 2


def _centre(scores: Array) -> tuple[Array, float]:
    """Return the scores about their mean, and their standard deviation."""
    centred = scores - float(scores.sum()) / scores.size
    return centred, math.sqrt(float(centred @ centred) / scores.size)


@lru_cache(maxsize=1024)
def _weights(count: int, before: int, after: int) -> Array:
    """Return what makes the sums of the first k scores comparable, for every k that may be a split."""
    first = np.arange(before, count - after + 1)
    weights: Array = np.sqrt((count - 1) / (first * (count - first)))
    return weights


@lru_cache(maxsize=512)
def _orders(count: int, block: int, shuffles: int) -> Array:
    """Return shuffles of so many runs, each block of neighbours kept together, from a place that is shuffled too."""
    rng = np.random.default_rng([_SEED, count, block, shuffles])
    if block == 1:
        return np.argsort(rng.random((shuffles, count)), axis=1).astype(np.uint16)
    blocks = -(-count // block)
    # Places beyond the end belong to the last block, which is a shorter one.
    places = np.argsort(rng.random((shuffles, blocks)), axis=1)[:, :, None] * block + np.arange(block)
    flat = places.reshape(shuffles, -1)
    kept = flat[flat < count].reshape(shuffles, count)
    return ((kept + rng.integers(count, size=(shuffles, 1))) % count).astype(np.uint16)
