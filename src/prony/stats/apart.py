"""Estimate how far whole results of the same thing lie apart, and how likely that alone shows a change.

The runs of one result share a start of the machine, an hour and a layout of memory, so they do not tell by how much the
next result will differ. A comparison of results that were measured apart needs that spread as a level of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from prony.stats.quantiles import Array
from prony.stats.shift import Shift
from prony.stats.spread import MADN, noise_of

# What is taken for the relative spread of whole results where no earlier ones tell, and for how many steps between
# earlier results that counts beside them.
ASSUMED_SPREAD = 0.02
_ASSUMED_WEIGHT = 3
# A step that is so many times as large as most is a change of the program and no spread.
_CUT = 3.0
# A median of differences has about this much more spread than a mean.
_MEDIAN_FACTOR = 1.05


@dataclass(frozen=True)
class ApartSpread:
    """The relative standard deviation of whole results; `results` is of how many earlier ones it was learned, and
    `calibrated` what a deep calibration of the machine saw, where there is one."""

    sd: float = ASSUMED_SPREAD
    results: int = 0
    calibrated: float | None = None


_ASSUMED = ApartSpread()


def spread_before_history(calibrated: float | None) -> ApartSpread:
    """Return what is taken for the spread before any earlier result of a thing is known.

    `calibrated` is what a deep calibration of the machine saw on its fixed kernel. More than the assumed spread is
    believed, since the machine adds it to everything. Less is not: programs depend more than the kernel on their layout
    in memory, and with 1.4 % believed where 2 % is true, one comparison in twenty would be a false regression.
    """
    return ApartSpread(max(ASSUMED_SPREAD, calibrated or 0.0), calibrated=calibrated)


def estimate_apart_spread(levels: Array, runs: Array, before: ApartSpread = _ASSUMED) -> ApartSpread:
    """Return how far results lie apart whose middles, in their order, were these; `runs` are those of one of them.

    Few results say little: what was taken `before` any was known counts beside them.
    """
    known = levels[np.isfinite(levels) & (levels > 0)]
    if known.size < 2:
        return before
    seen, steps = spread_between(known, _middle_variance(runs)) ** 2, known.size - 1
    variance = (_ASSUMED_WEIGHT * before.sd**2 + steps * seen) / (_ASSUMED_WEIGHT + steps)
    return ApartSpread(math.sqrt(variance), int(known.size), before.calibrated)


def spread_between(levels: Array, run_variance: float) -> float:
    """Return how far these middles of whole results lie apart, beyond what their runs move them by.

    Only steps from one result to the next count, so that a change long ago is one large step and not a spread, and
    large ones are cut. What runs vary by moves the middle of a result too, and is counted where runs are: it is taken
    out.
    """
    steps = np.abs(np.diff(np.log(levels)))
    usual = MADN * float(np.median(steps))
    squares = np.minimum(steps, _CUT * max(usual, ASSUMED_SPREAD * math.sqrt(2))) ** 2
    return math.sqrt(max(0.0, float(np.mean(squares)) / 2 - run_variance))


def spread_of_sessions(sessions: Sequence[Array]) -> float:
    """Return how far whole results of these runs lie apart, beyond what their runs vary by."""
    within = float(np.mean([_middle_variance(runs) for runs in sessions]))
    return spread_between(np.array([float(np.median(runs)) for runs in sessions]), within)


def _middle_variance(runs: Array) -> float:
    """Return by how much the median of so many runs varies from one set of them to the next."""
    noise = noise_of(runs)
    return 0.0 if noise is None else math.pi / 2 * noise**2 / runs.size


def apart_p(log_ratio: float, noise: float, runs: tuple[int, int], apart: float) -> float:
    """Return how often two results of the same thing, measured apart, would differ as much.

    `noise` is that between runs, `apart` the standard deviation between two whole results.
    """
    variance = (_MEDIAN_FACTOR * noise) ** 2 * (1 / runs[0] + 1 / runs[1]) + apart**2
    if variance == 0:
        return 1.0 if log_ratio == 0 else 0.0
    return 2 * NormalDist().cdf(-abs(log_ratio) / math.sqrt(variance))


def widen_ratio(found: Shift, apart: float) -> Shift:
    """Return a ratio with an interval that holds what whole results differ by, as well as their runs."""
    if found.low is None or found.high is None or found.confidence is None:
        return found
    reach = NormalDist().inv_cdf((1 + found.confidence) / 2) * apart
    down, up = (math.hypot(math.log(end / found.value), reach) for end in (found.low, found.high))
    return replace(found, low=found.value * math.exp(-down), high=found.value * math.exp(up))
