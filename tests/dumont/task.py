"""Load or run a model once or many times in a separate process, as a Dumont worker does.

As the worker does it: no warm-up, the first run counts, and the CPU is used whatever was asked for.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from typing import Any

import numpy as np


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("--task", choices=("load", "infer"), required=True)
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--compute-unit", default="CPU")
    parser.add_argument("--num-runs", type=int, default=10)
    options = parser.parse_args()
    try:
        session, load_ms = _loaded(options.model_path)
        told = _told("LoadMs", [load_ms])
        if options.task == "infer":
            told = _told("InferenceMs", _runs_ms(session, options.num_runs))
    except Exception as exc:  # noqa: BLE001 - whatever it is goes into the remark of the result
        sys.stderr.write(json.dumps({"error": str(exc), "task": options.task}))
        return 1
    sys.stdout.write(json.dumps(told))
    return 0


def _loaded(path: str) -> tuple[Any, float]:
    import onnxruntime

    begin = time.perf_counter()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session, (time.perf_counter() - begin) * 1e3


def _runs_ms(session: Any, count: int) -> list[float]:
    first = session.get_inputs()[0]
    shape = [size if isinstance(size, int) else 1 for size in first.shape]
    data = np.random.default_rng(0).random(shape).astype(np.float32)
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        session.run(None, {first.name: data})
        taken.append((time.perf_counter() - begin) * 1e3)
    return taken


def _told(name: str, values: list[float]) -> dict[str, float]:
    figures = {
        "Median": float(np.median(values)),
        "Min": min(values),
        "Max": max(values),
        "Average": float(np.mean(values)),
        "StdDev": float(np.std(values)),
        "First": values[0],
    }
    return {f"{name}{word}": figure for word, figure in figures.items()}


if __name__ == "__main__":
    sys.exit(main())
