"""Permutation tests for two sets of numbers and for pairs, and the correction of many for the false discovery rate.

Nothing is assumed of the noise but that, were there no change, any run could as well have been one of the other set.
The same numbers always give the same probability: every arrangement is looked at where there are few, and the same
9,999 of them where there are many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations

import numpy as np

from prony.stats.quantiles import Array
from prony.stats.spread import MADN

_MOST_EXACT = 20_000
_DRAWN = 9_999
_SEED = 20_250_101
# Sums that are equal in exact arithmetic may differ in their last digits; a unit must not decide which is larger.
_TOLERANCE = 1e-9
_CUT = 1.5


def robust_p(before: Array, after: Array) -> float:
    """Return the same for scores that no single run can dominate: distances from the common median in units of the
    common spread, cut at 1.5.

    Cutting costs next to nothing where the noise is normal and keeps most of the power where it has spikes.
    """
    scores = cut_scores(np.concatenate((before, after)))
    return permutation_p(scores[: before.size], scores[before.size :])


def cut_scores(values: Array) -> Array:
    """Return how far each lies from their median in units of their spread, cut at 1.5; zeros where nothing varies."""
    distances = values - np.median(values)
    # Where half of all are equal, their mean distance is the scale.
    spread = MADN * float(np.median(np.abs(distances))) or float(np.mean(np.abs(distances)))
    scores: Array = np.clip(distances / (spread or 1.0), -_CUT, _CUT)
    return scores


def robust_sign_flip_p(differences: Array) -> float:
    """Return the same for pairs: each difference in units of the usual one, cut at 1.5 standard deviations."""
    sizes = np.abs(differences)
    spread = MADN * float(np.median(sizes)) or float(np.mean(sizes))
    return 1.0 if spread == 0 else sign_flip_p(np.clip(differences / spread, -_CUT, _CUT))


def permutation_p(before: Array, after: Array) -> float:
    """Return the two-sided probability of so large a difference of means; both sets must be finite and not empty."""
    pooled = np.concatenate((np.sort(before), np.sort(after)))
    pooled = pooled - np.mean(pooled)
    seen = float(np.sum(pooled[before.size :]))
    scale = float(np.sum(np.abs(pooled)))
    if abs(seen) <= _TOLERANCE * scale or scale == 0:
        return 1.0
    if seen < 0:  # so that a rate and its inverse are dealt the same cards
        pooled = np.concatenate((np.sort(-before), np.sort(-after)))
        pooled = pooled - np.mean(pooled)
        seen = -seen
    cards, is_exact = _hands(pooled.size, after.size)
    return _share(np.sum(pooled[cards], axis=1), seen, scale, is_exact=is_exact)


def sign_flip_p(differences: Array) -> float:
    """Return the two-sided probability of so large a mean of differences, had each pair been named in any order."""
    ordered = differences[np.argsort(np.abs(differences), kind="stable")]
    scale, seen = float(np.sum(np.abs(ordered))), float(np.sum(ordered))
    if scale == 0 or abs(seen) <= _TOLERANCE * scale:
        return 1.0
    signs, is_exact = _signs(ordered.size)
    return _share(signs @ np.abs(ordered), abs(seen), scale, is_exact=is_exact)


def least_p(first: int, second: int, *, paired: bool = False) -> float:
    """Return the smallest probability that so many numbers can have, however far apart they lie."""
    ways = 2**first if paired else math.comb(first + second, first)
    if ways > _MOST_EXACT:
        return 1 / (_DRAWN + 1)
    return (2 if paired or first == second else 1) / ways


def _share(sums: Array, seen: float, scale: float, *, is_exact: bool) -> float:
    as_far = int(np.count_nonzero(np.abs(sums) >= seen - _TOLERANCE * scale))
    return as_far / sums.size if is_exact else (as_far + 1) / (sums.size + 1)


@lru_cache(maxsize=16)
def _hands(total: int, taken: int) -> tuple[Array, bool]:
    """Return which numbers are dealt to the second set, in every way or in as many ways as are drawn."""
    ways = math.comb(total, taken)
    if ways <= _MOST_EXACT:
        dealt = np.fromiter(chain.from_iterable(combinations(range(total), taken)), dtype=np.intp, count=ways * taken)
        return dealt.reshape(ways, taken), True
    rng = np.random.default_rng(_SEED)
    shuffled = rng.permuted(np.broadcast_to(np.arange(total), (_DRAWN, total)), axis=1)
    return np.ascontiguousarray(shuffled[:, :taken]), False


@lru_cache(maxsize=16)
def _signs(pairs: int) -> tuple[Array, bool]:
    if 2**pairs <= _MOST_EXACT:
        numbers = np.arange(2**pairs)[:, None] >> np.arange(pairs)
        return np.where(numbers & 1, 1.0, -1.0), True
    return np.random.default_rng(_SEED).choice([-1.0, 1.0], size=(_DRAWN, pairs)), False


def adjust_probabilities(probabilities: Sequence[float]) -> list[float]:
    """Return, for each, the share of false discoveries if it and all smaller ones were called discoveries.

    By Benjamini and Hochberg. Six lines and not scipy.stats, whose import costs more than a whole comparison.
    """
    if not probabilities:
        return []
    order = np.argsort(probabilities, kind="stable")[::-1]
    count = len(probabilities)
    scaled = np.asarray(probabilities, dtype=np.float64)[order] * count / np.arange(count, 0, -1)
    found = np.empty(count)
    found[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return [float(one) for one in found]
