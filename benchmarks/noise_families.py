"""A family of noise, a length and a generator in, that many runs of one build on such a machine out, about 100 each.

Stationary: normal noise of 1, 2 and 5 %, skewed noise, 6 % spikes, two modes, quantised values. Not stationary: noise
that flips between small and large, a drift of 4 %, runs that follow each other, and a machine that changes its state.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from prony.stats.quantiles import Array

Generator = np.random.Generator
LEVEL = 100.0


def _normal(cv: float) -> Callable[[Generator, int], Array]:
    return lambda rng, count: np.exp(rng.normal(0, cv, count))


def _skewed(rng: Generator, count: int) -> Array:
    return np.exp(rng.exponential(0.05, count))


def _spikes(rng: Generator, count: int) -> Array:
    spiked = rng.random(count) < 0.06
    return np.exp(rng.normal(0, 0.02, count)) * np.where(spiked, 1 + rng.uniform(0.2, 1.0, count), 1.0)


def _two_modes(rng: Generator, count: int) -> Array:
    return np.exp(rng.normal(0, 0.01, count)) * np.where(rng.random(count) < 0.3, 1.06, 1.0)


def _quantised(rng: Generator, count: int) -> Array:
    return np.round(np.exp(rng.normal(0, 0.02, count)) * LEVEL) / LEVEL


def _flipping_noise(rng: Generator, count: int) -> Array:
    return np.exp(rng.normal(0, 1, count) * np.where(_states(rng, count, 0.08), 0.05, 0.01))


def _drift(rng: Generator, count: int) -> Array:
    return np.exp(rng.normal(0, 0.01, count) + np.linspace(0, math.log(1.04), count))


def _following(rng: Generator, count: int) -> Array:
    noise = rng.normal(0, 0.02 * math.sqrt(1 - 0.6**2), count)
    noise[0] = rng.normal(0, 0.02)
    for i in range(1, count):
        noise[i] += 0.6 * noise[i - 1]
    return np.exp(noise)


def _changing_state(rng: Generator, count: int) -> Array:
    return np.exp(rng.normal(0, 0.01, count)) * np.where(_states(rng, count, 0.05), 1.05, 1.0)


def _states(rng: Generator, count: int, chance: float) -> Array:
    """Return in which of two states the machine is at each run; it changes with so much chance before each."""
    flips = rng.random(count) < chance
    states: Array = (np.cumsum(flips) + int(rng.integers(2))) % 2 == 1
    return states


STATIONARY: dict[str, Callable[[Generator, int], Array]] = {
    "normal 1 %": _normal(0.01),
    "normal 2 %": _normal(0.02),
    "normal 5 %": _normal(0.05),
    "skewed": _skewed,
    "6 % spikes": _spikes,
    "two modes": _two_modes,
    "quantised": _quantised,
}
MOVING: dict[str, Callable[[Generator, int], Array]] = {
    "flipping noise": _flipping_noise,
    "drift 4 %": _drift,
    "following runs": _following,
    "changing state": _changing_state,
}
FAMILIES = STATIONARY | MOVING


def runs(family: str, rng: Generator, count: int) -> Array:
    values: Array = LEVEL * FAMILIES[family](rng, count)
    return values
