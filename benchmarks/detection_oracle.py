"""What one could find who knows the level and the noise, at a given rate of false alerts, without a run of their own.

After every run the means of the last 1 to 20 runs are compared with the known level, in known standard deviations: the
generalised likelihood ratio of a step. The limit is the one that alarms as often as is allowed where nothing changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.noise_families import LEVEL, machine_runs
from prony.stats.quantiles import Array

_SPREADS = {"normal 1 %": 0.01, "normal 2 %": 0.02, "quantised": 0.02}
_LONGEST, _CALM = 20, 400_000


def oracle_found(families: Sequence[str], size: float, within: int, false_per_100: float, seed: int) -> float:
    """Return the share of changes by `size` that are found within so many runs."""
    rng = np.random.default_rng((seed, 201))
    shares = []
    for family in families:
        calm = _strengths(_scores(family, rng, _CALM))
        # An alarm begins where the limit is passed; the runs after it belong to the same one.
        limit = _limit(calm, false_per_100 / 100)
        found = [_is_found(_scores(family, rng, 60 + within), 60, size, family, limit) for _ in range(400)]
        shares.append(float(np.mean(found)))
    return float(np.mean(shares))


def _scores(family: str, rng: np.random.Generator, count: int) -> Array:
    found: Array = np.log(machine_runs(family, rng, count).values / LEVEL) / _SPREADS[family]
    return found


def _strengths(scores: Array) -> Array:
    """Return the strongest mean of the last runs after every run, each in its own standard deviations."""
    sums = np.concatenate(([0.0], np.cumsum(scores)))
    best = np.full(scores.size, -np.inf)
    for length in range(1, _LONGEST + 1):
        means = (sums[length:] - sums[:-length]) / np.sqrt(length)
        best[length - 1 :] = np.maximum(best[length - 1 :], means)
    return best


def _limit(calm: Array, rate: float) -> float:
    """Return the lowest limit that begins no more alarms in a run than the rate."""
    low, high = 2.0, 8.0
    for _ in range(40):
        middle = (low + high) / 2
        above = calm > middle
        begun = int(np.count_nonzero(above[1:] & ~above[:-1]))
        low, high = (middle, high) if begun > rate * calm.size else (low, middle)
    return high


def _is_found(scores: Array, change: int, size: float, family: str, limit: float) -> bool:
    changed = scores.copy()
    changed[change:] += np.log1p(size) / _SPREADS[family]
    return bool(np.any(_strengths(changed)[change:] > limit))
