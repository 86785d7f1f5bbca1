"""Commands: `prony bench --command` beside `hyperfine -N`, in turns, in the same run.

Bound: the medians differ by less than 0.2 ms, and ten executions of `true` take less than a second. On a busy machine
neither tool says much; the least times, which others disturb least, stand beside the medians. What Prony starts has a
folder on PYTHONPATH, so that a script finds `prony.emit`, and an interpreter takes longer with each: in the last
line the peer has one too, and Prony is started without.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import psutil

from benchmarks.bench import describe, run, scratch
from prony.stats.shift import shift

COMMANDS = ("true", "sleep 0.1", "python3 -c pass")
WITH_PATH = "python3 -c pass"
BOUND_MS = 0.2
BOUND_S = 1.0
_QUIET_S, _QUIET_PERCENT = 0.5, 10


@dataclass
class Taken:
    """Every execution so far in milliseconds, and the verdicts that Prony gave."""

    values: list[float] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)


def time_by_hyperfine(command: str, runs: int, folder: Path) -> Taken:
    out = folder / "hyperfine.json"
    words = ["hyperfine", "-N", "--warmup", "3", "--runs", str(runs), "--export-json", str(out), command]
    run(words)
    (found,) = json.loads(out.read_text())["results"]
    return Taken([seconds * 1e3 for seconds in found["times"]])


def time_by_spawn(command: str, runs: int, folder: Path) -> Taken:  # noqa: ARG001 - as the others
    """Time the same by a loop over `posix_spawn` and `waitpid`, where hyperfine is not installed."""
    words = command.split()
    null = os.open(os.devnull, os.O_RDWR)
    copies = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
    taken = []
    for _ in range(runs + 3):
        begin_ns = time.perf_counter_ns()
        os.waitpid(os.posix_spawnp(words[0], words, os.environ, file_actions=copies), 0)
        taken.append((time.perf_counter_ns() - begin_ns) / 1e6)
    os.close(null)
    return Taken(taken[3:])


def time_by_prony(command: str, runs: int, folder: Path) -> Taken:
    prony = str(Path(sys.executable).with_name("prony"))
    words = [prony, "bench", "--command", command, "--runs", str(runs), "--warmup", "3", "--no-save", "--json"]
    (job,) = json.loads(run(words, PRONY_HOME=str(folder / "home")).output)["jobs"]
    return Taken([seconds * 1e3 for seconds in job["runs"]["wall_s.p50"]], [job["verdict"]["grade"]])


def time_ten(folder: Path) -> tuple[float, float]:
    """Return the seconds of ten executions of `true`: of those alone, and of the whole command."""
    prony = str(Path(sys.executable).with_name("prony"))
    cost = run([prony, "bench", "--command", "true", "--no-report", "--json"], PRONY_HOME=str(folder / "home"))
    (result,) = (folder / "home" / "results").rglob("result.json")
    content = json.loads(result.read_text())
    begin_ns = content["repetitions"][0]["phases"]["measure"]["begin_ns"]
    end_ns = content["repetitions"][-1]["phases"]["measure"]["end_ns"]
    return (end_ns - begin_ns) / 1e9, cost.wall_s


def wait_quiet(within_s: float) -> None:
    """Wait until nobody else uses a tenth of the CPU for a while, or no longer."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and psutil.cpu_percent(_QUIET_S) > _QUIET_PERCENT:
        pass


@contextmanager
def _variable(name: str, value: str | None) -> Iterator[None]:
    """Set a variable for the block; None: have none."""
    before = os.environ.pop(name, None)
    os.environ.update({} if value is None else {name: value})
    try:
        yield
    finally:
        os.environ.pop(name, None)
        os.environ.update({} if before is None else {name: before})


def compare(
    command: str,
    peer: Callable[[str, int, Path], Taken],
    options: Namespace,
    folder: Path,
    *,
    peers_path: str | None = None,
) -> bool:
    """Print a line for a command; return whether its bound held. `peers_path` is the PYTHONPATH of the peer alone."""
    turns, runs = options.turns, options.runs
    taken = {time_by_prony: Taken(), peer: Taken()}
    for turn in range(turns):
        for time_it in list(taken) if turn % 2 else reversed(list(taken)):
            wait_quiet(options.wait)
            with _variable("PYTHONPATH", peers_path if time_it is peer else None):
                one = time_it(command, runs, folder)
            taken[time_it].values += one.values
            taken[time_it].verdicts += one.verdicts
    own, other = taken[time_by_prony], taken[peer]
    difference = median(own.values) - median(other.values)
    found = shift(np.array(other.values), np.array(own.values))
    least = min(own.values) - min(other.values)
    print(f"{command:18}{median(other.values):10.3f}{median(own.values):10.3f}{difference:+10.3f}  "
          f"[{found.low:+.3f}, {found.high:+.3f}]{least:+12.3f}   {', '.join(own.verdicts)}", flush=True)  # fmt: skip
    return abs(difference) < BOUND_MS


def main() -> int:
    parser = describe(__doc__)
    parser.add_argument("--turns", type=int, default=5, help="of each tool (5)")
    parser.add_argument("--runs", type=int, default=20, help="executions in a turn (20)")
    parser.add_argument("--wait", type=float, default=0, metavar="S", help="before each turn, for a quiet machine (0)")
    options = parser.parse_args()
    peer = time_by_hyperfine if shutil.which("hyperfine") else time_by_spawn
    name = "hyperfine" if peer is time_by_hyperfine else "spawn loop"
    print(f"{options.turns} turns of {options.runs} executions; load of the machine {os.getloadavg()[0]:.1f}\n")
    print(f"{'p50, ms':18}{name:>10}{'Prony':>10}{'added':>10}  95 % of the shift{'least added':>12}   verdicts")
    with scratch() as folder:
        held = [compare(command, peer, options, folder) for command in COMMANDS]
        for package in ("prony", "benchmarkai"):
            (folder / "python" / package).mkdir(parents=True)
        held.append(compare(WITH_PATH, peer, options, folder, peers_path=str(folder / "python")))
        ten_s, whole_s = time_ten(folder)
    print(f"\nten executions of true: {ten_s:.2f} s (bound: {BOUND_S:g}); the whole command: {whole_s:.2f} s")
    return int(not all(held) or ten_s >= BOUND_S)


if __name__ == "__main__":
    sys.exit(main())
