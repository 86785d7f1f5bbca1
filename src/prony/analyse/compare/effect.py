"""Estimate the effect between the runs of two sides, and draw a conclusion from it, or say why there is none.

The conclusion depends on the effect, the metric's direction and the smallest relevant change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prony.model.comparison import Conclusion, Effect
from prony.model.load import Load
from prony.model.metric import Better
from prony.stats.apart import ApartSpread, apart_p, widen_ratio
from prony.stats.bootstrap import bootstrap_difference
from prony.stats.intervals import rate_difference_interval
from prony.stats.permutation import cut_scores, least_p, permutation_p, robust_p, robust_sign_flip_p, sign_flip_p
from prony.stats.quantiles import Array
from prony.stats.shift import Shift, cliffs_delta, paired_ratio, ratio
from prony.stats.spread import FEWEST_RUNS, detectable_change, noise_of, runs_needed
from prony.stats.student import paired_student_ratio_p, student_p, student_ratio_p

_TOGETHER = 0.3
_APART_REACH = 3.08  # normal quantiles of `APART_LEVEL`, two-sided, and of a power of 80 %, together
FEWEST_PAIRS = 8  # signs of seven pairs never come below 1.6 %


@dataclass(frozen=True)
class ComparedRuns:
    """One number a run of both sides, of failures their share. `paired`: those with one index were made together."""

    before: Sequence[float]
    after: Sequence[float]
    paired: bool = False


def effect_of(
    before: Sequence[float], after: Sequence[float], *, paired: bool = False, apart: Sequence[ApartSpread] = ()
) -> Effect | str:
    """Return by how much `after` differs from `before`, one number a run; a text where that cannot be said.

    The same in every unit, and of a rate as of its inverse. `paired`: the runs with one index were made together.
    `apart`: how far whole results of either side lie apart, where the sides were not measured together.
    """
    if trouble := _trouble_with(before, after, paired=paired):
        return trouble
    first, second = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    logs = np.log(first), np.log(second)
    found = paired_ratio(first, second) if paired else ratio(first, second)
    noise = noise_of(np.exp(logs[1] - logs[0])) if paired else noise_of(first, second)
    # Of pairs the noise is that of their quotients, which holds the noise of both sides already.
    runs = 2 * len(before) if paired else min(len(before), len(after))
    how = "paired Hodges-Lehmann ratio; sign-flip test" if paired else "Hodges-Lehmann ratio; permutation test"
    made = Effect(
        value=found.value, low=found.low, high=found.high, confidence=found.confidence,
        p=robust_sign_flip_p(logs[1] - logs[0]) if paired else robust_p(*logs),
        delta=cliffs_delta(first, second), runs=(len(before), len(after)),
        noise=noise, detectable=detectable_change(noise, runs) if noise is not None else None, method=how,
    )  # fmt: skip
    return _measured_apart(made, apart) if apart else made


def _measured_apart(effect: Effect, sides: Sequence[ApartSpread]) -> Effect:
    """Let an effect hold the spread between whole results, which the runs of two of them do not show."""
    spread = math.hypot(*(side.sd for side in sides))
    wide = widen_ratio(Shift(effect.value, effect.low, effect.high, effect.confidence), spread)
    found = {
        "low": wide.low,
        "high": wide.high,
        "apart": spread,
        "apart_results": min(side.results for side in sides),
        "apart_calibrated": sides[0].calibrated,
        "apart_p": apart_p(math.log(effect.value), effect.noise or 0.0, effect.runs, spread),
        "detectable": math.hypot(effect.detectable or 0.0, _APART_REACH * spread),
        "method": f"{effect.method}; the spread between whole results added",
    }
    return effect.model_copy(update=found)


def chance_among(effect: Effect, adjusted: float, tests: int, runs: ComparedRuns) -> float:
    """Return how likely chance alone shows as much somewhere among `tests`; `adjusted` is what the permutation tests
    say of that.

    Few runs have few arrangements: five against five never come below 0.8 %, which is nothing among seven. Where the
    permutation test could not tell a change of any size, Student's decides, times the number of tests, and never below
    `effect.p`.
    """
    least = least_p(len(runs.before), len(runs.after), paired=runs.paired)
    if effect.p is None or effect.p >= LEVEL or least * tests < FALSE_DISCOVERIES:
        return adjusted
    before, after = (np.asarray(side, dtype=np.float64) for side in (runs.before, runs.after))
    if effect.scale == "difference":
        # The arc sine makes shares vary alike wherever they lie.
        alone = student_p(np.arcsin(np.sqrt(before)), np.arcsin(np.sqrt(after)))
    else:
        alone = (paired_student_ratio_p if runs.paired else student_ratio_p)(before, after)
    return max(effect.p, min(adjusted, tests * alone))


def rise_together(before: Sequence[float], after: Sequence[float]) -> bool:
    """Do runs that were made in turns go up and down together, so that pairs would take something out?

    It does not look at how far apart the sides are, so it chooses between two tests without preferring an answer. Pairs
    of runs that have nothing in common have half the degrees of freedom and find less.
    """
    if len(before) != len(after) or len(before) < FEWEST_PAIRS or _trouble_with(before, after):
        return False
    scores = [cut_scores(np.log(np.asarray(side, dtype=np.float64))) for side in (before, after)]
    first, second = (one - np.mean(one) for one in scores)
    size = float(np.sqrt(np.sum(first**2) * np.sum(second**2)))
    return size > 0 and float(np.sum(first * second)) / size > _TOGETHER


def _trouble_with(before: Sequence[float], after: Sequence[float], *, paired: bool = False) -> str:
    """Return why these runs cannot be compared as a ratio; an empty text where they can."""
    for name, values in (("baseline", before), ("candidate", after)):
        odd = next((value for value in values if not math.isfinite(value) or value <= 0), None)
        if odd is not None:
            return f"a run of the {name} has the value {odd:g}, which cannot be compared as a ratio"
    if paired and len(before) != len(after):
        return f"{len(before)} runs and {len(after)} runs cannot be paired"
    fewest = FEWEST_PAIRS if paired else FEWEST_RUNS
    return _too_few(before, after, fewest)


RunCounts = Sequence[tuple[int, int]]  # (failed, total) of each run


def share_effect(before: RunCounts, after: RunCounts) -> Effect | str:
    """Return by how much the share of failures differs.

    Failures come in bursts: a run that met one has many, and its requests are no witnesses of their own. So runs are
    permuted and not requests, and the interval is wider by as much as runs differ beyond chance.
    """
    if trouble := _trouble_with_counts(before, after):
        return trouble
    pooled = [(sum(failed for failed, _ in side), sum(total for _, total in side)) for side in (before, after)]
    value = pooled[1][0] / pooled[1][1] - pooled[0][0] / pooled[0][1]
    low, high = _share_interval(before, after, pooled, value)
    return Effect(
        scale="difference", value=value, low=low, high=high, confidence=0.95,
        p=permutation_p(_shares(before), _shares(after)), runs=(len(before), len(after)),
        method="difference of shares of all requests; Newcombe's interval, widened by runs; permutation test of runs",
    )  # fmt: skip


def item_effect(before: Mapping[str, float], after: Mapping[str, float]) -> Effect | str:
    """Return by how much the scores of the same items differ, as a difference of their means.

    An item that is hard for one side is mostly hard for the other: items are drawn with both of their scores.
    """
    both = [name for name in before if name in after]
    if len(both) < FEWEST_PAIRS:
        return f"both sides were scored on {len(both)} items in common, and a verdict needs {FEWEST_PAIRS}"
    first, second = (np.array([side[name] for name in both]) for side in (before, after))
    found = bootstrap_difference(first, second)
    return Effect(
        scale="difference", value=found.value, low=found.low, high=found.high,
        confidence=None if found.low is None else 0.95, p=sign_flip_p(second - first), runs=(len(both), len(both)),
        counted="items", method=f"mean difference of {len(both)} items; paired BCa bootstrap; sign-flip test",
    )  # fmt: skip


def _trouble_with_counts(before: RunCounts, after: RunCounts) -> str:
    if not all(total for side in (before, after) for _, total in side):
        return "a run has no requests"
    return _too_few(before, after, FEWEST_RUNS)


def _too_few(before: Sequence[object], after: Sequence[object], fewest: int) -> str:
    if min(len(before), len(after)) >= fewest:
        return ""
    return f"{len(before)} {_runs(len(before))} against {len(after)}, and a verdict needs {fewest} on each side"


def _shares(counts: RunCounts) -> Array:
    return np.array([failed / total for failed, total in counts])


def _share_interval(
    before: RunCounts, after: RunCounts, pooled: Sequence[tuple[int, int]], value: float
) -> tuple[float | None, float | None]:
    found = rate_difference_interval(pooled[0], pooled[1])
    if found is None:
        return None, None
    wider = math.sqrt(max(1.0, _overdispersion(before, after)))
    return max(-1.0, value - (value - found[0]) * wider), min(1.0, value + (found[1] - value) * wider)


def _overdispersion(*sides: RunCounts) -> float:
    """Return how many times as much runs vary as independent requests would let them; 0 where nothing varies."""
    squares = 0.0
    for side in sides:
        rate = sum(failed for failed, _ in side) / sum(total for _, total in side)
        if 0 < rate < 1:
            squares += sum(total * (failed / total - rate) ** 2 for failed, total in side) / (rate * (1 - rate))
    return squares / sum(len(side) - 1 for side in sides)


def breaks(before: RunCounts, after: RunCounts, load: Load) -> bool:
    """Do the requests fail on one side only, so plainly that no number of runs would say otherwise?

    Each run of the candidate fails more of them than the recipe allows, and no run of the baseline does; or not one of
    the candidate's requests was answered, and some of the baseline's were.
    """
    if not before or not after:
        return False
    if all(failed == total for failed, total in after):
        return any(failed < total for failed, total in before)
    return all(load.allows_failures(*run) for run in before) and not any(load.allows_failures(*run) for run in after)


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"


# One test alone, and the share of false discoveries among all that are compared at once.
LEVEL = 0.01
FALSE_DISCOVERIES = 0.025
# How often two whole results of the same thing, measured apart, may be called different, half of it each way.
APART_LEVEL = 0.025
# Of a share of failures, in shares: the least that is told, and what must be ruled out before two are called the same.
LEAST_SHARE = 0.001
SAME_SHARE = 0.01
_LEAST_CHANGE = 0.01
_MOST_RUNS = 1000


def gate(threshold: float) -> float:
    """Return the estimate from which on a change is told: one at the size that matters would miss half of those."""
    return max(_LEAST_CHANGE, threshold * 2 / 3)


def conclude(effect: Effect, better: Better, threshold: float, level: float = LEVEL) -> Conclusion:
    """Say what the effect means; `effect.q` is the probability among all that were compared."""
    if is_significant(effect, level) and _is_large(effect, threshold):
        return _direction(effect, better)
    return Conclusion.EQUIVALENT if _is_same(effect, threshold) else Conclusion.INCONCLUSIVE


def is_significant(effect: Effect, level: float = LEVEL) -> bool:
    if effect.p is None:
        return False
    return effect.p < level and (effect.q is None or effect.q < FALSE_DISCOVERIES) and not hidden_by_apart(effect)


def hidden_by_apart(effect: Effect) -> bool:
    """Would two whole results of the same thing, measured apart, differ as much too often?"""
    known = effect.apart_p if effect.apart_q is None else effect.apart_q
    return known is not None and known >= APART_LEVEL


def needs_turns(effect: Effect, threshold: float) -> bool:
    """Is what whole results differ by too much for an answer, so that no number of runs settles it?"""
    if effect.apart is None:
        return False
    # Two standard deviations: what an interval of 95 % holds at least.
    if 2 * effect.apart >= math.log1p(threshold):
        return True
    return effect.p is not None and effect.p < LEVEL and hidden_by_apart(effect)


def more_runs(effect: Effect, threshold: float) -> int | None:
    """Return how many more runs on each side would settle an open question; None where nobody can tell or wait."""
    if effect.noise is None or effect.scale == "difference" or needs_turns(effect, threshold):
        return None
    have = min(effect.runs)
    needed = max(runs_needed(effect.noise, threshold), math.ceil(1.5 * have))
    return needed - have if needed <= _MOST_RUNS else None


def _is_large(effect: Effect, threshold: float) -> bool:
    if effect.scale == "difference":
        return abs(effect.value) >= LEAST_SHARE
    return abs(math.log(effect.value)) >= math.log1p(gate(threshold))


def _is_same(effect: Effect, threshold: float) -> bool:
    if effect.low is None or effect.high is None:
        return False
    if effect.scale == "difference":
        return effect.low > -SAME_SHARE and effect.high < SAME_SHARE
    limit = math.log1p(threshold)
    return -limit < math.log(effect.low) and math.log(effect.high) < limit


def _direction(effect: Effect, better: Better) -> Conclusion:
    rose = effect.value > (0 if effect.scale == "difference" else 1)
    if better == "neither":
        return Conclusion.DIFFERENT
    return Conclusion.IMPROVEMENT if rose == (better == "higher") else Conclusion.REGRESSION
