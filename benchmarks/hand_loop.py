"""The peer: a model on ONNX Runtime in a loop that a person would write by hand; prints its figures as JSON."""

from __future__ import annotations

import argparse
import json
import time

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
    options = parser.parse_args()
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    session = ort.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter()
    feeds = {
        item.name: np.random.default_rng(0).random([s if isinstance(s, int) else 1 for s in item.shape], np.float32)
        for item in session.get_inputs()
    }
    for _ in range(options.warmup):
        session.run(None, feeds)
    samples = []
    for _ in range(options.runs):
        start = time.perf_counter_ns()
        session.run(None, feeds)
        samples.append(time.perf_counter_ns() - start)
    figures = {"median_ns": float(np.median(samples)), "import_s": imported - begin, "load_s": loaded - imported}
    print(json.dumps(figures | {"samples": len(samples)}))


if __name__ == "__main__":
    main()
