"""The load generator beside guidellm, AIPerf, inference-perf and wrk, redis-benchmark and pgbench, on loopback.

All are run one after the other against the same mock (`prony mock`, in a process of its own), which keeps the truth.
`make bench-peers` installs the peers, each in an environment of its own; one that is not there is left out.

Bounds: see the end of what it prints.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from collections.abc import Callable
from pathlib import Path

import prony
from benchmarks.bench import scratch
from benchmarks.fleet_ground import say_machine
from benchmarks.load_cost import bursts, short
from benchmarks.load_ground import FULL, QUICK, Bound, Ground
from benchmarks.load_peers import PEERS
from benchmarks.load_stores import postgres, redis
from benchmarks.load_timing import open_loop, stall, timing
from benchmarks.load_tools import Prony, Tool, Wrk

Figure = Callable[[Ground], list[Bound]]
FIGURES: dict[str, Figure] = {
    "short": short,
    "bursts": bursts,
    "timing": timing,
    "stall": stall,
    "open": open_loop,
    "redis": redis,
    "postgres": postgres,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds a figure: to see that it works")
    parser.add_argument("--only", choices=FIGURES, action="append", metavar="FIGURE", help=", ".join(FIGURES))
    parser.add_argument("--tools", default="", metavar="NAMES", help="only these tools beside Prony, as in aiperf,wrk")
    options = parser.parse_args()
    say_machine()
    # Every tool has its byte code, as pip leaves what it installs; a source tree may never have been compiled.
    compileall.compile_dir(str(Path(prony.__file__).parent), quiet=1)
    tools = [tool for tool in (Prony(), *PEERS, Wrk()) if _is_wanted(tool, options.tools)]
    bounds: list[Bound] = []
    with scratch() as folder:
        ground = Ground(folder, QUICK if options.quick else FULL, tools)
        for name in options.only or FIGURES:
            print(f"-- {name}: {(FIGURES[name].__doc__ or '').splitlines()[0]}\n", flush=True)
            bounds += FIGURES[name](ground)
            print(flush=True)
    for bound in bounds:
        print(bound)
    return int(any(bound.held is False for bound in bounds))


def _is_wanted(tool: Tool, names: str) -> bool:
    if names and not tool.is_prony and tool.name not in names.split(","):
        return False
    reason = tool.absent()
    if reason:
        print(f"{tool.name} is left out: {reason}\n", flush=True)
    return not reason


if __name__ == "__main__":
    sys.exit(main())
