"""Kinds of noise: runs of one build on one machine, about 100 each, and runs of the same machine a little later.

Stationary: normal noise of 1, 2 and 5 %, skewed noise, 6 % spikes, two modes, quantised values. Not stationary: noise
that flips between small and large, a drift of 4 %, runs that follow each other, and a machine that changes its state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prony.stats.quantiles import Array

Generator = np.random.Generator
LEVEL = 100.0


@dataclass(frozen=True)
class Machine:
    """What each run of a series is multiplied by: `noise` is the run's own, `machine` lasts from run to run.

    `state` is what the machine was in at each run, where it has states.
    """

    noise: Array
    machine: Array
    state: Array

    @property
    def values(self) -> Array:
        found: Array = LEVEL * self.noise * self.machine
        return found


def _alone(noise: Array) -> Machine:
    return Machine(noise, np.ones(noise.size), np.zeros(noise.size))


def _normal(cv: float) -> Callable[[Generator, int], Machine]:
    return lambda rng, count: _alone(np.exp(rng.normal(0, cv, count)))


def _skewed(rng: Generator, count: int) -> Machine:
    return _alone(np.exp(rng.exponential(0.05, count)))


def _spikes(rng: Generator, count: int) -> Machine:
    spiked = rng.random(count) < 0.06
    return _alone(np.exp(rng.normal(0, 0.02, count)) * np.where(spiked, 1 + rng.uniform(0.2, 1.0, count), 1.0))


def _two_modes(rng: Generator, count: int) -> Machine:
    return _alone(np.exp(rng.normal(0, 0.01, count)) * np.where(rng.random(count) < 0.3, 1.06, 1.0))


def _quantised(rng: Generator, count: int) -> Machine:
    return _alone(np.round(np.exp(rng.normal(0, 0.02, count)) * LEVEL) / LEVEL)


def _flipping_noise(rng: Generator, count: int) -> Machine:
    noise, states = rng.normal(0, 1, count), _states(rng, count, _CHANCES["flipping noise"])
    return Machine(_flip(noise, states), np.ones(count), states)


def _flip(noise: Array, states: Array) -> Array:
    found: Array = np.exp(noise * np.where(states, 0.05, 0.01))
    return found


_DRIFT, _DRIFT_RUNS = math.log(1.04), 80


def _drift(rng: Generator, count: int) -> Machine:
    noise = np.exp(rng.normal(0, 0.01, count))
    return Machine(noise, np.exp(np.linspace(0, _DRIFT, count)), np.zeros(count))


_FOLLOWS, _FOLLOWS_SD = 0.6, 0.02


def _following(rng: Generator, count: int) -> Machine:
    noise = rng.normal(0, _FOLLOWS_SD * math.sqrt(1 - _FOLLOWS**2), count)
    noise[0] = rng.normal(0, _FOLLOWS_SD)
    for i in range(1, count):
        noise[i] += _FOLLOWS * noise[i - 1]
    return Machine(np.ones(count), np.exp(noise), np.zeros(count))


_SLOWER = 1.05


def _changing_state(rng: Generator, count: int) -> Machine:
    noise, states = np.exp(rng.normal(0, 0.01, count)), _states(rng, count, _CHANCES["changing state"])
    return Machine(noise, np.where(states, _SLOWER, 1.0), states)


def _states(rng: Generator, count: int, chance: float) -> Array:
    """Return in which of two states the machine is at each run; it changes with so much chance before each."""
    flips = rng.random(count) < chance
    states: Array = (np.cumsum(flips) + int(rng.integers(2))) % 2 == 1
    return states


_CHANCES = {"flipping noise": 0.08, "changing state": 0.05}
STATIONARY: dict[str, Callable[[Generator, int], Machine]] = {
    "normal 1 %": _normal(0.01),
    "normal 2 %": _normal(0.02),
    "normal 5 %": _normal(0.05),
    "skewed": _skewed,
    "6 % spikes": _spikes,
    "two modes": _two_modes,
    "quantised": _quantised,
}
MOVING: dict[str, Callable[[Generator, int], Machine]] = {
    "flipping noise": _flipping_noise,
    "drift 4 %": _drift,
    "following runs": _following,
    "changing state": _changing_state,
}
FAMILIES = STATIONARY | MOVING


def machine_runs(family: str, rng: Generator, count: int) -> Machine:
    return FAMILIES[family](rng, count)


def runs(family: str, rng: Generator, count: int) -> Array:
    return machine_runs(family, rng, count).values


def more_runs(family: str, rng: Generator, made: Machine, at: int, count: int, gap: float) -> Machine:
    """Return runs of the same machine after run `at`, each `gap` of the time between two runs of the series later.

    What lasts from run to run goes on from where it was: runs in a row meet the machine in the same mood.
    """
    if family == "drift 4 %":
        ahead = _DRIFT / _DRIFT_RUNS * gap * np.arange(1, count + 1)
        return Machine(np.exp(rng.normal(0, 0.01, count)), made.machine[at] * np.exp(ahead), np.zeros(count))
    if family == "following runs":
        return Machine(np.ones(count), np.exp(_follow_on(rng, math.log(made.machine[at]), count, gap)), np.zeros(count))
    if family in _CHANCES:
        flips = rng.random(count) < _chance_within(_CHANCES[family], gap)
        states = (np.cumsum(flips) + int(made.state[at])) % 2 == 1
        if family == "flipping noise":
            return Machine(_flip(rng.normal(0, 1, count), states), np.ones(count), states)
        return Machine(np.exp(rng.normal(0, 0.01, count)), np.where(states, _SLOWER, 1.0), states)
    return machine_runs(family, rng, count)


def _follow_on(rng: Generator, last: float, count: int, gap: float) -> Array:
    follows = _FOLLOWS**gap
    found = rng.normal(0, _FOLLOWS_SD * math.sqrt(1 - follows**2), count)
    for i in range(count):
        found[i] += follows * (found[i - 1] if i else last)
    return found


def _chance_within(chance: float, gap: float) -> float:
    """Return how likely another state is after a part of the time between two runs."""
    return (1 - math.pow(1 - 2 * chance, gap)) / 2
