"""Mark the requests that met every per-request limit of the SLO."""

from __future__ import annotations

from collections.abc import Mapping

from prony.instruments.columns import Requests
from prony.instruments.within_limit import within
from prony.stats.quantiles import Array


def request_limits(slo: Mapping[str, float]) -> dict[str, float]:
    """Return the limits that are of each request; those with a statistic are of a run."""
    return {key: limit for key, limit in slo.items() if "." not in key}


def meets(requests: Requests, slo: Mapping[str, float]) -> Array:
    """Mark the requests that succeeded and stayed within every limit."""
    good: Array = requests.successes.copy()
    for metric, limit in request_limits(slo).items():
        good &= within(requests, metric, limit)
    return good
