"""Build one measured run per repetition from samples, starting at the steady state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from prony.instruments.samples import SAMPLE_PHASES
from prony.model.result import Repetition
from prony.stats.quantiles import Array, least_count, median_unbiased
from prony.stats.spread import Moments
from prony.stats.steady import FEWEST, steady_from

if TYPE_CHECKING:
    import polars as pl

NS_PER_MS = 1e6
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True)
class MeasuredRun:
    """The samples of one repetition that count: from the steady state on, or all where there is none.

    `steady_from` is the index of the first steady sample, in the numbering of samples.parquet.
    """

    repetition: int
    steady_from: int | None
    indices: Array
    durations_ns: Array
    window_ns: int
    taken: int

    @classmethod
    def of_whole(cls, repetition: Repetition) -> Self:
        """Take a repetition for a run of one sample: for the rules that ask how long it lasted."""
        phase = repetition.phases["measure"]
        length_ns = phase.end_ns - phase.begin_ns
        return cls(repetition.index, 0, np.array([0]), np.array([length_ns]), length_ns, taken=1)

    @property
    def count(self) -> int:
        return int(self.durations_ns.size)

    @property
    def is_judged(self) -> bool:
        """Were there enough samples to look for a steady state at all?"""
        return self.taken >= FEWEST

    @cached_property
    def ordered_ns(self) -> Array:
        longest_ns, shortest_ns = int(self.durations_ns.max()), int(self.durations_ns.min())
        # Half as many bytes sort twice as fast, and hardly anything takes the four seconds that these can hold.
        narrow = shortest_ns >= 0 and longest_ns < 2**32
        return np.sort(self.durations_ns.astype(np.uint32) if narrow else self.durations_ns)

    @cached_property
    def moments(self) -> Moments:
        """Mean and variance in milliseconds."""
        mean = float(np.mean(self.durations_ns)) / NS_PER_MS
        variance = float(np.var(self.durations_ns, ddof=1)) / NS_PER_MS**2 if self.count > 1 else None
        return Moments(self.count, mean, variance)

    def statistic(self, name: str) -> float | None:
        """Return one statistic of the durations in milliseconds; None where the samples are too few for it."""
        if name == "mean":
            return self.moments.mean
        if name == "sd":
            return None if self.moments.variance is None else math.sqrt(self.moments.variance)
        if name in ("min", "max"):
            return float(self.ordered_ns[0 if name == "min" else -1]) / NS_PER_MS
        # A median may be named of any run; what lies further out needs enough samples to lie inside of.
        if name != "p50" and self.count < least_count(PERCENTILES[name]):
            return None
        return median_unbiased(self.ordered_ns, PERCENTILES[name]) / NS_PER_MS


@dataclass(frozen=True)
class Columns:
    """The samples as arrays; `phase` holds positions in SAMPLE_PHASES.

    Arrays and not queries: a plan costs more than the whole summary of a few hundred samples.
    """

    repetition: Array
    index: Array
    phase: Array
    begin_ns: Array
    end_ns: Array

    @classmethod
    def of(cls, samples: pl.DataFrame) -> Self:
        phase, phases = samples["phase"], _phases()
        if phase.dtype != phases:
            phase = phase.cast(phases)
        others = (samples[name].to_numpy() for name in ("repetition", "index", "begin_ns", "end_ns"))
        repetition, index, begin_ns, end_ns = others
        codes = phase.to_physical().to_numpy()
        return cls(repetition=repetition, index=index, phase=codes, begin_ns=begin_ns, end_ns=end_ns)

    @classmethod
    def empty(cls) -> Self:
        """Return the columns of a result without samples."""
        none: Array = np.zeros(0, dtype=np.int64)
        return cls(repetition=none, index=none, phase=none, begin_ns=none, end_ns=none)

    def in_phase(self, name: str) -> Array:
        found: Array = self.phase == SAMPLE_PHASES.index(name)
        return found


@cache
def _phases() -> pl.Enum:
    import polars as pl

    return pl.Enum(SAMPLE_PHASES)


def measured_run(samples: Columns, repetition: int) -> MeasuredRun | None:
    """Return what one repetition measured, or None if it has no measured sample."""
    rows = (samples.repetition == repetition) & samples.in_phase("measure")
    indices, begins, ends = samples.index[rows], samples.begin_ns[rows], samples.end_ns[rows]
    if not indices.size:
        return None
    if np.any(indices[1:] < indices[:-1]):
        order = np.argsort(indices, kind="stable")
        indices, begins, ends = indices[order], begins[order], ends[order]
    durations = ends - begins
    position = steady_from(durations)
    start = position or 0
    return MeasuredRun(
        repetition=repetition,
        steady_from=None if position is None else int(indices[position]),
        indices=indices[start:],
        durations_ns=durations[start:],
        window_ns=int(ends[-1] - begins[start]),
        taken=int(durations.size),
    )


def cold_durations_ms(samples: Columns) -> Mapping[int, Mapping[str, float]]:
    """Return by repetition how long its `load` and its `first` inference took."""
    found: dict[int, dict[str, float]] = {}
    for phase in ("load", "first"):
        rows = np.flatnonzero(samples.in_phase(phase))
        columns = (samples.repetition, samples.index, samples.begin_ns, samples.end_ns)
        taken = zip(*(column[rows].tolist() for column in columns), strict=True)
        for repetition, _, begin_ns, end_ns in sorted(taken):
            found.setdefault(repetition, {}).setdefault(phase, (end_ns - begin_ns) / NS_PER_MS)
    return found
