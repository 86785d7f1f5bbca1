"""Find the order statistics that hold the median of one number a run, also where runs follow each other."""

from __future__ import annotations

from prony.stats.dependence import widen_confidence, worth_of_runs
from prony.stats.quantiles import Array, Ranks, interval_ranks, median_ranks

_CONFIDENCE = 0.95
# Stopping where the interval has become narrow enough costs up to four points of what it claims: so much more is asked.
_WHERE_STOPPED = 0.965
# Runs that happen to lie close together end the search, and look as if they did not follow each other: that they do is
# asked earlier, and with caution. A few runs more are the price.
_FEWEST_WHERE_STOPPED, _CAUTION_WHERE_STOPPED = 6, 0.3
# What holds the truth less often than it misses it is no interval.
_LEAST = 0.5


def median_interval(values: Array, *, is_stopped: bool = False) -> Ranks | None:
    """Return the ranks of the interval of the median, with the confidence that may be claimed; None where none may.

    The values are in the order in which the runs were made: where they follow each other, the interval is that of as
    many independent runs as they are worth. `is_stopped` says that runs were made until the interval was narrow.
    """
    asked = _WHERE_STOPPED if is_stopped else _CONFIDENCE
    base = median_ranks(values.size, asked)
    if base is None:
        return None
    if is_stopped:
        worth = worth_of_runs(values, fewest=_FEWEST_WHERE_STOPPED, caution=_CAUTION_WHERE_STOPPED)
    else:
        worth = worth_of_runs(values)
    claimed = base.confidence if worth == 1 and not is_stopped else min(base.confidence, _CONFIDENCE)
    if worth == 1:
        return Ranks(base.low, base.high, claimed)
    wider = interval_ranks(values.size, 0.5, widen_confidence(min(base.confidence, asked), worth))
    if wider is not None:
        return Ranks(wider.low, wider.high, claimed)
    left = widen_confidence(1 - 0.5 ** (values.size - 1), 1 / worth)
    return Ranks(1, values.size, min(left, claimed)) if left >= _LEAST else None
