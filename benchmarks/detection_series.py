"""A seed in, histories of runs whose truth is known out: eleven kinds of noise, with and without a change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import noise_families
from prony.stats.quantiles import Array

RUNS, FIRST = 80, 30
STATIONARY, RESTLESS = tuple(noise_families.STATIONARY), tuple(noise_families.MOVING)
QUIET, NOISY, SPIKES = ("normal 1 %", "normal 2 %", "quantised"), ("normal 5 %",), ("6 % spikes",)
SIZES = (0.0, 0.03, 0.05, 0.10)


@dataclass(frozen=True)
class History:
    """`change` is the first run of the new level, None of one without; `seed` makes what chance it needs later."""

    family: str
    size: float
    change: int | None
    values: Array
    seed: tuple[int, ...]


def histories(seed: int, unchanged: int, changed: int) -> Iterator[History]:
    """Yield so many without a change and with one, of every family and size."""
    for number, family in enumerate((*STATIONARY, *RESTLESS)):
        for rank, size in enumerate(SIZES):
            for index in range(changed if size else unchanged):
                key = (seed, number, rank, index)
                rng = np.random.default_rng(key)
                values = noise_families.runs(family, rng, RUNS)
                change = int(rng.integers(45, 55))
                values[change:] *= 1 + size
                yield History(family, size, change if size else None, values, key)
