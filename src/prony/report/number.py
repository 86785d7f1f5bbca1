"""Format an estimate with the digits that its interval supports, in a fitting unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prony.model.estimate import Estimate, Missing

# What the units of one quantity are worth in its smallest one, as people write them.
_FAMILIES: tuple[dict[str, float], ...] = (
    {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9},
    {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
    {"µJ": 1.0, "mJ": 1e3, "J": 1e6, "kJ": 1e9},
    {"mW": 1.0, "W": 1e3, "kW": 1e6},
    {"%": 1.0},  # of one core: a hundred cores are 10,000 %, and no prefix reads well before the sign
    {"B/s": 1.0, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30},
)
# Every other unit (counts, rates, money, what one gets for it) has these before it.
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SYMBOLS = {"us": "µs", "uJ": "µJ", "1": ""}
# Below ten thousand a number reads better whole than in thousands; memory is compared in MiB until it is many GiB.
_LEAST_PREFIXED = 10.0
_LEAST = {"GiB": 10.0, "TiB": 10.0}
# What no prefix brings between these is written with a power of ten.
_SMALLEST, _LARGEST = 1e-6, 1e7
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# A narrow space that breaks no line: a comma between digits would look like the one between the ends of an interval.
_GROUPS = "\u202f"
_GROUPED_FROM = 10_000
DASH = "–"
# An interval narrower than these digits of the value is written with no more of them.
_MOST_DIGITS = 6

# A unit, its worth in the smallest of its family, and from how many of it on a number is written in it.
_Step = tuple[str, float, float]


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


def format_number(estimate: Estimate, scale: Scale | None = None) -> str:
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
        return Written(_format_fixed(value, _decimals_of_value(value, 3)), scale.symbol, "")
    low, high = ends[0] * scale.factor, ends[1] * scale.factor
    if low == high:  # it never varied: an interval would say the same number twice more
        return Written(_format_fixed(value, _decimals_of_constant(value)), scale.symbol, "")
    decimals = _decimals(value, low, high)
    interval = f"[{_format_end(low, decimals, math.floor)}, {_format_end(high, decimals, math.ceil)}]"
    return Written(_format_end(value, decimals, round), scale.symbol, interval)


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
    symbol = _symbol_of(listed[0].unit if listed else "1")
    sizes = [abs(one.value) for one in listed if one.value and math.isfinite(one.value)]
    if not sizes:
        return Scale(symbol, 1.0)
    # The geometric mean: 0.9 ms beside 12 ms reads better than 900 µs beside 12000 µs.
    middle = math.exp(sum(map(math.log, sizes)) / len(sizes))
    known = next((family for family in _FAMILIES if symbol in family), None)
    steps = (
        _prefix_steps(symbol)
        if known is None
        else [(name, size, _LEAST.get(name, 1.0)) for name, size in known.items()]
    )
    return _add_power(_fitting(steps, symbol, middle), middle)


def _symbol_of(unit: str) -> str:
    return _SYMBOLS.get(unit, unit.removeprefix("1") if unit.startswith("1/") else unit)


def _prefix_steps(symbol: str) -> list[_Step]:
    gap = "" if symbol.startswith("/") else " "
    return [
        (f"{prefix}{gap}{symbol}".strip(), size, _LEAST_PREFIXED if prefix else 0.0)
        for prefix, size in _PREFIXES.items()
    ]


def _fitting(steps: list[_Step], symbol: str, middle: float) -> Scale:
    own = next(size for name, size, _ in steps if name == symbol)
    # The tolerance is for what the logarithm rounds away: 1 ms is not 1000 µs.
    base = middle * own * (1 + 1e-9)
    chosen, size, _ = next((step for step in reversed(steps) if base >= step[1] * step[2]), steps[0])
    return Scale(chosen, own / size)


def _add_power(scale: Scale, middle: float) -> Scale:
    shown = middle * scale.factor * (1 + 1e-9)
    if _SMALLEST <= shown < _LARGEST:
        return scale
    power = 3 * math.floor(math.log10(shown) / 3)
    return Scale(f"×10{str(power).translate(_RAISED)} {scale.symbol}".strip(), scale.factor * 10.0**-power)


def footnote(estimate: Estimate) -> str:
    """Return what stands behind the number: the method, the count and the confidence."""
    count = f"{estimate.count} {estimate.level}{'' if estimate.count == 1 else 's'}"
    ends = interval_of(estimate)
    if ends is None:
        return f"{estimate.method}; {count}; no reliable interval"
    confidence = f"{format_share(estimate.confidence)} interval" if estimate.confidence is not None else "interval"
    return f"{estimate.method}; {count}; {confidence}{' of no width' if ends[0] == ends[1] else ''}"


def missing_text(missing: Missing) -> str:
    """Return why a percentile is not there."""
    return f"n too small (needs {missing.needed})"


def format_times(value: float, low: float | None, high: float | None) -> str:
    """Return `2.41 [2.31, 2.5] times`, the ends rounded outwards; without ends, the number alone."""
    ends = "" if low is None or high is None else f" [{_short_end(low, math.floor)}, {_short_end(high, math.ceil)}]"
    return f"{value:.3g}{ends} times"


def _short_end(end: float, away: Callable[[float], int]) -> str:
    return f"{_round_away(end, _decimals_of_value(end, 3), away):.3g}"


def format_ratio(value: float, digits: int = 2) -> str:
    """Return `1.9×`: a description, so two digits unless its ends need one more to differ."""
    return f"{_format_fixed(value, _decimals_of_value(value, digits))}×"


def format_ratio_with_ends(value: float, low: float, high: float) -> tuple[str, str]:
    """Return a ratio and its ends, `1.9×` and `1.8× to 2.0×`, with a third digit where two would make the ends one.

    The ends are rounded outwards.
    """
    digits = 2 if format_ratio(low) != format_ratio(high) else 3
    first, last = (
        _format_end(end, _decimals_of_value(end, digits), away) for end, away in ((low, math.floor), (high, math.ceil))
    )
    return format_ratio(value, digits), f"{first}× to {last}×"


def format_share(value: float) -> str:
    """Return a share as a percentage: `95 %`, `1.2 %`."""
    percent = value * 100
    return f"{_format_fixed(percent, 0 if percent >= 10 else _decimals_of_value(percent, 2))} %".replace(".0 %", " %")


def format_share_interval(estimate: Estimate) -> str:
    """Return `[0 %, 1.7 %]`; empty where there is no interval, or one of no width."""
    ends = interval_of(estimate)
    return "" if ends is None or ends[0] == ends[1] else f"[{', '.join(format_share_ends(*ends))}]"


def format_share_ends(low: float, high: float) -> tuple[str, str]:
    """Return both ends of a share's interval as percentages, rounded outwards and each by its own digits."""
    return _format_share_end(low, math.floor), _format_share_end(high, math.ceil)


