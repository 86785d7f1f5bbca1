"""Estimate a percentile over runs or within one run, or say why it has no interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prony.analyse.runs import PERCENTILES
from prony.stats.dependence import Exceedances, cluster_size, correlation_of_neighbours, widen_confidence
from prony.stats.quantiles import Array, Ranks, interval_ranks, least_count, median_ranks, median_unbiased

_CONFIDENCE = 0.95
# So much of the range in which a run's percentile may lie must be empty for it to lie between two groups of samples.
_EMPTY_SHARE = 0.7
# The fewest independent samples that a percentile's interval may rest on, in shares of what it needs.
_LEAST_WORTH = 0.65
# Samples of which so much of one is in the next (as a correlation of which half each lies in) follow closely: so many
# times what the percentile needs must there be in a run before its clusters can be counted.
_CLOSELY, _TIMES_IF_CLOSELY = 0.45, 2.5
# By how many ranks samples that come in clusters put a percentile too low, for each of a cluster beyond the first.
_RANKS_TOO_LOW = 1 / 3


@dataclass(frozen=True)
class RunSamples:
    """The samples of one run, in the order in which they were taken and in ascending order."""

    in_time: Array
    ordered: Array


@dataclass(frozen=True)
class RunPercentile:
    """One percentile of one run."""

    samples: RunSamples
    q: float

    @cached_property
    def number(self) -> float:
        return self.shifted_number(0.0)

    def shifted_number(self, shift: float) -> float:
        """Return the number so many ranks higher."""
        return median_unbiased(self.samples.ordered, self.q, shift)

    @cached_property
    def exceedances(self) -> Exceedances:
        return Exceedances(self.samples.in_time > self.number)

    @cached_property
    def halves(self) -> Exceedances:
        """Where samples lie in the upper half: the level at which most is known of how they follow each other."""
        ordered = self.samples.ordered
        return Exceedances(self.samples.in_time > ordered[(ordered.size - 1) // 2])

    @cached_property
    def is_between_groups(self) -> bool:
        return _is_between_groups(self.samples.ordered, self.q)


@dataclass(frozen=True)
class PercentileOfRuns:
    """One percentile of the same metric in each of some runs."""

    name: str
    runs: Sequence[RunSamples]

    @property
    def q(self) -> float:
        return PERCENTILES[self.name]

    @cached_property
    def parts(self) -> Sequence[RunPercentile]:
        return [RunPercentile(run, self.q) for run in self.runs]

    @cached_property
    def numbers(self) -> Array:
        """One number a run, as often too low as too high where samples are independent."""
        return np.array([part.number for part in self.parts])

    @cached_property
    def highs(self) -> Array:
        """The same for the upper end: samples that come in clusters put the number of most runs too low."""
        shift = (self._cluster_size - 1) * _RANKS_TOO_LOW if self.q > 0.5 else 0.0
        if not shift:
            return self.numbers
        return np.array([part.shifted_number(shift) for part in self.parts])

    @property
    def refusal(self) -> str:
        """Why no interval over these runs can be vouched for; empty where one can."""
        between = sum(part.is_between_groups for part in self.parts)
        if 2 * between > len(self.runs):
            return "it falls between two groups of samples and jumps from one to the other"
        return self._refuse_clusters() if self.q > 0.5 else ""

    @property
    def ranks_within(self) -> tuple[Ranks | None, str]:
        """The ranks of the interval within a single run, and why there is none."""
        count, size = self.runs[0].ordered.size, self._cluster_size
        if size == 1:
            found = median_ranks(count) if self.q == 0.5 else interval_ranks(count, self.q)
            return found, ""
        found = interval_ranks(count, self.q, widen_confidence(_CONFIDENCE, 1 / size))
        if found is None:
            return None, _dependence(size, count)
        return Ranks(found.low, found.high, _CONFIDENCE), ""

    @property
    def widening_note(self) -> str:
        """What was done to the interval within a run, to follow its name."""
        return "" if self._cluster_size == 1 else ", wider because samples are correlated"

    @cached_property
    def _cluster_size(self) -> float:
        return cluster_size([part.exceedances for part in self.parts])

    def _refuse_clusters(self) -> str:
        count, needed = min(run.ordered.size for run in self.runs), least_count(self.q)
        if self._cluster_size > 1 and count / self._cluster_size < _LEAST_WORTH * needed:
            return _dependence(self._cluster_size, count)
        wanted = math.ceil(_TIMES_IF_CLOSELY * needed)
        if count < wanted and correlation_of_neighbours([part.halves for part in self.parts]) > _CLOSELY:
            return f"samples are strongly correlated, so it needs {wanted} of them in each run"
        return ""


def _dependence(size: float, count: int) -> str:
    return f"samples are correlated, so {count} of them are worth {count / size:.0f} independent ones"


def _is_between_groups(ordered: Array, q: float) -> bool:
    """Is most of the range in which the percentile of this run may lie empty?"""
    ranks = interval_ranks(ordered.size, q)
    if ranks is None:
        return False
    inside = ordered[ranks.low - 1 : ranks.high].astype(np.float64)
    whole = float(inside[-1] - inside[0])
    if not np.isfinite(whole) or whole <= 0:
        return False
    widest = float(np.diff(inside).max())
    # Where nothing varies on either side, a coarse clock has made the gap.
    return _EMPTY_SHARE * whole < widest < whole
