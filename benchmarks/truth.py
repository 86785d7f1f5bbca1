"""Run Prony's commands against known truth: the same thing twice, changes of known size, known times and counts.

Parts: `same` runs six workloads twelve times each and compares all pairs (a quiet machine, about half an hour); `power`
simulates changes of known size in results measured apart, also of a service with some slow starts; `mock` sets what is
reported beside the mock's own truth, from 1 to 512 streams; `tails` does so with the 99th percentiles; `knee` sweeps a
queue with a known number of places; `machine` measures a model of known duration with and without a busy process beside
it; `coverage` counts how often intervals hold the truth, on a part of what `python -m benchmarks.coverage` draws. Exit
code 1 if a bound is missed.
"""

from __future__ import annotations

import sys

from benchmarks.bench import describe, scratch
from benchmarks.product import Product
from benchmarks.truth_coverage import print_coverage
from benchmarks.truth_load import print_knee, print_mock, print_tails
from benchmarks.truth_machine import print_known_duration
from benchmarks.truth_same import RECIPES, print_power, print_same, record
from benchmarks.truth_starts import print_starts

PARTS = ("power", "mock", "tails", "knee", "machine", "coverage", "same")


def main(arguments: list[str]) -> int:
    parser = describe(__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of: {', '.join(PARTS)}; default: all")
    parser.add_argument(
        "--workload", action="append", choices=tuple(RECIPES), help="of `same`: only this one; may be given again"
    )
    parser.add_argument("--times", type=int, default=12, help="whole runs of each workload (12)")
    parser.add_argument("--comparisons", type=int, default=2000, help="resampled or simulated ones a cell (2000)")
    parser.add_argument("--seed", type=int, default=101, help="another seed is a fresh suite")
    options = parser.parse_args(arguments)
    wanted = options.parts or PARTS
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    missed: list[str] = []
    with scratch() as folder:
        product = Product(folder)
        if "power" in wanted:
            template = product.entry(product.run({"name": "one", **RECIPES["model of 15 us"]})["experiment"]["id"])
            missed += print_power(template, options.comparisons, options.seed)
            missed += print_starts(template, options.comparisons, options.seed)
        missed += print_mock(product) if "mock" in wanted else []
        missed += print_tails(product) if "tails" in wanted else []
        missed += print_knee(product) if "knee" in wanted else []
        missed += print_known_duration(product, max(2, options.times // 2)) if "machine" in wanted else []
        missed += print_coverage(options.comparisons // 4, options.seed) if "coverage" in wanted else []
        if "same" in wanted:
            chosen = {title: RECIPES[title] for title in options.workload or RECIPES}
            recorded = record(product, chosen, options.times)
            missed += print_same(product, recorded, options.comparisons, options.seed)
    print(f"\nmissed: {'; '.join(missed)}" if missed else "\nall bounds held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