def _format_share_end(end: float, away: Callable[[float], int]) -> str:
    percent = end * 100
    decimals = 0 if abs(percent) >= 10 else _decimals_of_value(percent, 2)
    return f"{_format_end(percent, decimals, away)} %".replace(".0 %", " %")


def format_observed(value: float, unit: str = "1", digits: int = 3) -> str:
    """Return one observed number (a sample, a counter) in a fitting unit; it has no interval by nature."""
    scale = common_scale([Estimate(value=value, unit=unit, count=1, method="observed")])
    if not math.isfinite(value):
        return DASH
    return str(
        Written(_format_fixed(value * scale.factor, _decimals_of_value(value * scale.factor, digits)), scale.symbol, "")
    )


def _decimals(value: float, low: float, high: float) -> int:
    """Return how many decimals are written: two significant digits of the interval's width decide.

    Where an end is smaller than the width it gets one digit more, if that writes two of its own.
    """
    width = high - low
    decimals = _decimals_of_value(width, 2)
    smallest = min((abs(end) for end in (value, low, high) if end), default=width)
    return min(
        max(decimals, min(_decimals_of_value(smallest, 2), decimals + 1)),
        _decimals_of_value(max(map(abs, (value, low, high))), _MOST_DIGITS),
    )


def _decimals_of_constant(value: float) -> int:
    """Return how many decimals write a constant whole, where six digits do; else those of four digits."""
    least, enough, most = (_decimals_of_value(value, digits) for digits in (3, 4, _MOST_DIGITS))
    fitting = range(least, most + 1)
    return next((one for one in fitting if math.isclose(round(value, one), value, rel_tol=1e-9)), enough)


def _format_end(end: float, decimals: int, away: Callable[[float], int]) -> str:
    """Write a number rounded to one side: the ends of an interval outwards, so that it holds what was measured.

    One that is not 0 is never written as 0: it then has digits of its own.
    """
    rounded = _round_away(end, decimals, away)
    if end and not rounded:
        decimals = _decimals_of_value(end, 2)
        rounded = _round_away(end, decimals, away)
    return _format_fixed(rounded, decimals)


def _round_away(end: float, decimals: int, away: Callable[[float], int]) -> float:
    steps = end * 10.0**decimals
    # What the arithmetic leaves beside a whole number is that number.
    nearest = round(steps)
    whole = nearest if math.isclose(steps, nearest, rel_tol=1e-9, abs_tol=1e-9) else away(steps)
    return whole / 10.0**decimals


def _decimals_of_value(value: float, digits: int) -> int:
    if not value:
        return 0
    return digits - 1 - math.floor(math.log10(abs(value)))


def _format_fixed(value: float, decimals: int) -> str:
    rounded = round(value, decimals) + 0.0
    places = min(max(decimals, 0), 12)
    # Digits stand in threes from five on: four are read at a glance.
    if abs(rounded) < _GROUPED_FROM:
        return f"{rounded:.{places}f}"
    return f"{rounded:,.{places}f}".replace(",", _GROUPS)
