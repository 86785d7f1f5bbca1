"""Compare two sides with 1 to 40 headline metrics, and count false regressions and changes that were found.

The first table is simulated: the product's own comparison of two jobs of so many independent metrics, which is the
worst case. In the rows "same" nothing changed, and the whole comparison counts as wrong if one metric of it is called a
regression. In the others one metric of all is changed, and it counts as found if that one is called a regression.

The second table is what `prony compare` answers to results that `prony run` made: a script that emits so many numbers
of which the truth is known, run for either side. Exit code 1 if a bound is missed: at most 1.7 % false regressions, a
doubled metric always found, and exit code 1 of `prony compare` for it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.analyse.compare.compare import compare_entries
from prony.analyse.compare.matching import Side
from prony.app.experiment_data import gather_results
from prony.app.results import with_runs
from prony.model.comparison import Conclusion, Terms
from prony.model.experiment_data import Entry
from prony.stats.quantiles import Array
from prony.store.home import Home
from prony.store.store import Store

HEADLINES = (1, 2, 3, 5, 7, 10, 20, 40)
RUN_HEADLINES = (1, 7, 40)
MOST_FALSE = 0.017
_ATTEMPTS = 8
# Reads which execution it is from a file beside the numbers, and emits that row.
_SCRIPT = """
import json, os, pathlib
import prony
values = pathlib.Path(os.environ["VALUES"])
place = values.with_suffix(".next")
number = int(place.read_text()) if place.exists() else 0
place.write_text(str(number + 1))
rows = json.loads(values.read_text())
prony.emit({f"metric_{n:02d}": value for n, value in enumerate(rows[number % len(rows)])}, unit="tick")
"""


@dataclass(frozen=True)
class Design:
    """How many runs a side with how much noise, and by what factor one metric is changed; 1 changes none."""

    runs: int
    noise: float
    factor: float = 1.0

    @property
    def title(self) -> str:
        change = "same" if self.factor == 1 else "doubled" if self.factor == 2 else f"+{self.factor - 1:.0%}"
        return f"{change}, {self.runs} runs, {self.noise:.0%} noise"

    def draw(self, rng: np.random.Generator, metrics: int) -> tuple[Array, Array]:
        """Return both sides, a row for each run."""
        before, after = np.exp(rng.normal(0, self.noise, (2, self.runs, metrics)))
        after[:, metrics // 2] *= self.factor
        return before, after


DESIGNS = (
    Design(5, 0.02), Design(5, 0.08), Design(10, 0.08),
    Design(5, 0.02, 1.1), Design(5, 0.08, 1.5), Design(5, 0.02, 2), Design(5, 0.08, 2),
)  # fmt: skip


def share_told(template: Entry, design: Design, metrics: int, *, sets: int, seed: int = 1) -> float:
    """Return in what share of comparisons a regression was told: any where nothing changed, else the right one."""
    rng = np.random.default_rng((seed, metrics, design.runs, round(1000 * design.noise), round(100 * design.factor)))
    told = 0
    for _ in range(sets):
        sides = [replace_values(template, values) for values in design.draw(rng, metrics)]
        found = compare_entries([Side("A", (sides[0],)), Side("B", (sides[1],))], Terms(anyway=True))
        worse = [one.key for one in found.headlines if one.conclusion is Conclusion.REGRESSION]
        told += bool(worse) if design.factor == 1 else f"metric_{metrics // 2:02d}.p50" in worse
    return told / sets


def replace_values(template: Entry, values: Array) -> Entry:
    """Return the entry of a real script with these numbers in the place of what it emitted."""
    keys = [f"metric_{n:02d}.p50" for n in range(values.shape[1])]
    runs = {key: tuple(column) for key, column in zip(keys, values.T.tolist(), strict=True)}
    update = {"runs": runs, "used": tuple(range(len(values)))}
    return template.model_copy(update={"summary": template.summary.model_copy(update=update)})


class Bench:
    """A home of Prony's in a folder, in which a script with known numbers is run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {"PRONY_HOME": str(folder / "home")}
        (folder / "script").mkdir()
        (folder / "script" / "emit.py").write_text(_SCRIPT, encoding="utf-8")

    def measure(self, name: str, values: Array) -> str:
        """Run the script once for each row; return the id of the experiment.

        Where some runs were disturbed by other programs and left out, it is run again: the subject is so many runs.
        """
        for number in range(_ATTEMPTS):
            document = self._run(f"{name}-{number}", values)
            if len(document["jobs"][0]["used"]) == len(values):
                return str(document["experiment"]["id"])
        raise RuntimeError(f"other programs disturbed some runs of {name}, {_ATTEMPTS} times in a row")

    def _run(self, name: str, values: Array) -> dict[str, Any]:
        numbers = self._folder / f"{name}.json"
        numbers.write_text(json.dumps(values.tolist()), encoding="utf-8")
        metrics = [{"name": f"metric_{n:02d}", "unit": "tick", "better": "lower"} for n in range(values.shape[1])]
        workload = {"kind": "script", "command": [sys.executable, "emit.py"], "directory": "script", "metrics": metrics}
        recipe = {
            "name": "known", "workload": workload | {"environment": {"VALUES": str(numbers)}},
            "measure": {"repeats": len(values), "warmup": 0},
        }  # fmt: skip
        path = self._folder / f"{name}-recipe.json"
        path.write_text(json.dumps(recipe), encoding="utf-8")
        done = self._prony("run", str(path), "--json")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def compare(self, *names: str) -> int:
        """Return what `prony compare` exits with; the file of numbers differs, and that is meant."""
        return self._prony("compare", *names, "--anyway").returncode

    def entry(self, experiment_id: str) -> Entry:
        with Store.open(Home(self._folder / "home")) as store:
            (entry,) = gather_results(store, experiment_id).entries
            return with_runs(entry)

    def _prony(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "prony", *words]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)


