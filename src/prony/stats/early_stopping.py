"""MLPerf's early-stopping rule for percentiles.

A test has shown that a share `percentile` of all queries stays within a limit when, if the true share were any less,
so few over the limit would be seen with a probability of at most 1 - confidence.
"""

from __future__ import annotations

from functools import lru_cache

from prony.stats.beta import binomial_cdf

CONFIDENCE = 0.99


@lru_cache(maxsize=1024)
def queries_needed(over: int, percentile: float, confidence: float = CONFIDENCE) -> int:
    """Return the fewest queries that pass with `over` of them over the limit."""
    high = over + 1
    while not passes(high, over, percentile, confidence):
        high *= 2
    low = over  # never enough: not one was within the limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle, over, percentile, confidence) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def over_allowed(queries: int, percentile: float, confidence: float = CONFIDENCE) -> int | None:
    """Return how many of so many queries may be over the limit; None where even none would be too few queries."""
    if queries < 1 or not passes(queries, 0, percentile, confidence):
        return None
    low, high = 0, queries
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(queries, middle, percentile, confidence) else (low, middle)
    return low


def passes(queries: int, over: int, percentile: float, confidence: float = CONFIDENCE) -> bool:
    """Say whether so many queries, `over` of them over the limit, show that the percentile holds."""
    return over < queries and binomial_cdf(over, queries, 1 - percentile) <= 1 - confidence
