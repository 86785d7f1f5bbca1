"""Find the strongest level change in a series, test it by permutation, and split whole series into levels for plots.

The test is a permutation test of the strongest split: the order of the runs is shuffled, and each shuffle may choose
its own best split, so nothing is assumed of the noise and nothing is gained by choosing. Where runs follow their
neighbours, whole blocks are shuffled. The shuffles are the same every time, so the same series has the same answer.

Huber scores are distances from the median in robust standard deviations, capped at three. One spike of any size weighs
three and no more. Scores do not know the unit, and those of the negative numbers are the same with the other sign; they
are rounded, so that a last digit of the arithmetic decides nothing.

The levels for plots are found with all runs known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prony.stats.quantiles import Array
from prony.stats.spread import MADN
from prony.stats.steady import cuts

# A level may be as short as this: were 8 needed before, a change in the first runs would be put too late.
BEFORE, AFTER = 3, 3
# A split that is no stronger than this is never worth a shuffle: no level that anybody would choose is so low.
WEAK = 2.8
# So many shuffles at a time, until so many were as strong in all: the probability cannot become small any more.
_STAGES = ((49, 3), (150, 6), (1800, 1))
_TOLERANCE = 1e-9
_SEED = 20_260_301
_MOST_CORRELATION = 0.95
# Of a straight line the best step explains three quarters, and a line three quarters of a step in the middle.
_AS_GOOD = 0.85
_CENTRAL = 0.35
# What removing the best split takes away from the correlation of neighbours, in parts of the count.
_LOST = 4.0

# The same as the methods of an array, without the words in between: there are few runs in a series, and many series.
_sum, _highest, _lowest = np.add.reduce, np.maximum.reduce, np.minimum.reduce


@dataclass(frozen=True)
class Split:
    """`position` is the first run of the later part; `strength` is signed: above zero the later part is higher."""

    position: int
    strength: float


def strongest_split(scores: Array, *, before: int = BEFORE, after: int = AFTER, least: float = 0.0) -> Split | None:
    """Return where the two parts differ most; None where they are too short for one, or nothing is stronger than
    `least`."""
    count = scores.size
    if count < before + after:
        return None
    centred, deviation = _centre(scores)
    if deviation == 0:
        return None
    strengths = centred.cumsum()[before - 1 : count - after]
    strengths *= _weights(count, before, after)
    if round(max(float(_highest(strengths)), -float(_lowest(strengths))) / deviation, 9) <= least:
        return None  # as nearly always, so that nothing more is computed
    strengths /= -deviation
    strengths.round(9, out=strengths)
    best = int(np.abs(strengths).argmax())
    return Split(before + best, float(strengths[best]))


def split_p(scores: Array, found: Split, *, block: int = 1, before: int = BEFORE, after: int = AFTER) -> float:
    """Return how often shuffled runs show as strong a split; it is exact where it is small, and rough where not."""
    count = scores.size
    centred, deviation = _centre(scores)
    bound = abs(found.strength) * deviation * (1 - _TOLERANCE)
    weights = _weights(count, before, after)[:, None]
    done = as_strong = 0
    for shuffles, enough in _STAGES:
        # One column a shuffle: sums of whole rows are many times faster than those of columns.
        sums = centred[_orders(count, block, shuffles)]
        for row in range(1, count - after):  # as a cumulative sum of columns, in half of its time
            sums[row] += sums[row - 1]
        sums = sums[before - 1 : count - after]
        sums *= weights
        as_strong += int(np.count_nonzero(np.maximum(sums.max(axis=0), -sums.min(axis=0)) >= bound))
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
    # The best step of a straight line lies near its middle: elsewhere, the line must be the better one.
    is_central = _CENTRAL * count <= position <= (1 - _CENTRAL) * count
    return line >= (_AS_GOOD if is_central else 1.0) * step


def _times(count: int) -> Array:
    return np.arange(count) - (count - 1) / 2


def _centre(scores: Array) -> tuple[Array, float]:
    """Return the scores about their mean, and their standard deviation."""
    centred = scores - float(_sum(scores)) / scores.size
    return centred, math.sqrt(float(centred @ centred) / scores.size)


@lru_cache(maxsize=1024)
def _weights(count: int, before: int, after: int) -> Array:
    """Return what makes the sums of the first k scores comparable, for every k that may be a split."""
    first = np.arange(before, count - after + 1)
    weights: Array = np.sqrt((count - 1) / (first * (count - first)))
    return weights


@lru_cache(maxsize=512)
def _orders(count: int, block: int, shuffles: int) -> Array:
    """Return shuffles of so many runs, a column each, with every block of neighbours kept together, from a place that
    is shuffled too."""
    rng = np.random.default_rng([_SEED, count, block, shuffles])
    if block == 1:
        return np.ascontiguousarray(np.argsort(rng.random((shuffles, count)), axis=1).T.astype(np.uint16))
    blocks = -(-count // block)
    # Places beyond the end belong to the last block, which is a shorter one.
    places = np.argsort(rng.random((shuffles, blocks)), axis=1)[:, :, None] * block + np.arange(block)
    flat = places.reshape(shuffles, -1)
    kept = flat[flat < count].reshape(shuffles, count)
    shifted = (kept + rng.integers(count, size=(shuffles, 1))) % count
    return np.ascontiguousarray(shifted.T.astype(np.uint16))


REACH = 3.0
_DIGITS = 9


def middle(values: Array) -> float:
    """Return the median; of the few runs of a series many times faster than numpy's, which asks more questions."""
    ordered = values.copy()
    ordered.sort()
    count = ordered.size
    if not count:
        return math.nan
    half = count >> 1
    # `item` makes no number of numpy's own on the way.
    found: float = ordered.item(half) if count & 1 else (ordered.item(half - 1) + ordered.item(half)) / 2
    return found


