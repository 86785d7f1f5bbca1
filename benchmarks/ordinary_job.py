"""What an ordinary job costs: ten inferences of a model of 14 MB, beside the engine alone and OpenVINO's benchmark_app.

Bound: under one second of wall time beyond the engine's own import, load and inferences.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.bench import HAND_LOOP, Cost, describe, exec_command, in_turns, job, run, scratch, zoo_file

TURNS = 7


def prony(model: Path, folder: Path, engine: str) -> Cost:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    plain = job(model, threads=2, runs=10, warmup=10, repeats=1, check=False)
    chosen = plain.model_copy(update={"workload": plain.workload.model_copy(update={"engine": engine})})
    return run(exec_command([chosen], folder), PRONY_HOME=str(folder / "home"))


def hand(model: Path) -> Cost:
    return run([sys.executable, str(HAND_LOOP), str(model), "--runs", "10", "--warmup", "10", "--threads", "2"])


def openvino_app(model: Path) -> Cost | None:
    program = Path(sys.executable).with_name("benchmark_app")
    if not program.exists():
        return None
    settings = ["-hint", "latency", "-niter", "10", "-shape", "[1,3,224,224]"]
    return run([str(program), "-m", str(model), *settings])


def main() -> int:
    describe(__doc__).parse_args()
    with scratch() as folder:
        model = zoo_file("mobilenet-v2", folder)
        works: dict[str, Callable[[], Cost | None]] = {
            "onnxruntime by hand": lambda: hand(model),
            "prony exec, onnxruntime": lambda: prony(model, folder / "a", "onnxruntime"),
            "benchmark_app, OpenVINO": lambda: openvino_app(model),
            "prony exec, OpenVINO": lambda: prony(model, folder / "b", "openvino"),
        }
        if openvino_app(model) is None:
            print("benchmark_app is not beside this interpreter: pip install openvino")
            del works["benchmark_app, OpenVINO"]
        costs: dict[str, list[Cost]] = {name: [] for name in works}

        def keeping(name: str) -> float:
            cost = works[name]()
            if cost is not None:
                costs[name].append(cost)
            return 0.0

        in_turns(TURNS, *[lambda name=name: keeping(name) for name in works])
    print(f"10 inferences (after 10 to warm up) of {model.name}, {TURNS} turns, medians\n")
    print(f"{'':26}{'wall s':>8}{'CPU s':>8}")
    for name, taken in costs.items():
        print(f"{name:26}{median(c.wall_s for c in taken):8.2f}{median(c.cpu_s for c in taken):8.2f}")
    pairs = zip(costs["prony exec, onnxruntime"], costs["onnxruntime by hand"], strict=True)
    beyond = median(ours.wall_s - theirs.wall_s for ours, theirs in pairs)
    print(f"\nprony beyond the engine alone: {beyond:+.2f} s of wall time (bound: 1)")
    return int(beyond >= 1)


if __name__ == "__main__":
    sys.exit(main())
