"""Every metric that Prony publishes: its unit, its meaning and which way is better."""

from __future__ import annotations

from typing import Literal

from prony.model.base import Noun

Better = Literal["lower", "higher", "neither"]


class Metric(Noun):
    name: str
    unit: str
    better: Better
    meaning: str


_TABLE: tuple[tuple[str, str, Better, str], ...] = (
    (
        "load_ms",
        "ms",
        "lower",
        "file on disk to ready to run, graph compilation included, in a fresh process",
    ),
    (
        "first_inference_ms",
        "ms",
        "lower",
        "wall time of the first inference after loading, apart from the warm ones",
    ),
    ("cold_start_ms", "ms", "lower", "load and first inference together, of the same process"),
    (
        "inference_ms",
        "ms",
        "lower",
        "wall time of one warm inference: inputs bound, outputs ready on the host",
    ),
    ("throughput_per_s", "1/s", "higher", "items completed in the measured window divided by its wall time"),
    ("inference_cpu_ms", "ms", "lower", "CPU time of all threads of the process for one warm inference"),
    ("import_ms", "ms", "lower", "time to import the engine into a fresh interpreter"),
    ("memory_mib", "MiB", "lower", "peak resident memory while measuring, less the baseline after import"),
    ("rss_baseline_mib", "MiB", "lower", "resident memory of the process after importing the engine"),
    ("rss_load_peak_mib", "MiB", "lower", "kernel's high-water mark of resident memory while loading"),
    ("rss_peak_mib", "MiB", "lower", "kernel's high-water mark of resident memory while measuring"),
    ("rss_anon_mib", "MiB", "lower", "anonymous resident memory at the end of measuring"),
    ("rss_file_mib", "MiB", "lower", "file-backed resident memory at the end of measuring"),
    ("vram_peak_mib", "MiB", "lower", "highest device memory in use by the process while measuring"),
    ("energy_j", "J", "lower", "energy counters' difference over the measured window for one inference"),
    ("power_w", "W", "lower", "energy counters' difference over the measured window, by its wall time"),
    ("clock_resolution_ns", "ns", "lower", "smallest step that the clock shows"),
    ("clock_cost_ns", "ns", "lower", "time that one reading of the clock takes"),
    ("harness_overhead_us", "us", "lower", "time that Prony's loop adds inside the timer to one inference"),
    ("repetition_cost_ms", "ms", "lower", "wall time of one repetition of an engine that does nothing"),
    ("kernel_ms", "ms", "lower", "a fixed kernel of arithmetic, the canary of this machine's speed"),
    (
        "kernel_noise",
        "1",
        "lower",
        "robust coefficient of variation of the fixed kernel between fresh processes",
    ),
)

METRICS: dict[str, Metric] = {
    name: Metric(name=name, unit=unit, better=better, meaning=meaning) for name, unit, better, meaning in _TABLE
}
# The statistics that follow a metric's name after a dot, as in `inference_ms.p50`.
STATISTICS = ("p50", "mean", "min", "max", "sd", "p90", "p95", "p99", "p99.9")
HEADLINE = "inference_ms.p50"


def metric_of(key: str) -> Metric:
    """Return the metric behind a key such as `inference_ms.p99`."""
    return METRICS[key.split(".", 1)[0]]