def robust_sd(values: Array, centre: float | None = None) -> float:
    """Return a standard deviation that half of the values decide; the mean deviation where more than half are equal."""
    sizes = values - (middle(values) if centre is None else centre)
    np.abs(sizes, out=sizes)
    return MADN * middle(sizes) or math.sqrt(math.pi / 2) * float(np.mean(sizes))


def scores(values: Array, reach: float = REACH) -> Array | None:
    """Return Huber's scores of finite numbers; None where all are equal, or as good as equal."""
    centre = middle(values)
    spread = robust_sd(values, centre)
    # Logarithms of equal numbers in another unit differ in their last digit: that is no spread.
    if spread <= 1e-12 * max(1.0, abs(centre)):
        return None
    found: Array = (values - centre) / spread
    np.minimum(found, reach, out=found)
    np.maximum(found, -reach, out=found)
    return found.round(_DIGITS, out=found)


# How much weaker than `WEAK` a split must be for all rounding to be beside the point.
_CLEARLY = 1e-6


def find_calm(values: Array, first: int, window: int) -> NDArray[np.bool_]:
    """Say for each number of runs from `first` on whether the last `window` of them surely have no split above `WEAK`.

    All are looked at together, which takes a fraction of the time that one after the other takes. Where it is not
    sure, or where runs are equal or not known, the answer is no.
    """
    ends = np.arange(first, values.size + 1)[:, None]
    places = np.maximum(0, ends - window) + np.arange(min(window, values.size))
    is_inside, counts = places < ends, np.minimum(ends, window)
    rows = np.where(is_inside, values[np.minimum(places, values.size - 1)], np.nan)
    away = rows - _middles(rows, counts)
    spread = MADN * _middles(np.abs(away), counts)
    is_varied = spread > 1e-9  # of logarithms: of less the exact way decides whether it is a spread at all
    marks = np.where(is_inside, np.clip(away / np.where(is_varied, spread, 1.0), -REACH, REACH), 0.0)
    centred = np.where(is_inside, marks - marks.sum(axis=1, keepdims=True) / counts, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1) / counts[:, 0])
    parts = np.arange(1, rows.shape[1] + 1)
    is_split = (parts >= BEFORE) & (parts <= counts - AFTER)
    weights = np.sqrt((counts - 1) / np.where(is_split, parts * (counts - parts), 1)) * is_split
    strongest = (np.abs(centred.cumsum(axis=1)) * weights).max(axis=1)
    found: NDArray[np.bool_] = is_varied[:, 0] & (strongest < (WEAK - _CLEARLY) * deviation)
    return found


def _middles(rows: Array, counts: NDArray[np.int64]) -> Array:
    """Return the median of the first so many numbers of each row, which has no number after them."""
    ordered = np.sort(rows, axis=1)
    lower, upper = (np.take_along_axis(ordered, place, axis=1) for place in ((counts - 1) // 2, counts // 2))
    found: Array = (lower + upper) / 2
    return found


_SHORTEST = 3
_PENALTY = 5.0


def segments(values: Array, *, alpha: float) -> list[tuple[int, int]]:
    """Return where each level begins and ends (excluded): the cheapest cut, neighbours joined unless a test parts them.

    The weakest border is tested first, again after every joining, until all that are left hold.
    """
    count = values.size
    found = scores(values) if count else None
    if found is None:
        return [(0, count)] if count else []
    noise = _noise(found)
    borders = [0, *cuts(found / noise, penalty=_PENALTY * math.log(max(2, count)))]
    borders = _without_short(borders)
    while len(borders) > 2:
        places = zip(borders, borders[1:], borders[2:], strict=False)
        strengths = [_strength(values, *place) for place in places]
        weakest = int(np.argmin(strengths)) + 1
        if _parts(values, borders[weakest - 1], borders[weakest], borders[weakest + 1], alpha=alpha):
            break
        del borders[weakest]
    return list(pairwise(borders))


def _noise(found: Array) -> float:
    """Return the standard deviation about the level, by the steps from run to run; 1 where these say nothing."""
    steps = np.diff(found)
    return float(np.sqrt(np.mean(steps * steps) / 2)) or 1.0


def _without_short(borders: list[int]) -> list[int]:
    """Return the borders without those that make a level of fewer than three runs."""
    kept, last = [borders[0]], borders[-1]
    for border in borders[1:-1]:
        if border - kept[-1] >= _SHORTEST and last - border >= _SHORTEST:
            kept.append(border)
    return [*kept, last]


def _split(values: Array, low: int, middle: int, high: int) -> tuple[Array, Split] | None:
    """Return the scores of two neighbours, and how strongly they differ at their border."""
    found = scores(values[low:high])
    if found is None:
        return None
    centred, first, last = found - np.mean(found), middle - low, high - middle
    deviation = float(np.sqrt(np.mean(centred * centred)))
    strength = float(np.sum(centred[first:])) * math.sqrt((high - low - 1) / (first * last)) / deviation
    return found, Split(first, round(strength, 9))


def _strength(values: Array, low: int, middle: int, high: int) -> float:
    found = _split(values, low, middle, high)
    return 0.0 if found is None else abs(found[1].strength)


def _parts(values: Array, low: int, middle: int, high: int, *, alpha: float) -> bool:
    found = _split(values, low, middle, high)
    if found is None or abs(found[1].strength) <= WEAK:
        return False
    # Whichever of the two is the shorter one: a shuffle may choose as short a part as it is.
    shortest = min(AFTER, middle - low, high - middle)
    return split_p(*found, before=shortest, after=shortest) <= alpha
