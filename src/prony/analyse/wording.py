"""Format numbers for sentences: four digits, and no powers of ten where people write none."""

from __future__ import annotations

from prony.model.estimate import Estimate

_MOST_PLAIN, _LEAST_PLAIN = 1e9, 1e-3


def plain_number(value: float) -> str:
    """Return `12,345`, `12.35` or `0.01235`."""
    size = abs(value)
    if 1000 <= size < _MOST_PLAIN:
        return f"{value:,.0f}"
    return f"{value:.4g}" if not size or size >= _LEAST_PLAIN else f"{value:.3g}"


def ends(one: Estimate) -> str:
    """Return ` [12.1, 12.6]` with a space before it; empty where there is no interval."""
    return "" if one.low is None or one.high is None else f" [{plain_number(one.low)}, {plain_number(one.high)}]"
