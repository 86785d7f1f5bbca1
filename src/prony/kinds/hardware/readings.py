"""Readings of hardware tests: their metrics, their rows in `samples.parquet`, and one number a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from prony.model.metric import Better, Metric

if TYPE_CHECKING:
    import polars as pl

_Row = tuple[str, str, Better, str]
OF_PEAK = "_of_peak"

_TABLE: tuple[_Row, ...] = (
    ("copy_gb_s", "GB/s", "higher", "memory copy: bytes read plus bytes written"),
    ("triad_gb_s", "GB/s", "higher", "a = b + s c over arrays: bytes of two reads and one write"),
    ("axpy_gb_s", "GB/s", "higher", "a = a + s c over arrays: bytes of two reads and one write"),
    ("read_gb_s", "GB/s", "higher", "sum over memory: bytes read"),
    ("write_gb_s", "GB/s", "higher", "memory fill: bytes written"),
    ("cache_copy_gb_s", "GB/s", "higher", "a copy that stays in a GPU's L2 cache: bytes read plus bytes written"),
    ("read_mb_s", "MB/s", "higher", "sequential read of a file, in blocks of 1 MiB"),
    ("write_mb_s", "MB/s", "higher", "sequential write of a file, in blocks of 1 MiB, until it is on the disk"),
    ("random_read_iops", "1/s", "higher", "random reads of 4 KiB from a file"),
    ("random_write_iops", "1/s", "higher", "random writes of 4 KiB to a file"),
    ("host_to_device_gb_s", "GB/s", "higher", "copies from the host's memory to the GPU's"),
    ("device_to_host_gb_s", "GB/s", "higher", "copies from the GPU's memory to the host's"),
    ("both_ways_gb_s", "GB/s", "higher", "copies in both directions at once, both counted"),
    ("launch_us", "us", "lower", "queueing an empty kernel, without waiting for it"),
    ("launch_waited_us", "us", "lower", "queueing an empty kernel and waiting for it"),
    ("graph_launch_us", "us", "lower", "an empty kernel as one of 100 in a graph"),
    ("allocate_us", "us", "lower", "allocating 64 MiB on a GPU from the allocator's cache; `/driver`: from the driver"),
    ("all_reduce_gb_s", "GB/s", "higher", "sums over all GPUs by NCCL, as bus bandwidth; after the slash: the buffer"),
    ("all_reduce_us", "us", "lower", "a sum of 64 KiB over all GPUs by NCCL"),
    *(
        (f"gemm_{name}_tflops", "TFLOP/s", "higher", f"a matrix product in {name}, for the best shape")
        for name in ("bf16", "fp16", "fp8", "tf32", "fp32", "fp64")
    ),
    ("gemm_int8_tops", "TOP/s", "higher", "a matrix product in int8 with sums in int32, for the best shape"),
)  # fmt: skip
_SHARES: tuple[_Row, ...] = tuple(
    (f"{name}{OF_PEAK}", "1", "higher", f"{name} divided by the published peak of the GPU")
    for name, _, better, _ in _TABLE
    if better == "higher"
)
HARDWARE_METRICS: dict[str, Metric] = {
    name: Metric(name=name, unit=unit, better=better, meaning=meaning)
    for name, unit, better, meaning in (*_TABLE, *_SHARES)
}
METRIC_UNITS: dict[str, str] = {name: metric.unit for name, metric in HARDWARE_METRICS.items()}
# What stands for a test: the first of these that it has.
_HEADLINES = (
    "copy_gb_s", "read_mb_s", "host_to_device_gb_s", "launch_us", "all_reduce_gb_s", "gemm_bf16_tflops",
    "gemm_fp32_tflops",
)  # fmt: skip
_CPU_HEADLINES = ("gemm_fp32_tflops",)

Series = dict[str, dict[str, dict[int, float]]]  # metric -> operation -> repetition -> the run's number


def reading_frame(repetition: int, readings: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a row for each sample of one run; its name is the metric, and the operation behind a slash."""
    from prony.instruments.samples import value_frame

    return value_frame(repetition, [(_name(one), one["at_ns"], value) for one in readings for value in one["values"]])


def _name(reading: Mapping[str, Any]) -> str:
    return f"{reading['metric']}/{reading['operation']}" if reading["operation"] else str(reading["metric"])


def series_of_samples(samples: pl.DataFrame) -> Series:
    """Return the median of each run, of every metric and operation in the order in which they were read."""
    import polars as pl

    found: Series = {}
    if "name" not in samples.columns:
        return found
    grouped = samples.group_by("name", "repetition", maintain_order=True).agg(pl.col("value").median())
    for name, repetition, value in grouped.iter_rows():
        metric, _, operation = name.partition("/")
        found.setdefault(metric, {}).setdefault(operation, {})[int(repetition)] = float(value)
    return found


def best_operation(operations: Mapping[str, Mapping[int, float]]) -> str:
    """Return the operation that stands for a metric: the one without a name, else that with the highest median.

    One that not all runs have is left aside: in the others it was too slow to be tried.
    """
    most = max(map(len, operations.values()))
    common = [name for name, runs in operations.items() if len(runs) == most]
    return "" if "" in operations else max(common, key=lambda name: median(operations[name].values()))


def headline_metric(metrics: Sequence[str], *, is_of_gpu: bool) -> str | None:
    """Return the metric that stands for a test, of those that it has."""
    wanted = _HEADLINES if is_of_gpu else (*_CPU_HEADLINES, *_HEADLINES)
    return next((name for name in (*wanted, *metrics) if name in metrics), None)
