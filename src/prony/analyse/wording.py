"""Format numbers for sentences: four digits, and no powers of ten where people write none."""

from __future__ import annotations

import math
from collections.abc import Callable

from prony.model.estimate import Estimate

_MOST_PLAIN, _LEAST_PLAIN = 1e9, 1e-3


def plain_number(value: float) -> str:
    """Return `12,345`, `12.35` or `0.01235`."""
    size = abs(value)
    if 1000 <= size < _MOST_PLAIN:
        return f"{value:,.0f}"
    return f"{value:.4g}" if not size or size >= _LEAST_PLAIN else f"{value:.3g}"


def plain_quantity(value: float, unit: str, *, bare: bool = False) -> str:
    """Return `12.35 ms`, `5,400 /s` or, of a share, `1.2 %`; `bare`: without the unit, as an end of an interval."""
    if unit == "1":
        return f"{value * 100:.4g} %"
    return plain_number(value) if bare else f"{plain_number(value)} {unit.replace('1/s', '/s')}".rstrip()


def ends(one: Estimate) -> str:
    """Return ` [12.1, 12.6]` with a space before it, rounded outwards; empty without an interval, or for a constant."""
    return "" if one.low is None or one.high is None or one.low == one.high else f" {format_ends(one.low, one.high)}"


def format_ends(low: float, high: float) -> str:
    """Return `[12.1, 12.6]`, rounded outwards."""
    return f"[{plain_number(_round_away(low, math.floor))}, {plain_number(_round_away(high, math.ceil))}]"


def no_interval_reason(one: Estimate) -> str:
    """Return why it has no interval, as its method tells; of a single run there is none."""
    _, marked, why = one.method.partition("no interval: ")
    if marked:
        return why
    return "one run does not show the spread between runs" if is_of_one_run(one) else one.method


def is_of_one_run(one: Estimate) -> bool:
    """Is it a number of one run alone? Its count is that of the samples then."""
    return one.count == 1 or one.level == "sample"


def _round_away(end: float, away: Callable[[float], int]) -> float:
    """Round to the digits that `plain_number` writes, to one side."""
    size = abs(end)
    if not size or not math.isfinite(end):
        return end
    digits = 4 if size >= _LEAST_PLAIN else 3
    decimals = 0 if 1000 <= size < _MOST_PLAIN else digits - 1 - math.floor(math.log10(size))
    steps = end * 10.0**decimals
    nearest = round(steps)
    whole = nearest if math.isclose(steps, nearest, rel_tol=1e-9) else away(steps)
    return whole / 10.0**decimals
