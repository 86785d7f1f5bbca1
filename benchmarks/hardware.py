"""Hold what Prony says of a CPU against copies and products by hand, against theory, and against itself.

    python -m benchmarks.hardware [--turns N] [--size BYTES] [--repeats N]

Bounds: a copy is at least half of memcpy's, in turns; the same for a product and numpy's own; two runs of
`prony hardware` are within 5 % of each other; the best product reaches 60 % of cores x operations a cycle x clock,
where the clock and the instructions are known. Run it on a quiet machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import describe, in_turns, scratch
from prony.instruments.device import detect
from prony.kinds.hardware.child.memory import MemorySuite
from prony.kinds.hardware.child.numpy_gemm import NumpyGemmSuite
from prony.model.device import Cpu

_SIZE, _TURNS = 256 * 2**20, 20
# Large enough for the highest rate, and a second of each: five runs take minutes and not hours.
_SMALL = ("--layer", "2048x2048x2048", "--set", "workload.time=1s")
_APART, _LEAST_OF_MEMCPY, _LEAST_OF_THEORY = 0.05, 0.5, 0.6
# Operations on fp32 that a core does in a cycle at most, with two units that multiply and add; the widest first.
_PER_CYCLE = (("avx512f", 64), ("fma", 32), ("asimd", 16))
_CLOCK_IN_NAME = re.compile(r"@ ([\d.]+)GHz")


def main() -> int:
    """Check everything; return 1 where a bound is missed."""
    parser = describe(__doc__)
    parser.add_argument("--turns", type=int, default=_TURNS, help=f"pairs of each comparison ({_TURNS})")
    parser.add_argument("--size", type=int, default=_SIZE, help=f"bytes of an array ({_SIZE})")
    parser.add_argument("--repeats", type=int, default=5, help="processes of each run of prony hardware (5)")
    options = parser.parse_args()
    copies = rate_copies(options.size, options.turns)
    products = rate_products(1024, options.turns)
    outcomes = [
        _say(f"copy on one CPU, best of {options.turns} turns: {copies[0]:.2f} GB/s, memcpy {copies[1]:.2f} "
             f"(at least half)", is_good=copies[0] >= _LEAST_OF_MEMCPY * copies[1]),
        _say(f"product of 1024: {products[0]:.4f} TFLOP/s, by hand {products[1]:.4f} (at least half)",
             is_good=products[0] >= products[1] / 2),
    ]  # fmt: skip
    runs = [_run_prony(options.repeats), _run_prony(options.repeats)]
    for key in runs[0].keys() & runs[1].keys():
        off = runs[1][key] / runs[0][key] - 1
        text = f"{key}: {runs[0][key]:.4g}, then {runs[1][key]:.4g}, {off:+.1%} (at most {_APART:.0%})"
        outcomes.append(_say(text, is_good=abs(off) <= _APART))
    cpu = detect().hardware.cpu
    theory = theory_tflops(cpu, cpu.usable_cores)
    best = max(one["gemm_fp32_tflops.p50"] for one in runs)
    if theory is None:
        print(f"      no share of theory: clock or instructions of {cpu.model} are not known")
    else:
        outcomes.append(_say(f"best product {best:.4f} of {theory:.4f} TFLOP/s, {best / theory:.0%} (at least 60 %)",
                             is_good=best >= _LEAST_OF_THEORY * theory))  # fmt: skip
    return 0 if all(outcomes) else 1


def rate_copies(size: int, turns: int) -> tuple[float, float]:
    """Return the best rate of Prony's copy on one CPU and that of memcpy, in GB/s read and written, in turns."""
    suite = MemorySuite({"threads": 1, "size": size}, None)
    try:
        test = next(suite.tests())
        source, target = np.random.default_rng(7).standard_normal(size // 8), np.zeros(size // 8)
        there, here = target.ctypes.data, source.ctypes.data
        by_hand = _rate(lambda: ctypes.memmove(there, here, source.nbytes), 2 * source.nbytes)
        ours, theirs = in_turns(turns, lambda: test.value_of(test.sample(1)[0]), by_hand)
        return max(ours), max(theirs)
    finally:
        suite.close()


def rate_products(size: int, turns: int) -> tuple[float, float]:
    """Return the best rate of Prony's product of two squares in fp32 and that of numpy's, in TFLOP/s, in turns."""
    layer = f"{size}x{size}x{size}"
    test = next(NumpyGemmSuite({"precisions": ["fp32"], "shapes": "model", "layers": [layer]}, None).tests())
    a, b = (np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32) for seed in (7, 8))
    out = np.empty_like(a)
    by_hand = _rate(lambda: np.matmul(a, b, out=out), 2 * size**3 / 1e3)
    ours, theirs = in_turns(turns, lambda: test.value_of(test.sample(1)[0]), by_hand)
    return max(ours), max(theirs)


def theory_tflops(cpu: Cpu, cores: float | None) -> float | None:
    """Return what cores do in fp32 at the clock that is known: the highest, or else that in the processor's name."""
    per_cycle = next((count for flag, count in _PER_CYCLE if flag in cpu.flags), None)
    named = _CLOCK_IN_NAME.search(cpu.model or "")
    mhz = cpu.max_mhz or (float(named[1]) * 1e3 if named else None)
    if per_cycle is None or mhz is None or not cores:
        return None
    return cores * per_cycle * mhz * 1e6 / 1e12


def _rate(work: Callable[[], Any], amount: float) -> Callable[[], float]:
    """Return what does some work and tells its amount per nanosecond."""

    def measure() -> float:
        begin_ns = time.perf_counter_ns()
        work()
        return amount / (time.perf_counter_ns() - begin_ns)

    return measure


def _run_prony(repeats: int) -> dict[str, float]:
    """Measure memory and products as a person does; return the headline of each."""
    with scratch() as folder:
        command = [sys.executable, "-m", "prony", "hardware", "--unit", "cpu", "--library", "numpy", *_SMALL]
        environment = os.environ | {"PRONY_HOME": str(Path(folder) / "home")}
        done = subprocess.run(
            [*command, "--repeats", str(repeats), "--no-report", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"prony hardware ended with {done.returncode}:\n{done.stderr[-2000:]}")
    jobs = json.loads(done.stdout)["jobs"]
    wanted = ("copy_gb_s.p50", "axpy_gb_s.p50", "gemm_fp32_tflops.p50")
    return {key: float(job["estimates"][key]["value"]) for job in jobs for key in wanted if key in job["estimates"]}


def _say(what: str, *, is_good: bool) -> bool:
    print(f"{'PASS' if is_good else 'FAIL'}  {what}", flush=True)
    return is_good


if __name__ == "__main__":
    sys.exit(main())
