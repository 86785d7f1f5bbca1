"""Decide by runs that are made for it whether a suspected change is real.

What happens to the machine happens to both of a pair of old and new runs, so drift, moods and neighbours fall out of
their difference. Where only the new version can be run, the canary must tell the machine from the code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np

from prony.analyse.history.detect import NO_SPEEDS, Rules
from prony.analyse.history.machine_record import MachineRecord
from prony.analyse.history.machine_speed import MachineSpeeds, explaining_canary, helpful_canary
from prony.stats.changes import middle, robust_sd
from prony.stats.permutation import robust_p, sign_flip_p
from prony.stats.quantiles import Array
from prony.stats.shift import paired_shift, shift
from prony.stats.student import student_ratio_p

# How many pairs are run at first, and how many more where these leave it open.
PAIRS, MORE = 7, 13
# The same of runs of one side alone, in rounds: an hour in which the machine is slow must not decide.
ROUNDS = (3, 2, 2, 5, 4, 4)
_LONGEST_PAUSE = timedelta(hours=1)
_RECENT_GAPS = 20
# One run alone is run once more first; nearer to the old level than so many deviations, it was a spike.
AGAIN = 1.5
# At which probability a change is confirmed, at first and after all runs: of pairs, and of runs of one side alone.
_IN_TURNS, _REPEATED, _PROMISING = (0.008, 0.005), (0.003, 0.002), 0.25
Answer = Literal["confirmed", "rejected", "open"]
RepeatsAnswer = Literal["confirmed", "rejected", "open", "machine", "restless", "unsettled"]
# How many runs before the suspect one the old version is taken from: the change may be a little older than it seems.
_EARLIER, _EARLIER_OF_ONE = 3, 6


def last_good(position: int, begin: int, *, is_alone: bool) -> int:
    """Return the run whose version stands for the old level; `is_alone`: one run by itself was suspicious."""
    return max(begin, position - (_EARLIER_OF_ONE if is_alone else _EARLIER))


def round_pause(measured_at: Sequence[datetime]) -> timedelta:
    """Return how long to wait between two rounds: all of them should fit between two results of the series."""
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(sorted(measured_at)[-_RECENT_GAPS:])]
    return min(_LONGEST_PAUSE, timedelta(seconds=median(gaps) / len(ROUNDS))) if gaps else timedelta()


def judge_pairs(differences: Array, rules: Rules, *, worse: bool = True, is_last: bool = False) -> Answer:
    """Judge the logarithms of new over old, one of each pair, more is worse; `open`: run `MORE` pairs and ask again.

    `is_last`: no more will be run, however many pairs there are.
    """
    turned = differences if worse else -differences
    moved = paired_shift(turned).value
    # One side only: the direction was said before the pairs were run.
    p = sign_flip_p(turned) / 2 if moved > 0 else 1.0
    return _decide(moved, p, _IN_TURNS, rules, is_last=is_last or differences.size >= PAIRS + MORE)


@dataclass(frozen=True)
class Repeats:
    """Results of one version as logarithms turned so that more is worse, and the canaries beside them."""

    values: Array
    speeds: MachineSpeeds = NO_SPEEDS


def judge_repeats(
    before: Repeats, after: Repeats, rules: Rules, *, record: MachineRecord, is_last: bool = False
) -> RepeatsAnswer:
    """The same where nothing can be set back: results of the old level and runs of today.

    They did not take turns, so only the canary and the machine's record can tell the machine from the code. `machine`:
    the canary says that the machine changed. `unsettled`: the new level is there, and no canary was timed beside both.
    `restless`: it is there, and such results come about on this machine by themselves, or nobody knows yet.
    """
    said = _judge_beside_canary(before, after, rules, is_last=is_last)
    is_there = said in ("confirmed", "unsettled")
    return "restless" if is_there and not record.is_calm(shift(before.values, after.values).value) else said


def _judge_beside_canary(before: Repeats, after: Repeats, rules: Rules, *, is_last: bool) -> RepeatsAnswer:
    judge = partial(_judge_sides, rules=rules, is_last=is_last)
    old, new = before.speeds.complete(), after.speeds.complete()
    shared = [name for name in old.names if name in new.names]
    helpful = helpful_canary(before.values, old)
    if helpful is not None and helpful in shared:
        return judge(before.values - old.beside(helpful), after.values - new.beside(helpful))
    said = judge(before.values, after.values)
    if said != "confirmed":
        return said
    if not shared:
        return "unsettled"
    explaining = explaining_canary(old, new, shift(before.values, after.values).value)
    if explaining is None:
        return said
    rest = judge(before.values - old.beside(explaining), after.values - new.beside(explaining))
    return "machine" if rest == "rejected" else rest


def _judge_sides(before: Array, after: Array, rules: Rules, *, is_last: bool) -> Answer:
    moved = shift(before, after).value
    # The permutation test takes it that both sides are equally noisy, the other that the noise is nearly normal.
    p = max(robust_p(before, after), student_ratio_p(np.exp(before), np.exp(after))) / 2 if moved > 0 else 1.0
    return _decide(moved, p, _REPEATED, rules, is_last=is_last)


def was_spike(before: Array, again: float) -> bool:
    """Was one suspicious run a spike, as the run after it says? Both turned so that more is worse."""
    centre = middle(before)
    return again - centre < AGAIN * robust_sd(before, centre)


def _decide(moved: float, p: float, limits: tuple[float, float], rules: Rules, *, is_last: bool) -> Answer:
    if math.expm1(moved) > rules.least and p <= limits[is_last]:
        return "confirmed"
    if not is_last and p <= _PROMISING and math.expm1(moved) > rules.least / 2:
        return "open"
    return "rejected"
