"""Ten million samples in a file in, the time and memory to summarise them out.

Run it with `python benchmarks/summary_speed.py`: it writes five repetitions of two million samples each to a temporary
folder, then summarises them in fresh processes and prints the best and the median of these.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPETITIONS = 5
TARGET_S, TARGET_MIB = 2.0, 1024.0
_JOB = {
    "id": "bench", "experiment_id": "bench", "name": "bench",
    "workload": {"kind": "model", "model": "zoo:mlp", "engine": "onnxruntime"},
}  # fmt: skip


def write_samples(path: Path, total: int) -> None:
    """Write lognormal durations around a millisecond with a warm-up, a little run-to-run spread and rare spikes."""
    import numpy as np

    from prony.instruments.samples import sample_frame

    rng = np.random.default_rng(20)
    each = total // REPETITIONS
    rows: list[tuple[int, str, Any, Any]] = []
    for repetition in range(REPETITIONS):
        durations = 1e6 * np.exp(rng.normal(0, 0.02) + rng.normal(0, 0.08, each))
        durations[: each // 50] *= 1.3
        durations[rng.random(each) < 0.001] *= 4
        ends = np.cumsum(durations.astype(np.int64) + 300)
        begins = ends - durations.astype(np.int64)
        rows += [(repetition, "load", [0], [10**7]), (repetition, "first", [10**7], [10**7 + 2 * 10**6])]
        rows.append((repetition, "measure", begins, ends))
    sample_frame(rows).write_parquet(path)


def summarise_file(path: Path) -> dict[str, float]:
    """Load and summarise in this process; return seconds by step and the kernel's high-water mark of memory."""
    begin = time.perf_counter()
    import numpy as np
    import polars as pl

    from prony.instruments.samples import read_frame
    from prony.kinds.model.summary import summarise
    from prony.model.job import Job
    from prony.model.result import Repetition, Result, ResultState

    del np, pl  # imported here so that their cost is counted with the imports
    imported = time.perf_counter()
    baseline_mib = _peak_mib()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    repetitions = tuple(Repetition(index=index, started_at=at) for index in range(REPETITIONS))
    result = Result(
        prony_version="0", job_id="bench", experiment_id="bench", state=ResultState.COMPLETE, started_at=at,
        repetitions=repetitions,
    )  # fmt: skip
    samples = read_frame(path.parent, path.name)
    loaded = time.perf_counter()
    summary = summarise(Job.read(_JOB), result, samples)
    done = time.perf_counter()
    return {
        "import_s": imported - begin, "load_s": loaded - imported, "summarise_s": done - loaded,
        "baseline_mib": baseline_mib, "peak_mib": _peak_mib(), "samples": float(samples.height),
        "estimates": float(len(summary.estimates)),
    }  # fmt: skip


def _peak_mib() -> float:
    """Return the high-water mark of this process; `ru_maxrss` would begin with that of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**10
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(summarise_file(options.child)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.parquet"
        write_samples(path, options.samples)
        size_mib = path.stat().st_size / 2**20
        command = [sys.executable, __file__, "--child", str(path)]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(options.times)]
    return report(runs, size_mib)


def report(runs: list[dict[str, float]], size_mib: float) -> int:
    """Print the table with each figure against its target; 1 if a target is missed."""
    for run in runs:
        run["work_s"] = run["load_s"] + run["summarise_s"]
        run["total_s"] = run["work_s"] + run["import_s"]
    print(f"{runs[0]['samples']:,.0f} samples, {size_mib:.0f} MiB of Parquet, {len(runs)} fresh processes")
    print(f"{'':34}{'best':>9}{'median':>9}{'target':>9}{'ratio':>8}")
    targets = {"work_s": TARGET_S, "total_s": TARGET_S, "peak_mib": TARGET_MIB}
    titles = {
        "import_s": "imports, s", "load_s": "read the file, s", "summarise_s": "summarise, s",
        "work_s": "read and summarise, s", "total_s": "with imports, s",
        "baseline_mib": "peak memory after imports, MiB", "peak_mib": "peak memory in all, MiB",
    }  # fmt: skip
    missed = False
    for name, title in titles.items():
        values = [run[name] for run in runs]
        median = statistics.median(values)
        target = targets.get(name)
        missed |= target is not None and median > target
        goal = f"{target:9.0f}{median / target:8.2f}" if target else ""
        print(f"{title:34}{min(values):9.2f}{median:9.2f}{goal}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
