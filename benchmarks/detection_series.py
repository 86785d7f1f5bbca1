"""Histories of runs whose truth is known: eleven kinds of noise, with and without a change, and a canary beside each.

`tune` is the suite to choose a method by. `report` is the one whose figures are published: it has a seed of its own
and is looked at when everything is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import noise_families
from benchmarks.noise_families import Machine
from prony.stats.quantiles import Array

SEEDS = {"tune": 20_261_117, "report": 20_261_209}
RUNS, FIRST = 80, 30
STATIONARY, RESTLESS = tuple(noise_families.STATIONARY), tuple(noise_families.MOVING)
QUIET, NOISY, SPIKES = ("normal 1 %", "normal 2 %", "quantised"), ("normal 5 %",), ("6 % spikes",)
SIZES = (0.0, 0.03, 0.05, 0.10)
# How much of what happens to the machine its canary shows, and the canary's own noise.
SIGHTS = {"no canary": None, "blind canary": 0.0, "half-blind canary": 0.5, "canary": 1.0}
CANARY_NOISE = 0.005


@dataclass(frozen=True)
class History:
    """`change` is the first run of the new level, None of one without; `seed` makes what chance it needs later.

    `machine` is what the runs were made of, without the change.
    """

    family: str
    size: float
    change: int | None
    values: Array
    machine: Machine
    seed: tuple[int, ...]

    def canary(self, sight: float | None) -> Array | None:
        """Return the machine's canary beside each run; None where there is none."""
        return None if sight is None else canary_of(self.machine, sight, np.random.default_rng((*self.seed, 2)))

    def level(self, run: int) -> float:
        """Return how many times as slow the version of a run is as the first one."""
        return 1 + self.size if self.change is not None and run >= self.change else 1.0


def canary_of(machine: Machine, sight: float, rng: np.random.Generator) -> Array:
    """Return logarithms of what a fixed piece of work takes beside each run."""
    found: Array = sight * np.log(machine.machine) + rng.normal(0, CANARY_NOISE, machine.machine.size)
    return found


def histories(seed: int, unchanged: int, changed: int) -> Iterator[History]:
    """Yield so many without a change and with one, of every family and size."""
    for number, family in enumerate((*STATIONARY, *RESTLESS)):
        for rank, size in enumerate(SIZES):
            for index in range(changed if size else unchanged):
                key = (seed, number, rank, index)
                rng = np.random.default_rng(key)
                machine = noise_families.machine_runs(family, rng, RUNS)
                values, change = machine.values, int(rng.integers(45, 55))
                values[change:] *= 1 + size
                yield History(family, size, change if size else None, values, machine, key)


# Longer stories, each of normal noise of 2 % unless it says otherwise


def returning(seed: int, count: int) -> Iterator[Array]:
    """A regression of 5 % from run 40 on is mended at run 60, and comes back at run 85 of 110."""
    for index in range(count):
        values = _quiet(np.random.default_rng((seed, 101, index)), 110)
        values[40:60] *= 1.05
        values[85:] *= 1.05
        yield values


def noisier(seed: int, count: int) -> Iterator[Array]:
    """Nothing changes but the noise: 1 % until run 45, 5 % from then on, 160 runs."""
    for index in range(count):
        rng = np.random.default_rng((seed, 102, index))
        yield noise_families.LEVEL * np.exp(rng.normal(0, 1, 160) * np.where(np.arange(160) < 45, 0.01, 0.05))


def early(seed: int, count: int) -> Iterator[tuple[int, Array]]:
    """A change of 10 % at one of the runs 3 to 12 of 40; the run is told too."""
    for index in range(count):
        rng = np.random.default_rng((seed, 103, index))
        values, change = _quiet(rng, 40), int(rng.integers(3, 13))
        values[change:] *= 1.10
        yield change, values


def _quiet(rng: np.random.Generator, count: int) -> Array:
    return noise_families.runs("normal 2 %", rng, count)
