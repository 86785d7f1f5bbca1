"""Estimate how small a change the runs of a job could show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from prony.model.estimate import Sensitivity, Spread
from prony.model.metric import HEADLINE, LOAD_HEADLINE
from prony.model.result import Repetition
from prony.stats.power import noise_of
from prony.stats.spread import Moments, best_count, detectable_change, split

_TOLD = (HEADLINE, LOAD_HEADLINE, "throughput_per_s.p50", "cold_start_ms.p50", "ttft_ms.p50")


def sensitivity_of(runs: Mapping[str, Sequence[float]], decisive: Sequence[str] = _TOLD) -> dict[str, Sensitivity]:
    """Return it of the metrics that decide a comparison; of fewer than three runs nothing can be said."""
    found = {}
    for key in decisive:
        values = runs.get(key, ())
        noise = noise_of(np.asarray(values, dtype=np.float64))
        if noise is not None:
            detectable = detectable_change(noise, len(values))
            found[key] = Sensitivity(runs=len(values), noise=noise, detectable=detectable)
    return found


def spread_of(metric: str, runs: Sequence[Moments], used: Sequence[Repetition] = ()) -> dict[str, Spread]:
    """Split the variance of a metric over samples and runs; `used` tells what a run and a sample cost."""
    parts = split(runs)
    if parts is None:
        return {}
    start_ns, sample_ns = _costs_ns(used)
    best = best_count(parts, start_cost=start_ns, sample_cost=sample_ns)
    return {metric: Spread(within_sd=parts.within_sd, between_sd=parts.between_sd, icc=parts.icc, best_count=best)}


def _costs_ns(used: Sequence[Repetition]) -> tuple[float, float]:
    """Return how long it takes from loading to the first measured sample, and for one sample; zeros where unknown."""
    known = [one.phases for one in used if {"load", "measure"} <= one.phases.keys() and one.phases["measure"].count]
    if not known:
        return 0.0, 0.0
    starts = [phases["measure"].begin_ns - phases["load"].begin_ns for phases in known]
    each = [(phases["measure"].end_ns - phases["measure"].begin_ns) / phases["measure"].count for phases in known]
    return float(median(starts)), float(median(each))
