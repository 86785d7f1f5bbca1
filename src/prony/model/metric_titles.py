"""Titles of metrics: what pages and sentences for people call a number that programs know by its key."""

from __future__ import annotations

import re

from prony.model.metric import key_of

# The metrics that say most, in the order in which tables show them.
MEASURED_TITLES: dict[str, str] = {
    "inference_ms.p50": "Inference p50",
    "inference_ms.p99": "Inference p99",
    "highest_load.p50": "Load held",
    "e2e_ms.p50": "End to end p50",
    "e2e_ms.p99": "End to end p99",
    "throughput_per_s.p50": "Throughput",
    "error_rate.mean": "Errors",
    "goodput_per_s.p50": "Goodput",
    "output_tokens_per_s.p50": "Output tokens",
    "ttft_ms.p50": "First token p50",
    "ttft_ms.p99": "First token p99",
    "itl_ms.p50": "Between tokens p50",
    "cold_start_ms.p50": "Cold start",
    "memory_mib.p50": "Memory",
    "energy_j.p50": "Energy",
    "device_ms.p50": "Device time p50",
    "launch_ms.p50": "Launch p50",
    "hot_ms.p50": "Back to back",
    "vram_run_peak_mib.p50": "GPU memory",
}
# What jobs of every kind have.
MACHINE_TITLES: dict[str, str] = {
    "cpu_percent.p50": "CPU",
    "machine_cpu_percent.p50": "Machine CPU",
    "gpu_percent.p50": "GPU",
    "gpu_memory_percent.p50": "GPU memory busy",
    "gpu_tensor_percent.p50": "Tensor cores",
    "gpu_dram_percent.p50": "GPU bandwidth",
}
_TITLES = MEASURED_TITLES | MACHINE_TITLES
_UNIT = re.compile(r"(?<=.)_(gb_s|mb_s|tflops|tops|ns|us|ms|s|mib|j|w)$")


def name_without_unit(metric: str) -> str:
    """Return a metric's name without the unit that its value has anyway."""
    return _UNIT.sub("", metric)


def metric_title(key: str) -> str:
    """Return the title of a key such as `e2e_ms/insert.p99`: `End to end insert p99`; else its parts without the unit.

    The web pages make titles of keys in the same way.
    """
    if key in _TITLES:
        return _TITLES[key]
    parts = key_of(key)
    title = _TITLES.get(f"{parts.metric}.p50", "").removesuffix(" p50") or name_without_unit(parts.metric)
    return " ".join(part for part in (title, parts.operation, parts.statistic) if part)
