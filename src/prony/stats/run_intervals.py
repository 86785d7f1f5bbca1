"""Find the order statistics that hold the median of one number a run, also where runs follow each other."""

from __future__ import annotations

from prony.stats.dependence import widen_confidence, worth_of_runs
from prony.stats.quantiles import Array, Ranks, interval_ranks

_CONFIDENCE = 0.95
# Stopping where the interval has become narrow enough costs up to four points of what it claims: so much more is asked.
_WHERE_STOPPED = 0.965
# Runs that happen to lie close together end the search, and look as if they did not follow each other: that they do is
# asked with caution. One or two runs more are the price.
_CAUTION_WHERE_STOPPED = 0.7
# Of fewer than ten runs nobody can tell whether they follow each other. From the smallest to the largest they hold the
# median so often where each correlates by 0.6 with the one before; if they are independent, by `independent_share`.
_HELD_BY_FEW = {2: 0.29, 3: 0.48, 4: 0.62, 5: 0.72, 6: 0.79, 7: 0.84, 8: 0.88, 9: 0.91}
# What holds the truth less often than it misses it is no interval.
_LEAST = 0.5


def median_interval(values: Array, *, is_stopped: bool = False) -> Ranks | None:
    """Return the ranks of the interval of the median, with the confidence that may be claimed; None where none may.

    The values are in the order in which the runs were made: where they follow each other, the interval is that of as
    many independent runs as they are worth. `is_stopped` says that runs were made until the interval was narrow.
    """
    if is_few(values.size):
        return Ranks(1, values.size, _HELD_BY_FEW[values.size])
    asked = _WHERE_STOPPED if is_stopped else _CONFIDENCE
    base = interval_ranks(values.size, 0.5, asked)
    if base is None:
        return None
    worth = worth_of_runs(values, caution=_CAUTION_WHERE_STOPPED if is_stopped else 0.0)
    claimed = base.confidence if worth == 1 and not is_stopped else min(base.confidence, _CONFIDENCE)
    if worth == 1:
        return Ranks(base.low, base.high, claimed)
    wider = interval_ranks(values.size, 0.5, widen_confidence(min(base.confidence, asked), worth))
    if wider is not None:
        return Ranks(wider.low, wider.high, claimed)
    left = widen_confidence(independent_share(values.size), 1 / worth)
    return Ranks(1, values.size, min(left, claimed)) if left >= _LEAST else None


def is_few(count: int) -> bool:
    """Say whether so many runs have an interval, and are too few to tell whether they follow each other."""
    return count in _HELD_BY_FEW


def independent_share(count: int) -> float:
    """Return how often the median lies between the smallest and the largest of so many independent runs."""
    return 1 - 0.5 ** (count - 1)
