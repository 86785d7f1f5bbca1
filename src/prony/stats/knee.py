"""Runs at several levels of load in, the level beyond which more brings hardly more out, if the runs support one.

Two straight pieces that meet in a bend are fitted to the runs, each weighed by its own level, because noise grows with
the value. The bend counts only where the slope after it is below a share of the slope before it by more than the
noise allows; where the pieces fit worse than the runs scatter, their misfit counts as noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from prony.stats.intervals import student
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


def find_knee(levels: Sequence[float], runs: Sequence[Sequence[float]], share: float) -> Knee | None:
    """Return what the runs say of levels in ascending order; None of fewer than four levels, of values that are not
    positive, and where no level has two runs."""
    x = np.asarray(levels, dtype=np.float64)
    groups = [np.asarray(group, dtype=np.float64) for group in runs]
    freedom = sum(group.size - 1 for group in groups)
    if x.size < FEWEST_LEVELS or freedom < 1 or any(not group.size or group.min() <= 0 for group in groups):
        return None
    means = np.array([group.mean() for group in groups])
    counts = np.array([group.size for group in groups], dtype=np.float64)
    scatter = sum(float(np.sum((group / mean - 1) ** 2)) for group, mean in zip(groups, means, strict=True))
    fits = [_fitted(x, means, counts, at) for at in _places(x)]
    best = min(fits, key=lambda fit: fit.misfit)
    variance, freedom = _noise(best.misfit, x.size - 4, scatter, freedom)
    # Several gaps between levels were looked into, so each must convince more.
    reach = student(freedom, 1 - (1 - _CONFIDENCE) / 2 / (x.size - 2))
    remains = _ratio(best, variance, reach)
    before, after = best.slopes
    margin = after - share * before
    contrast = np.array([-share, 1.0])
    width = reach * math.sqrt(max(variance * float(contrast @ best.spread @ contrast), 0.0))
    rises = before - reach * math.sqrt(variance * float(best.spread[0, 0])) > 0
    if rises and margin + width < 0:
        near = [fit.at for fit in fits if fit.misfit <= best.misfit + variance * student(freedom, 0.975) ** 2]
        return Knee("bends", best.at, min(near), max(near), *remains)
    if _growth(x, groups) < share:
        return Knee("flat")
    return Knee("grows" if margin - width > 0 else "unclear", None, None, None, *remains)


def _places(x: Array) -> list[float]:
    """Return where a bend may lie: two levels must stand on either side, or nothing says where the pieces meet."""
    places: list[float] = []
    for low, high in zip(x[1:-2], x[2:-1], strict=True):
        places += np.geomspace(low, high, _STEPS, endpoint=False).tolist()
    return [*places, float(x[-2])]


def _fitted(x: Array, means: Array, counts: Array, at: float) -> _Fit:
    """Fit by least squares of relative residuals; `spread` times the noise is the covariance of both slopes."""
    scale = np.sqrt(counts) / means
    design = np.column_stack([np.ones_like(x), np.minimum(x, at), np.maximum(x - at, 0.0)]) * scale[:, None]
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ (design.T @ (means * scale))
    misfit = float(np.sum((means * scale - design @ found) ** 2))
    return _Fit(at, misfit, found[1:], inverse[1:, 1:])


def _noise(misfit: float, spare: int, scatter: float, freedom: int) -> tuple[float, int]:
    """Return the variance of one run and its degrees of freedom: the scatter of runs, or the misfit where it is more."""
    pure = scatter / freedom
    lack = misfit / spare if spare > 0 else 0.0
    return (lack, spare) if lack > pure else (pure, freedom)


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
    return slope + student(freedom, 0.975) * error
