"""A seed in, histories of runs whose truth is known out: eleven kinds of noise, with and without a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from prony.stats.quantiles import Array

RUNS, FIRST = 80, 30
STATIONARY = ("normal1", "normal2", "normal5", "lognormal", "spikes", "bimodal", "quantised")
RESTLESS = ("flips", "drift", "ar1", "sticky")
QUIET = ("normal1", "normal2", "quantised")
SIZES = (0.0, 0.03, 0.05, 0.10)
_LEVEL_MS = 100.0


@dataclass(frozen=True)
class History:
    """`change` is the first run of the new level, None of one without; `seed` makes what chance it needs later."""

    family: str
    size: float
    change: int | None
    values: Array
    seed: tuple[int, ...]

    @property
    def is_stationary(self) -> bool:
        return self.family in STATIONARY


def histories(seed: int, unchanged: int, changed: int) -> Iterator[History]:
    """Yield so many without a change and with one, of every family and size."""
    for number, family in enumerate((*STATIONARY, *RESTLESS)):
        for rank, size in enumerate(SIZES):
            for index in range(changed if size else unchanged):
                key = (seed, number, rank, index)
                rng = np.random.default_rng(key)
                values = _LEVEL_MS * noise(family, rng, RUNS)
                change = int(rng.integers(45, 55))
                values[change:] *= 1 + size
                yield History(family, size, change if size else None, values, key)


def noise(family: str, rng: np.random.Generator, count: int) -> Array:
    """Return the factors by which runs of one program differ on such a machine."""
    z = rng.standard_normal(count)
    made: dict[str, Array] = {}
    if family.startswith("normal"):
        made[family] = 1 + int(family.removeprefix("normal")) / 100 * z
    elif family == "lognormal":
        made[family] = 0.92 + 0.08 * np.exp(0.5 * z)
    elif family == "spikes":
        made[family] = (1 + 0.02 * z) * np.where(rng.random(count) < 0.06, rng.uniform(1.2, 2, count), 1)
    elif family == "bimodal":
        made[family] = (1 + 0.01 * z) * np.where(rng.random(count) < 0.3, 1.05, 1)
    elif family == "quantised":
        made[family] = np.round(1 + 0.015 * z, 2)
    elif family == "drift":
        made[family] = (1 + 0.01 * z) * (1 + 0.04 * np.arange(count) / RUNS)
    elif family == "ar1":
        made[family] = 1 + 0.02 * _following(z, 0.6)
    else:
        made[family] = _switching(family, rng, z)
    return made[family]


def _following(z: Array, rho: float) -> Array:
    values = z.copy()
    for index in range(1, z.size):
        values[index] = rho * values[index - 1] + np.sqrt(1 - rho * rho) * z[index]
    return values


def _switching(family: str, rng: np.random.Generator, z: Array) -> Array:
    """A machine that flips between two amounts of noise, or between two speeds."""
    rate = 1 / 20 if family == "flips" else 1 / 15
    is_other = (np.cumsum(rng.random(z.size) < rate) + rng.integers(2)) % 2 == 1
    if family == "flips":
        return 1 + np.where(is_other, 0.05, 0.01) * z
    factors: Array = (1 + 0.01 * z) * np.where(is_other, 1.04, 1)
    return factors
