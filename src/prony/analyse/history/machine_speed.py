"""Judge a series beside the canary of its machine: take away what happened to the machine, where that helps.

Canaries are logarithms of what a fixed piece of work took beside each run, NaN where none was timed. A program that
waits for the processor slows down as the processor does, so the slope is 1: nothing is fitted, and nothing can be
fitted away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from prony.stats.changes import middle, robust_sd
from prony.stats.quantiles import Array

# The spread that must be left without the canary's share: more, and the canary would add noise and hide changes.
_EARNS = 0.8
_LEAST_RUNS = 8
# The part of a change that the canary must show for the machine to explain it, and how sure its own move must be.
_PART = 0.5
_SURE_DEVIATIONS = 3.0


@dataclass(frozen=True)
class MachineSpeeds:
    """The canaries beside some runs of a series, by name."""

    names: tuple[str, ...] = ()
    logarithms: tuple[Array, ...] = ()

    def between(self, low: int, high: int | None = None) -> MachineSpeeds:
        """Return the canaries beside these runs."""
        if not self.names:
            return self
        return MachineSpeeds(self.names, tuple(one[low:high] for one in self.logarithms))

    def complete(self) -> MachineSpeeds:
        """Return the canaries that were timed beside every run."""
        if not self.names:
            return self
        whole = [place for place, one in enumerate(self.logarithms) if not np.isnan(one).any()]
        return MachineSpeeds(tuple(self.names[one] for one in whole), tuple(self.logarithms[one] for one in whole))

    def beside(self, name: str) -> Array:
        return self.logarithms[self.names.index(name)]


def helpful_canary(values: Array, speeds: MachineSpeeds) -> str | None:
    """Return the canary without whose share the runs are clearly calmer; None where the runs are better as they are."""
    if values.size < _LEAST_RUNS or not speeds.names:
        return None
    spreads = [robust_sd(values - one) for one in speeds.logarithms]
    best = int(np.argmin(spreads))
    return speeds.names[best] if spreads[best] < _EARNS * robust_sd(values) else None


def explaining_canary(before: MachineSpeeds, after: MachineSpeeds, shift: float) -> str | None:
    """Return the canary that moved with a change and shows at least half of it; None where none did."""
    for name in before.names:
        if name in after.names and _moves_with(before.beside(name), after.beside(name), shift):
            return name
    return None


def _moves_with(before: Array, after: Array, shift: float) -> bool:
    move = middle(np.subtract.outer(after, before).ravel())
    rest = np.concatenate((before - middle(before), after - middle(after)))
    error = robust_sd(rest, 0.0) * math.sqrt(1 / before.size + 1 / after.size)
    return move * shift > 0 and abs(move) >= max(_PART * abs(shift), _SURE_DEVIATIONS * error)
