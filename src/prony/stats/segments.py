"""Split a whole series into levels for plots, with all runs known."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from prony.stats.changes import AFTER, WEAK, Split, split_p
from prony.stats.quantiles import Array
from prony.stats.scores import scores
from prony.stats.steady import cuts

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
