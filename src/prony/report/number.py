"""An Estimate in, the one way it is written out: digits that its interval supports, in a unit that suits its size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from prony.model.estimate import Estimate, Missing

# What the units of one quantity are worth in its smallest one, as people write them.
_FAMILIES: tuple[dict[str, float], ...] = (
    {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9},
    {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    {"µJ": 1.0, "mJ": 1e3, "J": 1e6, "kJ": 1e9},
    {"mW": 1.0, "W": 1e3, "kW": 1e6},
    {"B/s": 1.0, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30},
    {"/s": 1.0, "k/s": 1e3, "M/s": 1e6, "G/s": 1e9},
)
_SYMBOLS = {"us": "µs", "uJ": "µJ", "1/s": "/s", "1": ""}
# A rate below ten thousand reads better whole than in thousands; memory is compared in MiB until it is many GiB.
_LEAST = {"k/s": 10.0, "M/s": 10.0, "G/s": 10.0, "GiB": 10.0, "TiB": 10.0}
DASH = "–"


@dataclass(frozen=True)
class Scale:
    """A unit to write in, and what to multiply a number in the estimate's own unit by."""

    symbol: str
    factor: float


@dataclass(frozen=True)
class Written:
    """One number in its pieces, so that each face may dress them: `value`, `unit`, and `interval` or an empty text."""

    value: str
    unit: str
    interval: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.value, self.unit, self.interval) if part)


def text(estimate: Estimate, scale: Scale | None = None) -> str:
    """Return `12.3 ms [12.1, 12.6]`; without an interval, only the value and its unit."""
    return str(written(estimate, scale))


def written(estimate: Estimate, scale: Scale | None = None) -> Written:
    """Return the pieces of the text; `scale` is given where a whole column shares one unit."""
    scale = scale or common_scale([estimate])
    if not math.isfinite(estimate.value):
        return Written(DASH, scale.symbol, "")
    value = estimate.value * scale.factor
    ends = interval_of(estimate)
    if ends is None:
        return Written(_fixed(value, _decimals_of_value(value, 3)), scale.symbol, "")
    low, high = ends[0] * scale.factor, ends[1] * scale.factor
    decimals = _decimals(value, low, high)
    return Written(_fixed(value, decimals), scale.symbol, f"[{_fixed(low, decimals)}, {_fixed(high, decimals)}]")


def interval_of(estimate: Estimate) -> tuple[float, float] | None:
    """Return both ends, or None where there is no interval that can be vouched for."""
    if estimate.low is None or estimate.high is None:
        return None
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return None
    return estimate.low, estimate.high


def common_scale(estimates: Iterable[Estimate]) -> Scale:
    """Return the unit in which these read best side by side; all have the same unit of their own."""
    listed = list(estimates)
    unit = listed[0].unit if listed else "1"
    symbol = _SYMBOLS.get(unit, unit)
    sizes = [abs(one.value) for one in listed if one.value and math.isfinite(one.value)]
    for family in _FAMILIES:
        if symbol in family and sizes:
            # The geometric mean: 0.9 ms beside 12 ms reads better than 900 µs beside 12000 µs.
            return _scale_within(family, symbol, math.exp(sum(map(math.log, sizes)) / len(sizes)))
    return Scale(symbol, 1.0)


def _scale_within(family: dict[str, float], symbol: str, middle: float) -> Scale:
    # The tolerance is for what the logarithm rounds away: 1 ms is not 1000 µs.
    base = middle * family[symbol] * (1 + 1e-9)
    fitting = [name for name, size in family.items() if base >= size * _LEAST.get(name, 1.0)]
    chosen = fitting[-1] if fitting else next(iter(family))
    return Scale(chosen, family[symbol] / family[chosen])


def footnote(estimate: Estimate) -> str:
    """Return what stands behind the number: the method, the count and the confidence."""
    count = f"{estimate.count} {estimate.level}{'' if estimate.count == 1 else 's'}"
    if interval_of(estimate) is None:
        return f"{estimate.method}; {count}; no interval can be vouched for"
    confidence = f"{share(estimate.confidence)} interval" if estimate.confidence is not None else "interval"
    return f"{estimate.method}; {count}; {confidence}"


def missing_text(missing: Missing) -> str:
    """Return why a percentile is not there."""
    return f"n too small (needs {missing.needed})"


def ratio(value: float) -> str:
    """Return `1.9×`: a description, so two digits; never finer than that."""
    return f"{_fixed(value, _decimals_of_value(value, 2))}×"


def share(value: float) -> str:
    """Return a share as a percentage: `95 %`, `1.2 %`."""
    percent = value * 100
    return f"{_fixed(percent, 0 if percent >= 10 else _decimals_of_value(percent, 2))} %".replace(".0 %", " %")


def plain(value: float, unit: str = "1", digits: int = 3) -> str:
    """Return one observed number (a sample, a counter) in a fitting unit; it has no interval by nature."""
    scale = common_scale([Estimate(value=value, unit=unit, count=1, method="observed")])
    if not math.isfinite(value):
        return DASH
    return str(
        Written(_fixed(value * scale.factor, _decimals_of_value(value * scale.factor, digits)), scale.symbol, "")
    )


def _decimals(value: float, low: float, high: float) -> int:
    """Return how many decimals the half-width supports: its first digit is the last one written."""
    half = (high - low) / 2
    if half <= 0:
        return _decimals_of_value(value, 3)
    supported = -math.floor(math.log10(half))
    # A half-width that begins with 1 would lose up to half of itself to rounding: it is written with two digits.
    supported += half < 2 * 10.0**-supported
    # One digit of the value itself is kept where the interval is wider than the value, else it would read 0.
    least = min(_decimals_of_value(value, 1), supported + 1)
    return min(max(supported, least), _decimals_of_value(value, 4))


def _decimals_of_value(value: float, digits: int) -> int:
    if not value:
        return 0
    return digits - 1 - math.floor(math.log10(abs(value)))


def _fixed(value: float, decimals: int) -> str:
    rounded = round(value, decimals)
    return f"{rounded + 0.0:.{min(max(decimals, 0), 12)}f}"
