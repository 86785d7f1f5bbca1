"""Turn figures reported by another program into estimates without intervals."""

from __future__ import annotations

from prony.analyse.estimate_set import EstimateSet
from prony.model.estimate import Estimate
from prony.model.metric import metric_of
from prony.model.result import Reported


def reported_figures(reported: Reported | None) -> EstimateSet:
    """Return the figures as they were told; nothing here can compute an interval for them."""
    if reported is None:
        return EstimateSet()
    estimates = {
        key: Estimate(
            value=value,
            unit=metric_of(key).unit,
            count=reported.count,
            level="sample",
            method=f"as reported by {reported.by}",
        )
        for key, value in reported.figures.items()
    }
    return EstimateSet(estimates)
