"""Draw the instants at which requests are due, from rates and a seed.

Gaps are drawn as if one request a unit were due, and the units are then mapped through the inverse of the integrated
rate. That is exact for a rate that changes, in a ramp as well as in a step. Draws are taken one after another from one
generator, so a shorter load is the beginning of a longer one with the same seed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prony.errors import InputError
from prony.ports.driver import Stamps

Units = np.ndarray[Any, np.dtype[np.float64]]
MOST_REQUESTS = 50_000_000
_CHUNK = 65_536
_YEAR_NS = 31_557_600 * 10**9
_LATEST_NS = 2**62  # 146 years: what a schedule is added to must still fit


@dataclass(frozen=True)
class Gaps:
    """How the gaps between requests are spread: `constant`, `poisson`, or `gamma` with its shape."""

    arrivals: str
    burstiness: float = 1.0


@dataclass(frozen=True)
class RateSegment:
    """A time in which the rate goes in a straight line from one value to another."""

    lasting_s: float
    begin_per_s: float
    end_per_s: float
    gaps: Gaps

    @property
    def mean_requests(self) -> float:
        """How many requests come in it on average."""
        return self.lasting_s * (self.begin_per_s + self.end_per_s) / 2


def count_arrivals(gaps: Gaps, rate: float, count: int, *, seed: int) -> Stamps:
    """Return when so many requests at one rate are due."""
    refuse_too_many(count)
    return in_ns(_units(gaps, until=math.inf, most=count, draws=_generator(seed, 0)) * 1e9 / rate)


def time_arrivals(stretches: Sequence[RateSegment], *, seed: int, most: int | None = None) -> Stamps:
    """Return when requests are due in stretches that follow each other; at most `most` of them."""
    ceiling = MOST_REQUESTS + 1 if most is None else min(most, MOST_REQUESTS + 1)
    refuse_too_many(min(sum(stretch.mean_requests for stretch in stretches), math.inf if most is None else most))
    dues: list[Stamps] = []
    begin_s = 0.0
    for part, (gaps, run) in enumerate(itertools.groupby(stretches, key=lambda stretch: stretch.gaps)):
        together = list(run)
        expected = sum(stretch.mean_requests for stretch in together)
        left = ceiling - sum(map(len, dues))
        units = _units(gaps, until=expected, most=left, draws=_generator(seed, part))
        for stretch in together:
            inside = units[: np.searchsorted(units, stretch.mean_requests)]
            dues.append(_within(stretch, inside, begin_s))
            units = units[inside.size :] - stretch.mean_requests
            begin_s += stretch.lasting_s
    found = np.concatenate(dues) if dues else np.empty(0, np.int64)
    refuse_too_many(found.size)
    return found


def refuse_too_many(count: float) -> None:
    """Refuse a load of more requests than memory should hold."""
    if count > MOST_REQUESTS:
        told = f"the load is of {count:,.0f} requests, and at most {MOST_REQUESTS:,} can be planned"
        raise InputError(told, hint="shorten it, or lower its rate")


def in_ns(dues: Units) -> Stamps:
    """Return ascending instants in whole ns; one that is too far off to be counted is refused."""
    if dues.size and not dues[-1] < _LATEST_NS:
        told = f"the last of {dues.size:,} requests is due in {dues[-1] / _YEAR_NS:,.0f} years"
        raise InputError(told, hint="raise the rate, or ask for fewer")
    return np.rint(dues).astype(np.int64)


def _generator(seed: int, part: int) -> np.random.Generator:
    """Return the generator of one part: none depends on how much another has drawn."""
    bits = np.random.PCG64(seed)
    return np.random.Generator(bits.jumped(part) if part else bits)


def _units(gaps: Gaps, *, until: float, most: int, draws: np.random.Generator) -> Units:
    """Return instants below `until` at which one request a unit is due, at most `most` of them."""
    if gaps.arrivals == "constant":
        # A rate times a time may land a hair above the whole number that it means.
        count = most if math.isinf(until) else min(most, math.ceil(round(until, 9)))
        return np.arange(count, dtype=np.float64)
    pieces: list[Units] = []
    at, count = 0.0, 0
    while count < most and at < until:
        size = min(_CHUNK, most - count)
        pieces.append(at + np.cumsum(_drawn(gaps, size, draws)))
        at, count = float(pieces[-1][-1]), count + size
    units = np.concatenate(pieces) if pieces else np.empty(0)
    return units[: np.searchsorted(units, until)]


def _drawn(gaps: Gaps, size: int, draws: np.random.Generator) -> Units:
    """Return gaps of mean one."""
    if gaps.arrivals == "poisson":
        return draws.standard_exponential(size)
    return draws.standard_gamma(gaps.burstiness, size) / gaps.burstiness


def _within(stretch: RateSegment, units: Units, begin_s: float) -> Stamps:
    """Return when the rate of a stretch, summed from its beginning, has reached each unit."""
    slope = (stretch.end_per_s - stretch.begin_per_s) / stretch.lasting_s
    # The root is that of a quadratic, written so that neither a level rate nor one from nothing divides by nothing.
    root = np.sqrt(np.maximum(stretch.begin_per_s**2 + 2 * slope * units, 0.0))
    below = stretch.begin_per_s + root
    after_s = np.divide(2 * units, below, out=np.zeros_like(units), where=below > 0)
    return np.rint((begin_s + np.minimum(after_s, stretch.lasting_s)) * 1e9).astype(np.int64)
