"""Measure a job's figures as a Dumont worker does, in two fresh processes or from a recorded run."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

# What a worker reported of a small model on a machine with two cores.
RECORDED: Mapping[str, float] = {
    "LoadMsMedian": 4.512, "LoadMsMin": 4.512, "LoadMsMax": 4.512, "LoadMsAverage": 4.512, "LoadMsStdDev": 0.0,
    "LoadMsFirst": 4.512, "PeakLoadRamUsage": 66.09, "AverageLoadCpuPercent": 81.3, "InferenceMsMedian": 0.021,
    "InferenceMsMin": 0.018, "InferenceMsMax": 17.31, "InferenceMsAverage": 1.751, "InferenceMsStdDev": 5.187,
    "InferenceMsFirst": 17.31, "PeakInferenceRamUsage": 66.42, "AverageInferenceCpuPercent": 92.8,
}  # fmt: skip


def recorded(job: Mapping[str, Any]) -> dict[str, Any]:
    name = str(job["model_url"]).rpartition("/")[2]
    return {"FileName": name, "FileSize": 2707, **RECORDED}


def measured(job: Mapping[str, Any]) -> dict[str, Any]:
    """Download the model and run it. Raises whatever goes wrong: that becomes the remark."""
    url, unit = str(job["model_url"]), str(job.get("compute_unit", "CPU"))
    with tempfile.TemporaryDirectory(prefix="dumont-") as folder:
        path = Path(folder, url.rpartition("/")[2])
        with urllib.request.urlopen(url) as source:
            path.write_bytes(source.read())
        shared = ["--model-path", str(path), "--compute-unit", unit]
        load, load_ram, load_cpu = _task(["--task", "load", *shared])
        runs = str(job.get("num_inference_runs", 10))
        infer, infer_ram, infer_cpu = _task(["--task", "infer", *shared, "--num-runs", runs])
        return {
            "FileName": path.name, "FileSize": path.stat().st_size,
            **load, "PeakLoadRamUsage": load_ram, "AverageLoadCpuPercent": load_cpu,
            **infer, "PeakInferenceRamUsage": infer_ram, "AverageInferenceCpuPercent": infer_cpu,
        }  # fmt: skip


def _task(arguments: list[str]) -> tuple[dict[str, float], float, float]:
    process = subprocess.Popen(
        [sys.executable, "-m", "dumont.task", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    peak, shares = [0.0], [0.0]
    watching = threading.Thread(target=_watch, args=(process, peak, shares), daemon=True)
    watching.start()
    said, error = process.communicate()
    watching.join(1.0)
    if process.returncode:
        raise RuntimeError(f"Benchmark task failed: {error.decode().strip()}")
    return json.loads(said), max(peak), sum(shares) / len(shares)


def _watch(process: subprocess.Popen[bytes], peak: list[float], shares: list[float]) -> None:
    """Look from outside, every few milliseconds."""
    try:
        seen = psutil.Process(process.pid)
        while process.poll() is None:
            peak.append(seen.memory_info().rss / 2**20)
            shares.append(seen.cpu_percent(interval=0.005))
    except psutil.Error:
        return