def exit_codes(bench: Bench, metrics: int, design: Design, seed: int) -> int:
    before, after = design.draw(np.random.default_rng((seed, metrics)), metrics)
    title = f"{metrics}-{design.noise}-{design.factor}"
    return bench.compare(bench.measure(f"a-{title}", before), bench.measure(f"b-{title}", after))


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", type=int, default=500, help="simulated comparisons for each cell")
    parser.add_argument("--seed", type=int, default=1, help="another seed is a fresh suite")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        template = bench.entry(bench.measure("template", np.ones((1, max(HEADLINES)))))
        missed = _print_rates(template, options.sets, options.seed)
        missed += _print_exit_codes(bench, options.seed)
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nall bounds held")
    return 1 if missed else 0


def _print_rates(template: Entry, sets: int, seed: int) -> list[str]:
    print(f"regressions told, % of {sets} comparisons, by the number of headline metrics")
    print(_line("", HEADLINES))
    missed = []
    for design in DESIGNS:
        shares = [share_told(template, design, metrics, sets=sets, seed=seed) for metrics in HEADLINES]
        print(_line(design.title, [f"{100 * share:.1f}" for share in shares]), flush=True)
        for metrics, share in zip(HEADLINES, shares, strict=True):
            # Where the truth is 1.7 %, a share of so many comparisons is off by three standard errors hardly ever.
            most = MOST_FALSE + 3 * (MOST_FALSE * (1 - MOST_FALSE) / sets) ** 0.5
            if (design.factor == 1 and share > most) or (design.factor == 2 and share < 1):
                missed.append(f"{design.title} among {metrics}: {share:.1%}")
    return missed


def _print_exit_codes(bench: Bench, seed: int) -> list[str]:
    print("\nexit code of prony compare, on results of prony run")
    print(_line("", RUN_HEADLINES))
    missed = []
    for design in (Design(5, 0.02), Design(5, 0.02, 2), Design(5, 0.08, 2)):
        codes = [exit_codes(bench, metrics, design, seed) for metrics in RUN_HEADLINES]
        print(_line(design.title, codes), flush=True)
        if design.factor == 2 and set(codes) != {1}:
            missed.append(f"{design.title}: exit codes {codes}")
    return missed


def _line(title: str, cells: Sequence[object]) -> str:
    return f"{title:<30}" + "".join(f"{cell!s:>7}" for cell in cells)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
