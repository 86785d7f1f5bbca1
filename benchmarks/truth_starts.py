"""Simulate a service of which some starts are slower: results whose runs share one start, and results of a start a run.

Seen of a Redis: runs of one start spread by 0.5 %, and of twelve results one was slower by 6 %. Assumed: that this one
had a slow start, and that the other starts spread by 0.7 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.truth_same import MOST_OPEN, MOST_SHARE, P50, simulate, two_errors
from prony.model.experiment_data import Entry
from prony.stats.quantiles import Array

_STARTS, _NOISE = 0.007, 0.005
_SLOW, _SLOW_SHARE = 0.06, 1 / 12
_CHANGES = (1.0, 1.05, 1.1)


@dataclass(frozen=True)
class Starts:
    """`is_shared`: all runs of a result have one start; else each has its own."""

    is_shared: bool
    runs: int
    history: int = 10

    @property
    def key(self) -> tuple[int, ...]:
        return int(self.is_shared), self.runs, self.history

    @property
    def title(self) -> str:
        return f"{'one start for all' if self.is_shared else 'a start for each'} of {self.runs} runs"

    def draw(self, rng: np.random.Generator, factor: float) -> tuple[Array, Array, list[dict[str, float]]]:
        earlier = [{P50: float(np.median(self._result(rng)))} for _ in range(self.history)]
        return self._result(rng), self._result(rng) * factor, earlier

    def _result(self, rng: np.random.Generator) -> Array:
        count = 1 if self.is_shared else self.runs
        starts = rng.normal(0, _STARTS, count) + _SLOW * (rng.random(count) < _SLOW_SHARE)
        return np.asarray(np.exp(starts + rng.normal(0, _NOISE, self.runs)))


def print_starts(template: Entry, sets: int, seed: int) -> list[str]:
    """Print how often results of either kind are called changed; return what missed. One start for all is shown for
    comparison and has no bound: it is what `workload.restart` is there for."""
    missed = []
    print(f"\na service with some slow starts, % of {sets} simulated comparisons: worse / better / open")
    print(f"{'':<36}" + "".join(f"{f'+{factor - 1:.0%}':>20}" for factor in _CHANGES))
    for design in (Starts(is_shared, runs) for runs in (5, 10) for is_shared in (True, False)):
        cells = []
        for factor in _CHANGES:
            told = simulate(template, design, factor, sets=sets, seed=seed)
            worse, better, is_open = (told.get(word, 0.0) for word in ("regression", "improvement", "inconclusive"))
            cells.append(f"{f'{worse:.1%} / {better:.1%} / {is_open:.0%}':>20}")
            if design.is_shared:
                continue
            if factor == 1 and max(worse, better) > MOST_SHARE + two_errors(sets):
                missed.append(f"{design.title}: {worse:.1%} false regressions")
            if factor == 1.1 and design.runs == 10 and is_open > MOST_OPEN + two_errors(sets):
                missed.append(f"{design.title}: +10 % is open in {is_open:.0%}")
        print(f"{design.title:<36}{''.join(cells)}", flush=True)
    return missed
