"""Find the knee of a load curve, if the runs support one.

Two straight pieces that meet in a bend are fitted to the runs, each weighed by its own level, because noise grows with
the value. The bend counts only where the slope after it is below a share of the slope before it by more than the
noise allows; where the pieces fit worse than the runs scatter, their misfit counts as noise. What no two pieces fit (a
slow fading, a collapse) is judged step by step: each step beyond the knee must bring less than the share of the first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from prony.stats.beta import f_survival, student_quantile
from prony.stats.quantiles import Array

# How finely a bend between two levels is looked for.
_STEPS = 24
_CONFIDENCE = 0.95
FEWEST_LEVELS = 4


@dataclass(frozen=True)
class Knee:
    """`at` and its interval are None where nothing bends.

    `bends`: the slope after is below the share; `grows`: it is above it; `flat`: there was no growth from the first
    level on; `unclear`: the runs scatter too much to say. `remains` is slope after by slope before, with its ends.
    """

    state: Literal["bends", "grows", "flat", "unclear"]
    at: float | None = None
    low: float | None = None
    high: float | None = None
    remains: float | None = None
    remains_low: float | None = None
    remains_high: float | None = None


@dataclass(frozen=True)
class _Fit:
    at: float
    misfit: float
    slopes: Array
    spread: Array


@dataclass(frozen=True)
class _Levels:
    """The runs of each level in short: `scatter` is the sum of squares of their relative distances to its mean."""

    x: Array
    means: Array
    counts: Array
    scatter: float

    @property
    def freedom(self) -> int:
        return int(self.counts.sum()) - self.x.size

    @property
    def reach(self) -> float:
        """How many standard errors convince: several steps are looked at, so each must convince more."""
        return student_quantile(self.freedom, 1 - (1 - _CONFIDENCE) / 2 / (self.x.size - 2))


def find_knee(levels: Sequence[float], runs: Sequence[Sequence[float]], share: float) -> Knee | None:
    """Return what the runs say of levels in ascending order; None of fewer than four levels, of values that are not
    positive, and where no level has two runs."""
    x = np.asarray(levels, dtype=np.float64)
    groups = [np.asarray(group, dtype=np.float64) for group in runs]
    if x.size < FEWEST_LEVELS or any(not group.size or group.min() <= 0 for group in groups):
        return None
    means = np.array([group.mean() for group in groups])
    scatter = sum(float(np.sum((group / mean - 1) ** 2)) for group, mean in zip(groups, means, strict=True))
    known = _Levels(x, means, np.array([group.size for group in groups]), scatter)
    if known.freedom < 1:
        return None
    found = _by_pieces(known, share)
    if found.state != "bends" and _growth(x, groups) < share:
        return Knee("flat")
    return _by_steps(known, share) if found.state == "unclear" else found


def _by_pieces(known: _Levels, share: float) -> Knee:
    places = _places(known.x)
    fits = [_fit(known, at) for at in places]
    best = min(fits, key=lambda fit: fit.misfit)
    variance, freedom = _noise(known, best.misfit)
    reach = student_quantile(freedom, 1 - (1 - _CONFIDENCE) / 2 / (known.x.size - 2))
    remains = _ratio(best, variance, reach)
    before, after = best.slopes
    margin, contrast = after - share * before, np.array([-share, 1.0])
    width = reach * math.sqrt(max(variance * float(contrast @ best.spread @ contrast), 0.0))
    rises = before - reach * math.sqrt(variance * float(best.spread[0, 0])) > 0
    if not rises or margin + width >= 0:
        return Knee("grows" if rises and margin - width > 0 else "unclear", None, None, None, *remains)
    worst = best.misfit + variance * student_quantile(freedom, 0.975) ** 2
    near = [place for place, fit in enumerate(fits) if fit.misfit <= worst]
    # A place that was not tried may fit as well as its neighbour.
    low, high = places[max(near[0] - 1, 0)], places[min(near[-1] + 1, len(places) - 1)]
    return Knee("bends", best.at, low, high, *remains)


def _by_steps(known: _Levels, share: float) -> Knee:
    """Return the first level from which on every step brings less than the share of what the first step brought."""
    x, size = known.x, known.x.size
    slope = np.zeros((size - 1, size))
    for step in range(size - 1):
        slope[step, step : step + 2] = np.array([-1.0, 1.0]) / (x[step + 1] - x[step])
    covariance = known.scatter / known.freedom * known.means**2 / known.counts
    margins = (slope[1:] - share * slope[0]) @ known.means
    widths = known.reach * np.sqrt(((slope[1:] - share * slope[0]) ** 2) @ covariance)
    first = float(slope[0] @ known.means)
    last = float(slope[-1] @ known.means) / first if first > 0 else None
    rises = first - known.reach * math.sqrt(float(slope[0] ** 2 @ covariance)) > 0
    poor = [bool(one) for one in margins + widths < 0]
    begin = len(poor) - next((n for n, one in enumerate(reversed(poor)) if not one), len(poor))
    if rises and begin < len(poor):
        at = begin + 1
        return Knee("bends", float(x[at]), float(x[at - 1]), float(x[at + 1]), last)
    return Knee("grows" if rises and margins[-1] - widths[-1] > 0 else "unclear", remains=last)


def _places(x: Array) -> list[float]:
    """Return where a bend may lie: two levels must stand on either side, or nothing says where the pieces meet."""
    places: list[float] = []
    for low, high in pairwise(x[1:-1]):
        places += np.geomspace(low, high, _STEPS, endpoint=False).tolist()
    return [*places, float(x[-2])]


def _fit(known: _Levels, at: float) -> _Fit:
    """Fit by least squares of relative residuals; `spread` times the noise is the covariance of both slopes."""
    x, means = known.x, known.means
    scale = np.sqrt(known.counts) / means
    design = np.column_stack([np.ones_like(x), np.minimum(x, at), np.maximum(x - at, 0.0)]) * scale[:, None]
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ (design.T @ (means * scale))
    misfit = float(np.sum((means * scale - design @ found) ** 2))
    return _Fit(at, misfit, found[1:], inverse[1:, 1:])


def _noise(known: _Levels, misfit: float) -> tuple[float, int]:
    """Return the variance of one run and its degrees of freedom: of the scatter of runs together with the misfit, or of
    the misfit alone where it is more than the scatter explains."""
    spare, pure = known.x.size - 4, known.scatter / known.freedom
    if spare > 0 and (not pure or f_survival(spare, known.freedom, misfit / spare / pure) < 1 - _CONFIDENCE):
        return misfit / spare, spare
    return (known.scatter + misfit) / (known.freedom + max(spare, 0)), known.freedom + max(spare, 0)


def _ratio(fit: _Fit, variance: float, reach: float) -> tuple[float | None, float | None, float | None]:
    """Return slope after by slope before, with its ends by the first terms of their spread; None of no slope before."""
    before, after = (float(slope) for slope in fit.slopes)
    if before <= 0:
        return None, None, None
    value = after / before
    gradient = np.array([-value, 1.0]) / before
    width = reach * math.sqrt(max(variance * float(gradient @ fit.spread @ gradient), 0.0))
    return value, value - width, value + width


def _growth(x: Array, groups: Sequence[Array]) -> float:
    """Return the upper end of the power of the level with which the values grow: 1 is in proportion, 0 not at all."""
    level = np.concatenate([np.full(group.size, math.log(at)) for at, group in zip(x, groups, strict=True)])
    value = np.log(np.concatenate(list(groups)))
    apart = level - level.mean()
    slope = float(apart @ value / (apart @ apart))
    residual = value - value.mean() - slope * apart
    freedom = value.size - 2
    error = math.sqrt(float(residual @ residual) / freedom / float(apart @ apart))
    return slope + student_quantile(freedom, 0.975) * error
