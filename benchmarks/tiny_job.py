"""What a tiny job costs: a 3 KB model and ten inferences, beside a fresh interpreter for each job.

Bound: at least five times fewer CPU seconds a job, with a process of its own and a whole result folder for each.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from benchmarks.bench import HAND_LOOP, Cost, describe, exec_command, in_turns, job, ratio_text, run, scratch, zoo_file

JOBS, TURNS = 60, 5


def by_prony(model: Path, folder: Path) -> Cost:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    jobs = [job(model, number, runs=10, warmup=1, repeats=1) for number in range(JOBS)]
    return run(exec_command(jobs, folder), PRONY_HOME=str(folder / "home"))


def by_interpreters(model: Path) -> Cost:
    costs = [run([sys.executable, str(HAND_LOOP), str(model), "--runs", "10", "--warmup", "1"]) for _ in range(JOBS)]
    return Cost(sum(cost.wall_s for cost in costs), sum(cost.cpu_s for cost in costs), "")


def main() -> int:
    describe(__doc__).parse_args()
    walls: dict[str, list[float]] = {"prony": [], "fresh": []}
    with scratch() as folder:
        model = zoo_file("tiny", folder)

        def prony() -> float:
            cost = by_prony(model, folder / "prony")
            walls["prony"].append(cost.wall_s)
            return cost.cpu_s

        def fresh() -> float:
            cost = by_interpreters(model)
            walls["fresh"].append(cost.wall_s)
            return cost.cpu_s

        prony_cpu, fresh_cpu = in_turns(TURNS, prony, fresh)
    print(f"{JOBS} jobs of {model.name}, {TURNS} turns; start-up of the runner included; median of turns\n")
    print(f"{'':26}{'CPU s a job':>13}{'jobs a minute':>15}")
    for name, cpu, wall in (
        ("a fresh interpreter each", fresh_cpu, walls["fresh"]),
        ("prony exec", prony_cpu, walls["prony"]),
    ):
        print(f"{name:26}{sorted(cpu)[TURNS // 2] / JOBS:13.4f}{60 * JOBS / sorted(wall)[TURNS // 2]:15.0f}")
    cheaper = sorted(f / p for f, p in zip(fresh_cpu, prony_cpu, strict=True))[TURNS // 2]
    print(f"\nCPU, fresh interpreter by prony: {ratio_text(fresh_cpu, prony_cpu)} times (bound: 5)")
    return int(cheaper < 5)


if __name__ == "__main__":
    sys.exit(main())
