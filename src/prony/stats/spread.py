"""Estimate the noise of runs, the smallest change that they can show, and how many runs would show a change.

Variance is split into that within and that between runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prony.stats.detectable_table import CHANGES, NOISES, RUNS, TIMES_IF_ESTIMATED
from prony.stats.quantiles import Array

MADN = 1.4826  # a normal distribution's standard deviation, in median absolute deviations


@dataclass(frozen=True)
class Moments:
    """What the split of variance needs to know of one run; `variance` is None of a single value."""

    count: int
    mean: float
    variance: float | None


@dataclass(frozen=True)
class VarianceSplit:
    """Standard deviation inside one run and between runs; `icc` is the between share, None where nothing varies."""

    within_sd: float
    between_sd: float
    icc: float | None


def split(runs: Sequence[Moments]) -> VarianceSplit | None:
    """Split the variance over two levels; None of fewer than two runs that have a variance of their own."""
    known = [(run.count, run.mean, run.variance) for run in runs if run.variance is not None]
    if len(known) < 2:
        return None
    within = float(np.mean([variance for _, _, variance in known]))
    noise = float(np.mean([variance / count for count, _, variance in known]))
    between = max(0.0, float(np.var([mean for _, mean, _ in known], ddof=1)) - noise)
    total = within + between
    return VarianceSplit(math.sqrt(within), math.sqrt(between), between / total if total > 0 else None)


def best_count(parts: VarianceSplit, *, start_cost: float, sample_cost: float) -> int | None:
    """Return how many samples in a run make the best of a given time, where starting one costs so much.

    None where runs do not differ beyond their samples, or a cost is not known: then one run may as well go on for ever.
    """
    if parts.between_sd <= 0 or parts.within_sd <= 0 or start_cost <= 0 or sample_cost <= 0:
        return None
    return max(1, round(math.sqrt(start_cost / sample_cost) * parts.within_sd / parts.between_sd))


def robust_cv(values: Array) -> float | None:
    """Return the normal-scaled median absolute deviation over the median; None without a finite one."""
    if values.size < 2:
        return None
    median = float(np.median(values))
    if median == 0 or not math.isfinite(median):
        return None
    return MADN * float(np.median(np.abs(values - median))) / abs(median)


FEWEST_RUNS = 5  # of four against four no rank or permutation test comes below 2.9 %
# Normal quantiles of a two-sided test at 1 % and of a power of 80 %, together.
_REACH = 3.42
# The estimate from which on a comparison tells a change, where 3 % matter.
DEFAULT_GATE = 0.02


def detectable_shift(noise: float, runs: int) -> float:
    """Return the smallest relative shift of two means that a test at 1 % finds in four of five cases.

    The noise is normal and known, and no gate must be passed.
    """
    return _REACH * noise * math.sqrt(2 / runs)


def detectable_change(
    noise: float, runs: int, *, is_known: bool = False, gate: float = DEFAULT_GATE, apart_spread: float = 0.0
) -> float:
    """Return the smallest relative change that a comparison of so many runs a side tells in four of five cases.

    Read from a simulated table, in which the estimate must pass the gate too. `is_known`: the noise does not come from
    the runs of one side but from many more. `apart_spread` is the relative spread between sessions that a comparison
    counts where its sides did not take turns; no number of runs makes it smaller.
    """
    unit = math.log1p(gate)
    times = 1.0 if is_known else float(np.interp(runs, RUNS, TIMES_IF_ESTIMATED))
    within = unit * _read_table(times * noise / unit, runs)
    return math.expm1(math.hypot(within, _REACH * math.sqrt(2) * apart_spread))


def _read_table(noise: float, runs: int) -> float:
    """Return the change in units of the gate. Numbers of runs that the table lacks lie between two rows by their root;
    beyond its ends the noise counts in proportion to it."""
    nearest = min(max(runs, RUNS[0]), RUNS[-1])
    noise *= math.sqrt(nearest / runs)
    beyond = max(1.0, noise / NOISES[-1])
    found = [float(np.interp(noise, NOISES, row)) * beyond for row in CHANGES]
    roots = [-1 / math.sqrt(one) for one in RUNS]
    return float(np.interp(-1 / math.sqrt(nearest), roots, found))


def runs_needed(robust_cv: float, change: float) -> int:
    """Return how many runs on each side narrow the interval so far that a relative shift is found or ruled out."""
    return max(FEWEST_RUNS, math.ceil(2 * (_REACH * robust_cv / change) ** 2))


def noise_of(*sets: Array) -> float | None:
    """Return the relative noise between runs of sets that may lie apart; None of fewer than three positive runs each.

    Robust, by the median absolute deviation; the standard deviation where half of the runs are equal.
    """
    if any(values.size < 3 or np.any(~np.isfinite(values) | (values <= 0)) for values in sets):
        return None
    centred = [np.log(values) - np.median(np.log(values)) for values in sets]
    weights = [values.size for values in sets]
    robust = [(MADN * float(np.median(np.abs(values)))) ** 2 for values in centred]
    plain = [float(np.var(values, ddof=1)) for values in centred]
    return math.sqrt(np.average([r or p for r, p in zip(robust, plain, strict=True)], weights=weights))
