"""Run the same thing again and again, compare all pairs, and count what is called a change; then how often one is seen.

Recorded: whole runs of the product, one workload after the other in rounds, so that the results of one workload lie
minutes apart; each pair is given to `prony compare`. Resampled: two of these results are drawn, and their runs with
replacement; the others are their history. Simulated: results and runs of known spread, with a change of known size.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.product import Product
from prony.analyse.compare.compare import compare_entries
from prony.analyse.compare.matching import Side
from prony.model.comparison import Comparison, Conclusion, Terms
from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.stats.quantiles import Array

SCRIPTS = Path(__file__).parent.parent / "recipes" / "scripts"
# At most one of each among the pairs of twelve results, and 2 % of each among the resampled.
MOST_PAIRS, MOST_SHARE = 1, 0.02
MOST_OPEN = 0.2
P50 = "inference_ms.p50"
_CHANGES = (1.0, 1.03, 1.05, 1.1)


def _model(name: str, **workload: Any) -> dict[str, Any]:
    return {"kind": "model", "model": f"zoo:{name}", "engine": "onnxruntime", "threads": 1, **workload}


def _redis(**users: Any) -> dict[str, Any]:
    workload = {"kind": "service", "service": "redis", "options": {"operation": "mixed", "value_size": 100}}
    return {"workload": workload, "load": {"closed": users, "duration": "5s"}}


RECIPES: dict[str, dict[str, Any]] = {
    "model of 15 us": {"workload": _model("tiny")},
    "model of 1 ms": {"workload": _model("mlp", batch_size=16)},
    "mobilenet-v2": {"workload": _model("mobilenet-v2")},
    # Users who wait a little keep the client's process at about a fifth of a core; without, it is the limit.
    "Redis load": _redis(concurrency=8, think="2ms"),
    "Redis, full speed": _redis(concurrency=8),
    "script": {
        "workload": {
            "kind": "script", "command": "python train.py", "directory": str(SCRIPTS),
            "metrics": [{"name": "epoch_ms", "unit": "ms", "better": "lower", "reduce": "median"}],
        },
        "measure": {"repeats": 5, "warmup": 1},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Count:
    """What a number of comparisons of the same thing was called."""

    comparisons: int
    regressions: int
    improvements: int

    @property
    def shares(self) -> tuple[float, float]:
        return self.regressions / self.comparisons, self.improvements / self.comparisons


def record(product: Product, recipes: Mapping[str, dict[str, Any]], times: int) -> dict[str, list[str]]:
    """Run these workloads so many times, in rounds; return the experiments of each."""
    found: dict[str, list[str]] = {}
    for number in range(times):
        for title, recipe in recipes.items():
            if recipe["workload"].get("service") == "redis" and shutil.which("redis-server") is None:
                print(f"{title}: left out, there is no redis-server on PATH", file=sys.stderr)
                continue
            begin = time.monotonic()
            told = product.run({"name": title.replace(",", "").replace(" ", "-"), **recipe})
            grade = told["jobs"][0]["verdict"]["grade"]
            print(f"{number + 1}/{times} {title}: {grade}, {time.monotonic() - begin:.0f} s", file=sys.stderr)
            found.setdefault(title, []).append(told["experiment"]["id"])
    return found


def compare_pairs(product: Product, experiments: Sequence[str]) -> Count:
    """Give every two of them to `prony compare`."""
    pairs = list(combinations(experiments, 2))
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda pair: product.ask("compare", *pair), pairs))
    said = [
        {one["conclusion"] for match in each["matches"] for one in match["contrasts"] if _decides(one)} for each in told
    ]
    return _count(said)


def _decides(contrast: Mapping[str, Any]) -> bool:
    return bool(contrast["role"] == "headline")


def resample(entries: Sequence[Entry], comparisons: int, seed: int) -> Count:
    """Compare two of these results, with their runs drawn again, so many times."""
    rng = np.random.default_rng(seed)
    values = [{key: one.value for key, one in entry.summary.estimates.items()} for entry in entries]
    said = []
    for _ in range(comparisons):
        drawn = rng.choice(len(entries), 2, replace=False)
        others = [value for place, value in enumerate(values) if place not in drawn]
        sides = [_drawn_again(entries[place], rng) for place in drawn]
        found = _compare(sides[0], sides[1], Terms(), others)
        said.append({one.conclusion.value for one in found.headlines})
    return _count(said)


def _drawn_again(entry: Entry, rng: np.random.Generator) -> Entry:
    count = len(entry.summary.used)
    picked = rng.integers(0, count, count)
    runs = {
        key: tuple(values[place] for place in picked) if len(values) == count else values
        for key, values in entry.summary.runs.items()
    }
    return entry.model_copy(update={"summary": entry.summary.model_copy(update={"runs": runs})})


def _compare(before: Entry, after: Entry, terms: Terms, others: Sequence[Mapping[str, float]]) -> Comparison:
    sides = [Side("A", (before,)), Side("B", (after,))]
    return compare_entries(sides, terms, earlier=dict.fromkeys((before.job.id, after.job.id), others))


def _count(said: Sequence[set[str]]) -> Count:
    counts = Counter(one for each in said for one in each)
    return Count(len(said), counts[Conclusion.REGRESSION.value], counts[Conclusion.IMPROVEMENT.value])


@dataclass(frozen=True)
class Design:
    """How far whole results and runs spread, how many runs a side has, and how many earlier results are known."""

    apart: float
    noise: float
    runs: int
    history: int

    @property
    def key(self) -> tuple[int, ...]:
        """What a seed is made of besides."""
        return self.runs, self.history, round(1e4 * self.apart)

    @property
    def title(self) -> str:
        return f"results {self.apart:.1%}, runs {self.noise:.0%}, {self.runs} runs, history of {self.history}"

    def draw(self, rng: np.random.Generator, factor: float) -> tuple[Array, Array, list[dict[str, float]]]:
        levels = np.exp(rng.normal(0, self.apart, 2)) * (1.0, factor)
        before, after = np.exp(rng.normal(0, self.noise, (2, self.runs))) * levels[:, None]
        noise = self.noise * 1.25 / self.runs**0.5
        earlier = np.exp(rng.normal(0, np.hypot(self.apart, noise), self.history))
        return before, after, [{P50: float(value)} for value in earlier]


DESIGNS = (
    Design(0.02, 0.02, 10, 0), Design(0.02, 0.02, 10, 12), Design(0.02, 0.02, 10, 30),
    Design(0.02, 0.02, 5, 0), Design(0.005, 0.02, 10, 0), Design(0.005, 0.02, 10, 30), Design(0.005, 0.005, 10, 30),
)  # fmt: skip


class Drawn(Protocol):
    """How results come about whose truth is known."""

    @property
    def key(self) -> tuple[int, ...]:
        """What a seed is made of besides."""

    def draw(self, rng: np.random.Generator, factor: float) -> tuple[Array, Array, list[dict[str, float]]]:
        """Return the runs of two results, the second slower by this factor, and the middles of earlier ones."""


def simulate(template: Entry, design: Drawn, factor: float, *, sets: int, seed: int) -> dict[str, float]:
    """Return in what share of comparisons each conclusion was drawn."""
    rng = np.random.default_rng((seed, *design.key, round(100 * factor)))
    counts: Counter[str] = Counter()
    for _ in range(sets):
        before, after, earlier = design.draw(rng, factor)
        sides = [_with_runs(template, values, name) for name, values in (("before", before), ("after", after))]
        found = _compare(sides[0], sides[1], Terms(metrics=(P50,)), earlier)
        counts[found.conclusion.value] += 1
    return {name: count / sets for name, count in counts.items()}


def _with_runs(template: Entry, values: Array, experiment: str) -> Entry:
    """Return the entry of a real result with these runs in the place of its own, as one of another experiment."""
    update = {"runs": {P50: tuple(values.tolist())}, "used": tuple(range(len(values)))}
    job = template.job.model_copy(update={"id": f"{experiment}-001", "experiment_id": experiment})
    return template.model_copy(update={"job": job, "summary": template.summary.model_copy(update=update)})


def print_same(product: Product, recorded: Mapping[str, list[str]], comparisons: int, seed: int) -> list[str]:
    """Print how often the same thing was called changed; return what missed its bound."""
    missed = []
    print(
        f"{'the same thing':<18}{'valid':>6}{'suspect':>8}{'void':>5}   {'pairs':>6}{'worse':>7}{'better':>8}   "
        f"{'resampled':>9}{'worse':>8}{'better':>8}"
    )
    for title, experiments in recorded.items():
        pairs = compare_pairs(product, experiments)
        entries = [product.entry(one) for one in experiments]
        again = resample(entries, comparisons, seed)
        grades = Counter(entry.summary.verdict.grade for entry in entries)
        worse, better = (f"{share:.1%}" for share in again.shares)
        print(
            f"{title:<18}{grades[Grade.VALID]:>6}{grades[Grade.SUSPECT]:>8}{grades[Grade.VOID]:>5}   "
            f"{pairs.comparisons:>6}{pairs.regressions:>7}{pairs.improvements:>8}   "
            f"{again.comparisons:>9}{worse:>8}{better:>8}",
            flush=True,
        )
        if max(pairs.regressions, pairs.improvements) > MOST_PAIRS or max(again.shares) > MOST_SHARE:
            missed.append(f"the same thing called changed: {title}")
        # A void result takes part in no comparison, and a suspect one leaves most open: their pairs prove little.
        if grades[Grade.VOID] or grades[Grade.SUSPECT] > len(entries) / 2:
            missed.append(
                f"{grades[Grade.VOID]} void and {grades[Grade.SUSPECT]} suspect of {len(entries)} results, measure on "
                f"a quiet machine: {title}"
            )
    return missed


def print_power(template: Entry, sets: int, seed: int) -> list[str]:
    """Print how often a change of known size is told, and how often the answer is open; return what missed."""
    missed = []
    print(f"\nmeasured apart, % of {sets} simulated comparisons: worse / open")
    print(f"{'spread between':<52}" + "".join(f"{f'+{factor - 1:.0%}':>14}" for factor in _CHANGES))
    for design in DESIGNS:
        cells = []
        for factor in _CHANGES:
            told = simulate(template, design, factor, sets=sets, seed=seed)
            worse, is_open = told.get("regression", 0.0), told.get("inconclusive", 0.0)
            cells.append(f"{f'{worse:.1%} / {is_open:.0%}':>14}")
            if factor == 1 and max(worse, told.get("improvement", 0.0)) > MOST_SHARE + two_errors(sets):
                missed.append(f"{design.title}: {worse:.1%} false regressions")
            if factor == 1.1 and design.runs == 10 and is_open > MOST_OPEN + two_errors(sets):
                missed.append(f"{design.title}: +10 % is open in {is_open:.0%}")
        print(f"{design.title:<52}{''.join(cells)}", flush=True)
    return missed


def two_errors(sets: int) -> float:
    """Two standard errors of a share of 2 %, which is all that a simulation of that size can tell."""
    return 2 * float(np.sqrt(MOST_SHARE * (1 - MOST_SHARE) / sets))
