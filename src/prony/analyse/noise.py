"""Measure how noisy a machine is, and how often equal runs on it would raise a false alarm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist

import numpy as np

from prony.model.calibration import NoiseClass
from prony.model.comparison import effect_text
from prony.model.estimate import Estimate
from prony.stats.apart import spread_of_sessions
from prony.stats.dependence import lag1
from prony.stats.intervals import rate_interval
from prony.stats.quantiles import Array
from prony.stats.spread import detectable_change, robust_cv

# The share of two sets of equal runs that the rule of a comparison may call different.
NOMINAL = 0.01
SIZES = (5, 10, 20, 30)
_SPLITS = 1000
_SEED = 7
_DEPENDENT_ABOVE = 0.3
_DRIFTS_BELOW = 0.01
_RUNS_OF_A_RESULT = 5  # `measure.repeats`, where a recipe does not say
_FEWEST_SESSIONS = 4
_CLASSES: tuple[tuple[float, NoiseClass], ...] = ((0.01, "quiet"), (0.03, "normal"), (0.08, "noisy"))

# Is the second set another one than the first?
Rule = Callable[[Array, Array], bool]


def noise_class(noise: float) -> NoiseClass:
    """Return what a machine with this run-to-run noise is called."""
    return next((name for below, name in _CLASSES if noise < below), "unusable")


def noise_figures(values: Sequence[float], rule: Rule) -> dict[str, Estimate]:
    """Return what equal runs, in the order in which they were made, tell of their machine.

    `rule` is the one that comparisons go by: how often it is wrong here is tried and not computed.
    """
    runs = np.asarray(values, dtype=np.float64)
    noise = robust_cv(runs)
    if noise is None:
        return {}
    count = runs.size
    found = {
        "run_noise": _figure(noise, count, "MAD of run medians, divided by their median"),
        "run_lag1": _figure(lag1(np.log(runs)), count, "correlation of each run with the next"),
        "run_drift": _figure(drift(runs), count, "Theil-Sen slope over all runs, divided by their median"),
    }
    for size in SIZES:
        method = f"simulated comparisons of {size} interleaved runs on each side, with the noise of {count}"
        found[f"seen_with_{size}_runs"] = _figure(detectable_change(noise, size, is_known=True), count, method)
    return found | _sessions(runs) | _false_alarms(runs, rule)


def _sessions(runs: Array) -> dict[str, Estimate]:
    """Say how far sets of runs lie apart that are as large as a result of the usual size, each made at a stretch."""
    sessions = [runs[place : place + _RUNS_OF_A_RESULT] for place in range(0, runs.size, _RUNS_OF_A_RESULT)]
    whole = [one for one in sessions if one.size == _RUNS_OF_A_RESULT]
    if len(whole) < _FEWEST_SESSIONS or np.any(runs <= 0):
        return {}
    method = f"differences between medians of {_RUNS_OF_A_RESULT} runs each, beyond the spread of these runs"
    return {"session_spread": _figure(spread_of_sessions(whole), len(whole), method)}


def describe_sessions(spread: float) -> str:
    """Say by how much whole results of equal runs differ on a machine."""
    begin = "Separate results of five such runs differ by"
    if spread == 0:
        return f"{begin} no more than their runs explain."
    return f"{begin} {spread:.1%} more than their runs explain; comparisons of separate results include this."


def alpha_for(figures: Mapping[str, Estimate]) -> float:
    """Return the level at which a test here keeps the nominal share of false alarms: less than it where equal runs
    were told apart too often."""
    rate = figures.get("false_alarm_rate")
    if rate is None or rate.value <= NOMINAL:
        return NOMINAL
    return max(1e-4, NOMINAL * NOMINAL / rate.value)


def warnings(values: Sequence[float]) -> list[str]:
    """Return what speaks against taking these runs for independent ones of one level."""
    runs = np.asarray(values, dtype=np.float64)
    told = []
    rho = lag1(np.log(runs))
    if rho > _DEPENDENT_ABOVE:
        told.append(
            f"runs are correlated (lag-1 correlation {rho:.2f}): interleave what you compare, as prony duet does"
        )
    if _drift_p(runs) < _DRIFTS_BELOW:
        told.append(
            f"the machine drifted by {effect_text(drift(runs))} over these runs: measuring one thing after the other "
            "would call this a change; prony duet would not"
        )
    return told


def drift(values: Array) -> float:
    """Return how far the runs moved from the first to the last, relative to their median: robust against spikes."""
    if values.size < 3:
        return 0.0
    first, second = np.triu_indices(values.size, 1)
    slopes = (values[second] - values[first]) / (second - first)
    return float(np.median(slopes)) * (values.size - 1) / float(np.median(values))


def _drift_p(values: Array) -> float:
    """Return how often chance alone would order the runs so much by time: Kendall's test of Mann, two-sided."""
    count = values.size
    if count < 8:
        return 1.0
    rows, columns = np.triu_indices(count, 1)
    score = float(np.sum(np.sign(values[columns] - values[rows])))
    _, ties = np.unique(values, return_counts=True)
    variance = (count * (count - 1) * (2 * count + 5) - float(np.sum(ties * (ties - 1) * (2 * ties + 5)))) / 18
    if variance <= 0:
        return 1.0
    z = max(0.0, abs(score) - 1) / math.sqrt(variance)
    return 2 * (1 - NormalDist().cdf(z))


def _false_alarms(runs: Array, rule: Rule) -> dict[str, Estimate]:
    """Try the rule on sets that are drawn from the same runs, and count how often it calls them different."""
    half = runs.size // 2
    if half < min(SIZES):
        return {}
    rng = np.random.default_rng(_SEED)
    alarms = 0
    for _ in range(_SPLITS):
        mixed = rng.permutation(runs)
        alarms += rule(mixed[:half], mixed[half : 2 * half])
    interval = rate_interval(alarms, _SPLITS)
    low, high = interval if interval is not None else (None, None)
    method = f"{alarms} of {_SPLITS} splits of {runs.size} equal runs into two sets of {half}; Wilson"
    return {
        "false_alarm_rate": Estimate(
            value=alarms / _SPLITS, unit="1", low=low, high=high, confidence=0.95, count=_SPLITS, method=method
        )
    }


def _figure(value: float, count: int, method: str) -> Estimate:
    return Estimate(value=value, unit="1", count=count, method=method)
