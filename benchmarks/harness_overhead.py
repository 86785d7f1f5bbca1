"""What Prony adds to one inference, beside a loop written by hand on the same model in the same run.

Bounds: within 2 % for models over a millisecond; less than 2 microseconds on one of about ten microseconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.bench import HAND_LOOP, describe, in_turns, ratio_text, run, scratch, zoo_file
from prony.runner.child.wire import ChildOrder
from prony.runner.host import EngineHost, Watch

PAIRS = 11
# model -> inferences in each process
MODELS = {"noop": 20_000, "mlp": 2_000, "mobilenet-v2": 60, "tiny-yolov2": 15}


def by_hand(model: Path, runs: int) -> float:
    command = [sys.executable, str(HAND_LOOP), str(model), "--runs", str(runs), "--warmup", str(max(5, runs // 5))]
    return float(json.loads(run(command).output)["median_ns"])


def by_prony(host: EngineHost, model: Path, runs: int, samples: Path) -> float:
    order = ChildOrder(op="measure", model=str(model), runs=runs, warmup=max(5, runs // 5), samples=str(samples))
    answer = host.perform(order, Watch(timeout_ns=120 * 10**9))
    if answer.done is None:
        sys.exit(f"no measurement: {answer.failure}")
    count = answer.done["counts"]["measure"]
    stamps = np.fromfile(samples, dtype=np.int64)[-2 * count :]
    return float(np.median(stamps[count:] - stamps[:count]))


def main() -> int:
    describe(__doc__).parse_args()
    print(f"one thread, {PAIRS} pairs of fresh processes in turns; median of medians, ratio as median [range]\n")
    print(f"{'model':14}{'by hand':>12}{'Prony':>12}{'added':>11}   ratio")
    missed = False
    with scratch() as folder, EngineHost("onnxruntime", sys.executable, folder / "log") as host:
        for name, runs in MODELS.items():
            model = zoo_file(name, folder)
            hand, prony = in_turns(
                PAIRS,
                lambda model=model, runs=runs: by_hand(model, runs),  # type: ignore[misc]
                lambda model=model, runs=runs: by_prony(host, model, runs, folder / "samples"),  # type: ignore[misc]
            )
            hand_us, added_us = median(hand) / 1e3, median(p - h for p, h in zip(prony, hand, strict=True)) / 1e3
            relative = median(p / h for p, h in zip(prony, hand, strict=True)) - 1
            missed |= added_us >= 2 if hand_us < 1000 else relative > 0.02
            row = f"{name:14}{hand_us:9.1f} us{median(prony) / 1e3:9.1f} us{added_us:+8.2f} us"
            print(f"{row}   {ratio_text(prony, hand)}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
