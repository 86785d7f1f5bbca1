"""Decide by pairs of old and new runs on one machine whether a suspected change is real.

What happens to the machine happens to both of a pair, so drift, moods and neighbours fall out of their difference.
"""

from __future__ import annotations

import math
from typing import Literal

from prony.analyse.history.detect import Rules
from prony.stats.changes import middle, robust_sd
from prony.stats.permutation import permutation_p, sign_flip_p
from prony.stats.quantiles import Array
from prony.stats.shift import paired_shift, shift

# How many pairs are run at first, and how many more where these leave it open.
PAIRS, MORE = 7, 13
# One run alone is run once more first; nearer to the old level than so many deviations, it was a spike.
AGAIN = 1.5
_SURE, _SURE_AFTER_ALL, _PROMISING = 0.008, 0.005, 0.25
Answer = Literal["confirmed", "rejected", "open"]
# How many runs before the suspect one the old version is taken from: the change may be a little older than it seems.
_EARLIER, _EARLIER_OF_ONE = 3, 6


def last_good(position: int, begin: int, *, is_alone: bool) -> int:
    """Return the run whose version stands for the old level; `is_alone`: one run by itself was suspicious."""
    return max(begin, position - (_EARLIER_OF_ONE if is_alone else _EARLIER))


def judge_pairs(differences: Array, rules: Rules, *, worse: bool = True, is_last: bool = False) -> Answer:
    """Judge the logarithms of new over old, one of each pair, more is worse; `open`: run `MORE` pairs and ask again.

    `is_last`: no more will be run, however many pairs there are.
    """
    turned = differences if worse else -differences
    moved = paired_shift(turned).value
    # One side only: the direction was said before the pairs were run.
    p = sign_flip_p(turned) / 2 if moved > 0 else 1.0
    return _decide(moved, p, rules, is_last=is_last or differences.size >= PAIRS + MORE)


def answer_again(before: Array, after: Array, rules: Rules, *, is_last: bool = False) -> Answer:
    """The same where nothing can be set back: results of the old level and runs of today, turned so that more is worse.

    They did not take turns, so what happened to the machine in between is not told apart from the code.
    """
    moved = shift(before, after).value
    p = permutation_p(before, after) / 2 if moved > 0 else 1.0
    return _decide(moved, p, rules, is_last=is_last)


def was_spike(before: Array, again: float) -> bool:
    """Was one suspicious run a spike, as the run after it says? Both turned so that more is worse."""
    centre = middle(before)
    return again - centre < AGAIN * robust_sd(before, centre)


def _decide(moved: float, p: float, rules: Rules, *, is_last: bool) -> Answer:
    if math.expm1(moved) > rules.least and p <= (_SURE_AFTER_ALL if is_last else _SURE):
        return "confirmed"
    if not is_last and p <= _PROMISING and math.expm1(moved) > rules.least / 2:
        return "open"
    return "rejected"
