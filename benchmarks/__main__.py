"""Every benchmark one after the other; exit code 1 if one missed its bound."""

from __future__ import annotations

import importlib
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

ALL = (
    "harness_overhead",
    "tiny_job",
    "ordinary_job",
    "startup",
    "commands",
    "summary_speed",
    "coverage",
    "detection_sets",
    "compare_headlines",
    "detectable",
    "truth",
    "fleet_throughput",
    "fleet_many_agents",
    "fleet_events",
    "fleet_growth",
    "server_operations",
    "sark_jobs",
    "load_generator",
    "emit",
    "block_timer",
    "ui",
    "detection",
    "detection_stories",
)


def main(arguments: list[str]) -> int:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(ALL)}; default: all")
    missed = []
    for name in parser.parse_args(arguments).names or list(ALL):
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}"], check=False, cwd=Path(__file__).parent.parent
        )
        missed += [name] if done.returncode else []
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nall bounds held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
