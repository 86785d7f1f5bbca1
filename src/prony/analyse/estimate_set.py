"""Estimates, and the numbers of the single runs behind them, kept together on their way into a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from prony.model.estimate import Estimate


@dataclass(frozen=True)
class EstimateSet:
    """`runs` has one number a run, in the order of the repetitions; `counts` has (failed, total) of a share.

    A comparison is decided by these, and never by requests of several runs thrown together.
    """

    estimates: dict[str, Estimate] = field(default_factory=dict)
    runs: dict[str, tuple[float, ...]] = field(default_factory=dict)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def one(cls, key: str, estimate: Estimate, runs: Sequence[float] = ()) -> Self:
        return cls({key: estimate}, {key: tuple(float(value) for value in runs)} if len(runs) else {})

    def __or__(self, other: EstimateSet) -> EstimateSet:
        return EstimateSet(self.estimates | other.estimates, self.runs | other.runs, self.counts | other.counts)
