"""Label and count outlying samples and runs; drop none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prony.analyse.runs import NS_PER_MS, MeasuredRun
from prony.model.estimate import Outlier
from prony.stats.outliers import fences, label_outliers
from prony.stats.quantiles import Array, quantile

LISTED = 50
_Ranked = tuple[float, Outlier]  # how far from the median, on the logarithm


def outliers(runs: Sequence[MeasuredRun], metric: str = "inference_ms") -> tuple[tuple[Outlier, ...], int]:
    """Return the most extreme outliers, at most 50, and how many there are in all."""
    found = _outlying_runs(runs, metric)
    total = len(found)
    for run in runs:
        samples, count = _outlying_samples(run, metric)
        found += samples
        total += count
    # The order is total, so the same folder always gives the same list.
    found.sort(
        key=lambda ranked: (-ranked[0], ranked[1].repetition, -1 if ranked[1].index is None else ranked[1].index)
    )
    return tuple(outlier for _, outlier in found[:LISTED]), total


def _outlying_runs(runs: Sequence[MeasuredRun], metric: str) -> list[_Ranked]:
    if len(runs) < 2:  # nothing to stand apart from
        return []
    values = np.array([run.statistic("p50") for run in runs], dtype=np.float64)
    marks = label_outliers(values)
    distances = _distances(values, float(np.median(values)) if values.size else 1.0)
    return [
        (
            float(distances[i]),
            _outlier(run.repetition, None, f"{metric}.p50", float(values[i]), severe=bool(marks[i] == 2)),
        )
        for i, run in enumerate(runs)
        if marks[i]
    ]


def _outlying_samples(run: MeasuredRun, metric: str) -> tuple[list[_Ranked], int]:
    """Return the farthest samples of one run, at most 50, and how many carry a label."""
    limits = fences(run.ordered_ns)
    low, high = limits.nearest
    if low <= run.ordered_ns[0] and run.ordered_ns[-1] <= high:
        return [], 0
    positions = np.flatnonzero((run.durations_ns < low) | (run.durations_ns > high))
    distances = _distances(run.durations_ns[positions], quantile(run.ordered_ns, 0.5))
    found: list[_Ranked] = []
    for i in np.argsort(-distances, kind="stable")[:LISTED]:
        value = float(run.durations_ns[positions[i]])
        severe = not limits.severe[0] <= value <= limits.severe[1]
        index = int(run.indices[positions[i]])
        outlier = _outlier(run.repetition, index, metric, value / NS_PER_MS, severe=severe)
        found.append((float(distances[i]), outlier))
    return found, int(positions.size)


def _distances(values: Array, centre: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.abs(np.log(values / centre)), nan=np.inf)


def _outlier(repetition: int, index: int | None, metric: str, value_ms: float, *, severe: bool) -> Outlier:
    label = "severe" if severe else "suspicious"
    return Outlier.model_validate(
        {"repetition": repetition, "index": index, "metric": metric, "value": value_ms, "label": label}
    )
