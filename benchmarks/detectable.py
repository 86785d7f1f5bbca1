"""How small a change a comparison can see: make the table that is printed from, or try what is printed.

`--write` simulates the test of `prony compare` and writes `src/prony/stats/detectable_table.py`. Each of many pairs of
sides has its own smallest shift from which on the test is significant, and another from which on the estimate passes
the gate. The change that four of five pairs show is the 80 % point of the larger of the two, for each number of runs
and each noise. That holds where the noise is known. Of few runs it is not: it is taken so many times larger that what
is printed from the noise of one side is seen in four cases of five, whatever the true noise is.

Without `--write`, the product's own comparison is asked with other seeds: a side is summarised, its sensitivity read,
and the other side changed by exactly as much. Exit code 1 where that is seen in less than 78 of 100.
"""

from __future__ import annotations

import math
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.compare_headlines import Bench, replace_values
from prony.analyse.compare.compare import compare_entries
from prony.analyse.compare.effect import FALSE_DISCOVERIES, LEVEL, gate
from prony.analyse.compare.matching import Side
from prony.analyse.estimates import sensitivity_of
from prony.model.comparison import Conclusion, Terms
from prony.model.experiment_data import Entry
from prony.stats.permutation import robust_p
from prony.stats.quantiles import Array, quantile
from prony.stats.spread import noise_of

RUNS = (5, 6, 7, 8, 10, 12, 15, 20, 30, 50)
# The noise between runs, in units of the gate.
NOISES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0)
# As many headlines as a model has: of so many tests one alone must stand out.
HEADLINES = 3
_POWER, _LEAST = 0.8, 0.78
_SIGNIFICANT = min(LEVEL, FALSE_DISCOVERIES / HEADLINES)
_KEY = "metric_00.p50"
_TABLE = Path(__file__).parents[1] / "src" / "prony" / "stats" / "detectable_table.py"


class Pairs:
    """Pairs of sides with noise 1: what each needs to be significant, its estimate, and its noise as one side tells."""

    def __init__(self, runs: int, count: int, seed: int) -> None:
        rng = np.random.default_rng((seed, runs))
        sides = rng.standard_normal((count, 2, runs))
        self.needed = np.array([_smallest_significant(before, after) for before, after in sides])
        self.estimate = np.array(
            [quantile(np.sort(np.subtract.outer(after, before), axis=None), 0.5) for before, after in sides]
        )
        self.noise = np.array([noise_of(np.exp(before / 100)) or 0.0 for before, _ in sides]) * 100

    def smallest(self, noise: float) -> Array:
        """Return for each pair the smallest change that is told, in units of the gate."""
        found: Array = np.maximum(noise * self.needed, 1 - noise * self.estimate)
        return found


def _smallest_significant(before: Array, after: Array) -> float:
    """Return the shift of `after` from which on the test is significant."""
    low, high = 0.0, 16.0
    for _ in range(11):
        middle = (low + high) / 2
        low, high = (low, middle) if robust_p(before, after + middle) < _SIGNIFICANT else (middle, high)
    return high


def known_noise(pairs: Pairs) -> list[float]:
    # A hair above the gate, which a change of just its size may miss by the last digit.
    return [max(1.001, float(np.quantile(pairs.smallest(noise), _POWER))) for noise in NOISES]


def estimated_noise(pairs: Pairs, changes: list[float]) -> float:
    """Return how many times as large the noise of one side must be taken."""
    low, high = 1.0, 8.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if _least_power(pairs, changes, middle) >= _POWER else (middle, high)
    return high


def _least_power(pairs: Pairs, changes: list[float], times: float) -> float:
    shares = []
    for noise in NOISES[1:]:
        told = read_changes(changes)(times * noise * pairs.noise)
        shares.append(float(np.mean(told >= pairs.smallest(noise))))
    return min(shares)


def read_changes(changes: list[float]) -> Callable[[Array], Array]:
    """Return the line through the changes; beyond the last noise it goes on in proportion."""

    def read(noise: Array) -> Array:
        beyond = np.maximum(noise / NOISES[-1], 1.0)
        return np.interp(noise, NOISES, changes) * beyond

    return read


def write_table(count: int, seed: int) -> None:
    rows, times = [], []
    for runs in RUNS:
        pairs = Pairs(runs, max(400, count * 5 // max(5, runs)), seed)
        changes = known_noise(pairs)
        factor = estimated_noise(pairs, changes)
        rows.append(f"    ({', '.join(f'{one:.3f}' for one in changes)}),  # {runs}")
        times.append(f"{factor:.2f}")
        print(rows[-1], times[-1], flush=True)
    _TABLE.write_text(
        '"""How small a change two sets of runs show in four of five comparisons.\n\n'
        'Made by `python -m benchmarks.detectable --write`.\n"""\n\n'
        "from __future__ import annotations\n\n"
        f"# Runs on each side, and the noise between runs in units of the gate (in logarithms).\nRUNS = {RUNS}\n"
        f"NOISES = {NOISES}\n"
        "# The change in the same units: a row for each number of runs.\nCHANGES = (\n" + "\n".join(rows) + "\n)\n"
        "# How many times as large the noise is to be taken where it comes from so many runs and is not known.\n"
        f"TIMES_IF_ESTIMATED = ({', '.join(times)})\n",
        encoding="utf-8",
    )


def seen_share(template: Entry, runs: int, noise: float, *, comparisons: int, seed: int) -> tuple[float, float]:
    """Return the median change that is printed of one side, and how often the product tells exactly such a one."""
    rng = np.random.default_rng((seed, runs, round(noise * 1e6)))
    told, printed = 0, []
    for _ in range(comparisons):
        before, after = np.exp(rng.normal(0, noise, (2, runs, HEADLINES)))
        entry = replace_values(template, before)
        change = sensitivity_of(entry.summary.runs, [_KEY])[_KEY].detectable
        printed.append(change)
        after[:, 0] *= 1 + change
        sides = [Side("A", (entry,)), Side("B", (replace_values(template, after),))]
        found = compare_entries(sides, Terms(anyway=True))
        told += any(one.key == _KEY and one.conclusion is Conclusion.REGRESSION for one in found.headlines)
    return float(np.median(printed)), told / comparisons


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make the table anew")
    parser.add_argument("--pairs", type=int, default=3000, help="simulated pairs of sides of five runs")
    parser.add_argument("--comparisons", type=int, default=300, help="for each row of the trial")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.write:
        write_table(options.pairs, options.seed)
        return 0
    print(f"{'runs':>5} {'true noise':>11} {'printed':>9} {'seen':>7}   (gate {gate(0.03):.0%})")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        template = bench.entry(bench.measure("template", np.ones((5, HEADLINES))))
    missed = 0
    for runs in (5, 8, 10, 20, 30):
        for noise in (0.0003, 0.005, 0.01, 0.02, 0.05):
            change, seen = seen_share(template, runs, noise, comparisons=options.comparisons, seed=options.seed + 100)
            chance = 2 * math.sqrt(_POWER * (1 - _POWER) / options.comparisons)
            is_short = seen < _LEAST - chance
            missed += is_short
            print(f"{runs:>5} {noise:>11.2%} {change:>9.2%} {seen:>7.1%}{'  missed' if is_short else ''}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
