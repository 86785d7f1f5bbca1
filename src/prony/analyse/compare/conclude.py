"""Draw a conclusion from an effect, the metric's direction and the smallest relevant change."""

from __future__ import annotations

import math

from prony.model.comparison import Conclusion, Effect
from prony.model.metric import Better
from prony.stats.power import runs_needed

# One test alone, and the share of false discoveries among all that are compared at once.
LEVEL = 0.01
FALSE_DISCOVERIES = 0.05
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
    return effect.p < level and (effect.q is None or effect.q < FALSE_DISCOVERIES)


def more_runs(effect: Effect, threshold: float) -> int | None:
    """Return how many more runs on each side would settle an open question; None where nobody can tell or wait."""
    if effect.noise is None or effect.scale == "difference":
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
