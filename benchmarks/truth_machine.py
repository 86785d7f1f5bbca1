"""A model of known duration, on the machine as it is and beside a process that never rests."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from benchmarks.product import Product

_TRUE_MS = 1.0
_MOST_OFF = 0.01


def print_known_duration(product: Product, times: int) -> list[str]:
    """Print how far the median lies from the truth, and what the verdict was; return what missed its bound."""
    model = product.folder / f"spin-{1000 * _TRUE_MS:.0f}us.null"
    model.touch()
    recipe = {"name": "known", "workload": {"kind": "model", "model": str(model), "engine": "null"}}
    print(f"\na model of {_TRUE_MS:g} ms, {times} results each")
    print(f"{'':<22}{'median off by at most':>22}   verdicts")
    missed = []
    for title, beside in (("as the machine is", nullcontext), ("beside a busy process", _busy)):
        off, grades = [], Counter[str]()
        for _ in range(times):
            with beside():
                told = product.run(recipe)["jobs"][0]
            grades[told["verdict"]["grade"]] += 1
            if "inference_ms.p50" in told["estimates"]:
                off.append(abs(told["estimates"]["inference_ms.p50"]["value"] / _TRUE_MS - 1))
        counted = ", ".join(f"{count} {name}" for name, count in sorted(grades.items()))
        print(f"{title:<22}{f'{max(off):.2%}':>22}   {counted}", flush=True)
        if beside is nullcontext and (grades["valid"] < times or max(off) > _MOST_OFF):
            missed.append(f"{title}: {counted}, off by up to {max(off):.2%}")
        if beside is _busy and grades["valid"]:
            missed.append(f"{title}: {grades['valid']} of {times} called valid")
    return missed


@contextmanager
def _busy() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()
