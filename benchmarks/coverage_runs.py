"""Simulate runs of samples whose true percentiles are known, and count how often the summary's intervals hold them.

The intervals come from the functions that summarise a job (`percentile_estimate`, `across_runs`, `tight_enough`). The
truth is that of a run in the middle: runs lie apart by a factor whose median is 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import NormalDist

import numpy as np

from prony.analyse.estimates import across_runs, percentile_estimate
from prony.analyse.percentiles import PercentileOfRuns, RunPercentile, RunSamples
from prony.analyse.runs import PERCENTILES
from prony.model.estimate import Estimate
from prony.stats.dependence import Exceedances
from prony.stats.quantiles import Array, least_count
from prony.stats.stopping import tight_enough

Generator = np.random.Generator
_NORMAL = NormalDist()
_MS = 1e6
_LEVEL_NS = 10 * _MS
_POOL_SAMPLES, _POOL_RUNS = 1_000_000, 4000


@dataclass(frozen=True)
class Noise:
    """How samples of one run lie about its level, and what share of them lies below a factor."""

    name: str
    draw: Callable[[Generator, int, int], Array]
    share_below: Callable[[float], float]

    def truth(self, q: float) -> float:
        low, high = 1e-3, 1e3
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.share_below(middle) < q else (low, middle)
        return math.sqrt(low * high)


def _skewed(sigma: float) -> Noise:
    return Noise(
        f"skewed (lognormal {sigma:g})",
        lambda rng, runs, count: np.exp(sigma * rng.standard_normal((runs, count))),
        lambda factor: _NORMAL.cdf(math.log(factor) / sigma),
    )


def _two_modes(share: float, factor: float) -> Noise:
    def draw(rng: Generator, runs: int, count: int) -> Array:
        slow = np.where(rng.random((runs, count)) < share, factor, 1.0)
        return np.exp(0.02 * rng.standard_normal((runs, count))) * slow

    def below(at: float) -> float:
        fast, slow = (_NORMAL.cdf(math.log(one) / 0.02) for one in (at, at / factor))
        return (1 - share) * fast + share * slow

    return Noise(f"two modes ({share:.1%} at {factor:g})", draw, below)


def _following(rho: float) -> Noise:
    """Samples that follow each other, skewed as the first family is."""

    def draw(rng: Generator, runs: int, count: int) -> Array:
        noise = rng.standard_normal((count, runs)) * math.sqrt(1 - rho * rho)
        noise[0] /= math.sqrt(1 - rho * rho)
        for at in range(1, count):
            noise[at] += rho * noise[at - 1]
        return np.exp(0.5 * noise.T)

    return Noise(f"following (AR {rho:g})", draw, lambda factor: _NORMAL.cdf(math.log(factor) / 0.5))


NOISES = (
    _skewed(0.5), _skewed(1.0), _two_modes(0.3, 1.3), _two_modes(0.45, 2.0), _two_modes(0.105, 2.0),
    _two_modes(0.011, 5.0), _following(0.6), _following(0.9),
)  # fmt: skip
# Samples in a run, runs, and the standard deviation of the logarithm of a run's level.
SetsOfRuns = tuple[int, int, float]
SETS: tuple[SetsOfRuns, ...] = (
    (40, 3, 0.03), (40, 10, 0.2), (40, 50, 0.03), (72, 5, 0.03), (72, 30, 0.03), (100, 5, 0.2), (100, 50, 0.2),
    (368, 3, 0.2), (368, 5, 0.03), (368, 10, 0.03), (368, 30, 0.03), (368, 50, 0.2), (1000, 5, 0.03), (1000, 30, 0.2),
    (3700, 5, 0.03), (3700, 10, 0.2), (3700, 50, 0.03), (10_000, 3, 0.03), (10_000, 5, 0.2), (10_000, 10, 0.03),
)  # fmt: skip


@dataclass
class Tally:
    """What was seen of one kind of interval: how many sets had one, what they claimed, held and were wide."""

    sets: int = 0
    claimed: list[float] = field(default_factory=list)
    held: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, estimate: Estimate, truth: float) -> None:
        self.sets += 1
        if estimate.low is None or estimate.high is None or estimate.confidence is None:
            self.reasons[estimate.method.partition("no interval: ")[2].partition(",")[0]] += 1
            return
        self.claimed.append(estimate.confidence)
        self.held.append(estimate.low <= truth <= estimate.high)
        self.widths.append((estimate.high - estimate.low) / 2 / truth)

    @property
    def printed(self) -> float:
        return len(self.held) / self.sets

    @property
    def off_by(self) -> float:
        return float(np.mean(self.held) - np.mean(self.claimed)) if self.held else 0.0


@dataclass(frozen=True)
class Row:
    noise: str
    samples: int
    runs: int
    spread: float
    statistic: str
    tally: Tally


def make_runs(noise: Noise, count: int, size: int, rng: Generator) -> list[Array]:
    """Return so many runs at the same level, in nanoseconds."""
    return list(noise.draw(rng, count, size) * _LEVEL_NS)


@dataclass(frozen=True)
class ScaledPercentile(RunPercentile):
    """The percentile of a run of the pool, at another level: all that does not depend on the level is made once."""

    origin: RunPercentile
    level: float

    def shifted_number(self, shift: float) -> float:
        return self.level * (self.origin.shifted_number(shift) if shift else self.origin.number)

    @property
    def exceedances(self) -> Exceedances:
        return self.origin.exceedances

    @property
    def halves(self) -> Exceedances:
        return self.origin.halves

    @property
    def is_between_groups(self) -> bool:
        return self.origin.is_between_groups


@dataclass(frozen=True)
class PooledPercentile(PercentileOfRuns):
    """The percentile of runs out of the pool."""

    parts: Sequence[RunPercentile] = ()


def cover(noise: Noise, size: int, *, runs: int, spread: float, sets: int, seed: int) -> Iterator[Row]:
    """Draw sets of runs out of a pool, put each run at a level of its own, and estimate as a summary does."""
    rng = np.random.default_rng((seed, size, runs, round(spread * 1000)))
    pool = [read_samples(values) for values in make_runs(noise, pool_size(runs, size, sets), size, rng)]
    names = [name for name, q in PERCENTILES.items() if q == 0.5 or size >= least_count(q)]
    known = {name: [RunPercentile(run, PERCENTILES[name]) for run in pool] for name in names}
    rows = {name: Row(noise.name, size, runs, spread, name, Tally()) for name in names}
    truths = {name: 10 * noise.truth(PERCENTILES[name]) for name in names}
    for _ in range(sets):
        chosen = rng.choice(len(pool), runs, replace=False)
        levels = np.exp(spread * rng.standard_normal(runs))
        samples = [pool[at] for at in chosen]
        for name, parts in known.items():
            scaled = [
                ScaledPercentile(one.samples, one.q, one, float(level))
                for one, level in zip((parts[at] for at in chosen), levels, strict=True)
            ]
            estimate, _ = percentile_estimate(PooledPercentile(name, samples, scaled), "ms", _MS)
            rows[name].tally.add(estimate, truths[name])
    yield from rows.values()


def pool_size(runs: int, size: int, sets: int) -> int:
    """Return how many runs are made: several times those of a set, so that the pool's own median is near the truth."""
    return max(8 * runs, min(runs * sets, _POOL_SAMPLES // size, _POOL_RUNS))


def read_samples(values_ns: Array) -> RunSamples:
    whole = np.rint(values_ns).astype(np.int64)
    return RunSamples(whole, np.sort(whole))


# Runs by themselves: one number each, its median 1.
RunNoise = Callable[[Generator, int], Array]


def _run_modes(rng: Generator, count: int) -> Array:
    return np.exp(0.01 * rng.standard_normal(count)) * np.where(rng.random(count) < 0.3, 1.06, 1.0)


def following_runs(rho: float, sd: float = 0.02) -> RunNoise:
    def draw(rng: Generator, count: int) -> Array:
        noise = rng.standard_normal(count) * math.sqrt(1 - rho * rho)
        noise[0] = rng.standard_normal()
        for at in range(1, count):
            noise[at] += rho * noise[at - 1]
        return np.exp(sd * noise)

    return draw


@cache
def _modes_median() -> float:
    return float(np.median(_run_modes(np.random.default_rng(0), 4_000_000)))


RUN_NOISES: dict[str, RunNoise] = {
    "runs of 2 % noise": lambda rng, count: np.exp(0.02 * rng.standard_normal(count)),
    "runs of 5 % noise": lambda rng, count: np.exp(0.05 * rng.standard_normal(count)),
    "skewed runs": lambda rng, count: np.exp(rng.exponential(0.05, count) - 0.05 * math.log(2)),
    "runs of two modes": lambda rng, count: _run_modes(rng, count) / _modes_median(),
    "following runs (AR 0.3)": following_runs(0.3),
    "following runs (AR 0.6)": following_runs(0.6),
}


def cover_following(rho: float, runs: int, *, sets: int, seed: int) -> Tally:
    """Return how often the median of runs that follow each other is held."""
    tally, draw = Tally(), following_runs(rho)
    for number in range(sets):
        tally.add(across_runs(draw(np.random.default_rng((seed, number)), runs), "ms", "runs"), 1.0)
    return tally


def cover_stopping(draw: RunNoise, ci: float, *, most: int, sets: int, seed: int) -> tuple[Tally, float]:
    """Make runs as `until` does, and return how often the interval then printed holds, and the mean number of runs."""
    tally, made = Tally(), 0
    for number in range(sets):
        values = draw(np.random.default_rng((seed, number)), most)
        count = stop_at(values, ci)
        tally.add(across_runs(values[:count], "ms", "runs", is_stopped=True), 1.0)
        made += count
    return tally, made / sets


def stop_at(values: Sequence[float] | Array, ci: float) -> int:
    """Return after how many runs the job stops: `max_repeats` of them at most."""
    counts = range(6, len(values))
    return next((count for count in counts if tight_enough(list(values[:count]), ci)), len(values))
