"""The peer: a model on ONNX Runtime in a loop that a person would write by hand; prints its figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as Prony has it
begin = time.perf_counter()

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402

imported = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--inputs", type=json.loads, help="JSON: name, dtype and shape of each; default: as the model says"
    )
    options = parser.parse_args()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    session = ort.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter()
    if options.inputs:
        feeds = {item["name"]: make_input(item["dtype"], item["shape"]) for item in options.inputs}
    else:
        feeds = {
            item.name: make_input("float32", [s if isinstance(s, int) else 1 for s in item.shape])
            for item in session.get_inputs()
        }
    for _ in range(options.warmup):
        session.run(None, feeds)
    samples = []
    begin_cpu_ns = time.process_time_ns()
    for _ in range(options.runs):
        start = time.perf_counter_ns()
        session.run(None, feeds)
        samples.append(time.perf_counter_ns() - start)
    cpu_ns = (time.process_time_ns() - begin_cpu_ns) / options.runs
    figures = {"median_ns": float(np.median(samples)), "import_s": imported - begin, "load_s": loaded - imported}
    figures["cpu_ns"] = cpu_ns
    print(json.dumps(figures | {"samples": len(samples)}))


def make_input(dtype: str, shape: list[int]) -> np.ndarray:
    drawn = np.random.default_rng(0).random(shape, np.float32)
    # A number that a model looks up in a table must be in it.
    return drawn.astype(dtype) if np.dtype(dtype).kind == "f" else (drawn * 100).astype(dtype)


if __name__ == "__main__":
    main()
