"""Titles of metrics: what pages and sentences for people call a number that programs know by its key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from prony.model.metric import key_of
from prony.ports.workload import kind_names, shown_kind

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
# The other metrics of jobs, by the metric alone: no table has a column of their own for them.
OTHER_TITLES: dict[str, str] = {
    "bytes_per_s": "Reply bytes",
    "cache_hit_share": "Cache hits",
    "cached_share": "Cached prompt tokens",
    "capture_ms": "Graph capture",
    "client_cpu_percent": "Client CPU",
    "compile_ms": "Compilation",
    "copy_in_gb_s": "Copy-in rate",
    "copy_in_ms": "Copy in",
    "copy_out_gb_s": "Copy-out rate",
    "copy_out_ms": "Copy out",
    "cpu_s": "CPU time",
    "e2e_with_failures_ms": "End to end with failures",
    "energy_net_j": "Net energy",
    "first_inference_ms": "First inference",
    "goodput_share": "Goodput share",
    "gpu_clock_mhz": "GPU clock",
    "gpu_held_power": "GPU limited by power",
    "gpu_held_thermal": "GPU limited by heat",
    "gpu_sm_percent": "GPU multiprocessors",
    "gpu_temperature_c": "GPU temperature",
    "idle_power_w": "Idle power",
    "import_ms": "Import",
    "in_flight": "Requests in flight",
    "inference_cpu_ms": "Inference CPU time",
    "input_tokens_per_s": "Input tokens",
    "items_per_s": "Items",
    "launch_share": "Launch share",
    "load_ms": "Model load",
    "power_w": "Power",
    "quality": "Quality",
    "request_rate_per_s": "Request rate",
    "roundtrip_ms": "Round trip",
    "rss_anon_mib": "Anonymous memory",
    "rss_baseline_mib": "Memory before load",
    "rss_file_mib": "File-backed memory",
    "rss_load_peak_mib": "Peak memory of load",
    "rss_peak_mib": "Peak memory",
    "sent_late_ms": "Sent late",
    "service_ms": "Service time",
    "tokens_per_s_per_user": "Tokens per user",
    "total_tokens_per_s": "All tokens",
    "tpot_ms": "Time per token",
    "ttfb_ms": "First byte",
    "ttft_content_ms": "First answer token",
    "vram_device_mib": "GPU memory of the card",
    "vram_peak_mib": "Peak GPU memory",
    "vram_reserved_mib": "Reserved GPU memory",
    "vram_weights_mib": "GPU memory of weights",
    "wall_s": "Wall time",
}
# What a calibration of a machine and of Prony itself has.
CALIBRATION_TITLES: dict[str, str] = {
    "clock_cost_ns": "Clock reading",
    "clock_resolution_ns": "Clock resolution",
    "false_alarm_rate": "False alarms",
    "harness_overhead_us": "Harness overhead",
    "kernel_ms": "Canary",
    "kernel_noise": "Canary noise",
    "load_itl_error_ms": "Error of token gaps",
    "load_rate_per_s": "Client request rate",
    "load_request_cpu_us": "Client CPU of a request",
    "load_sent_late_ms": "Client delay",
    "load_ttft_error_ms": "Error of first token",
    "repetition_cost_ms": "Cost of a repetition",
    "run_drift": "Drift",
    "run_lag1": "Correlation of neighbouring runs",
    "run_noise": "Noise of runs",
    "seen_with_10_runs": "Change seen with 10 runs",
    "seen_with_20_runs": "Change seen with 20 runs",
    "seen_with_30_runs": "Change seen with 30 runs",
    "seen_with_5_runs": "Change seen with 5 runs",
    "session_spread": "Spread of whole results",
}
# `images_per_s` keeps its end: `images_per` is no name.
_UNIT = re.compile(r"(?<=.)(?<!_per)_(gb_s|mb_s|tflops|tops|ns|us|ms|s|mib|j|w)$")
_USUAL = ("p50", "mean")


def name_without_unit(metric: str) -> str:
    """Return a metric's name without the unit that its value has anyway."""
    return _UNIT.sub("", metric)


@cache
def metric_titles() -> Mapping[str, str]:
    """Return what people call a number, by its key or by its metric alone, of all kinds that are installed."""
    columns = [one for kind in kind_names() for one in shown_kind(kind).report.columns]
    said = {one.key: f"{one.heading[:1].upper()}{one.heading[1:]}" for one in reversed(columns)}
    known = MEASURED_TITLES | MACHINE_TITLES | OTHER_TITLES | CALIBRATION_TITLES
    # Two numbers of one experiment never go by the same title.
    return MappingProxyType({key: title for key, title in said.items() if title not in known.values()} | known)


def metric_title(key: str) -> str:
    """Return the title of a key such as `e2e_ms/insert.p99`: `End to end insert p99`; else its parts without the unit.

    The web pages make titles of keys in the same way.
    """
    titles, parts = metric_titles(), key_of(key)
    if key in titles:
        return titles[key]
    of_metric = titles.get(parts.metric)
    title = of_metric or next((titles[one] for one in _usual_keys(parts.metric) if one in titles), "")
    title = title.removesuffix(" p50") or name_without_unit(parts.metric)
    statistic = "" if of_metric and parts.statistic in _USUAL else parts.statistic
    return " ".join(part for part in (title, parts.operation, statistic) if part)


def _usual_keys(metric: str) -> list[str]:
    return [f"{metric}.{statistic}" for statistic in _USUAL]
