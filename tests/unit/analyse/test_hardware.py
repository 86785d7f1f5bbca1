"""Readings of bare hardware become numbers, shares of a peak and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from prony.analyse.peaks import find_peak
from prony.kinds.hardware.readings import best_operation, headline_metric, reading_frame
from prony.kinds.hardware.report import PART as REPORT
from prony.kinds.hardware.schema import HardwareWorkload
from prony.kinds.hardware.summary import PART as SUMMARY
from prony.model.estimate import Grade, Summary
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import Effective, Result
from prony.report.table import metric_heading, reading_tables

from .jobs import environment, phase, repetition, result

H200 = "NVIDIA H200"
Readings = Mapping[str, Sequence[float]]


def job_of(test: str, **more: Any) -> Job:
    workload = HardwareWorkload.model_validate({"kind": "hardware", "test": test} | more)
    return Job(id="j1", experiment_id="e1", name="hardware", workload=workload, measure=Measure(repeats=5))


def measured(job: Job, readings: Readings, device: str, **details: str) -> tuple[Result, Summary]:
    """Return the summary of runs that each read these values, a thousandth apart."""
    import polars as pl

    effective = Effective(
        engine="torch", engine_version="2", python="3", device=device, precision="several", details=details
    )
    repetitions = [repetition(index, phases={"measure": phase()}) for index in range(5)]
    frames = []
    for index in range(5):
        told = [
            {"metric": name.partition("/")[0], "operation": name.partition("/")[2], "at_ns": index,
             "values": [value * (1 + index / 1000) for value in values]}
            for name, values in readings.items()
        ]  # fmt: skip
        frames.append(reading_frame(index, told))
    found = result(repetitions, effective=effective, model=None, check=None)
    return found, SUMMARY.summarise(job, found, pl.concat(frames))


def codes(summary: Summary) -> dict[str, Grade]:
    return {one.code: one.grade for one in summary.verdict.reasons}


def test_a_run_is_the_median_of_its_samples_and_the_interval_is_over_runs() -> None:
    _, found = measured(job_of("cpu-memory"), {"copy_gb_s": [9, 10, 30], "copy_gb_s/threads=1": [5]}, "host memory")
    estimate = found.estimates["copy_gb_s.p50"]
    assert estimate.value == pytest.approx(10.02)
    assert [estimate.low, estimate.high] == pytest.approx([10.0, 10.04])
    assert found.estimates["copy_gb_s/threads=1.p50"].value == pytest.approx(5.01)
    assert found.headline == "copy_gb_s.p50"
    assert found.verdict.grade is Grade.VALID


def test_the_best_shape_is_published_under_the_name_of_the_metric() -> None:
    readings = {"gemm_bf16_tflops/1024x1024x1024": [300], "gemm_bf16_tflops/8192x8192x8192": [780]}
    _, found = measured(job_of("gpu-gemm"), readings, H200)
    assert found.estimates["gemm_bf16_tflops.p50"].value == pytest.approx(780 * 1.002)
    assert found.estimates["gemm_bf16_tflops/1024x1024x1024.p50"].value == pytest.approx(300.6)
    assert found.estimates["gemm_bf16_tflops_of_peak.p50"].value == pytest.approx(780 * 1.002 / 989)
    assert codes(found) == {}


def test_what_is_faster_than_the_hardware_can_be_is_void() -> None:
    _, found = measured(job_of("gpu-memory"), {"copy_gb_s": [5100]}, H200)
    assert codes(found) == {"above_peak": Grade.VOID}
    assert "106 % of the peak, 4800 GB/s" in found.verdict.reasons[0].text
    assert found.verdict.reasons[0].text.endswith("Update its driver, and measure again.")


def test_a_share_of_up_to_five_per_cent_above_the_peak_is_let_pass() -> None:
    _, found = measured(job_of("gpu-memory"), {"copy_gb_s": [4900]}, H200)
    assert codes(found) == {}


def test_a_peak_that_nobody_verified_makes_a_result_suspect_at_most() -> None:
    _, found = measured(job_of("gpu-memory"), {"copy_gb_s": [900]}, "Tesla T4")
    assert codes(found) == {"above_peak": Grade.SUSPECT}
    assert "not verified" in found.verdict.reasons[0].text


def test_a_copy_within_the_cache_is_not_held_against_the_memory() -> None:
    _, found = measured(job_of("gpu-memory"), {"copy_gb_s": [4300], "cache_copy_gb_s": [9000]}, H200)
    assert codes(found) == {}


@pytest.mark.parametrize(
    ("device", "memory"),
    [
        ("NVIDIA H200", 4800),
        ("NVIDIA H100 80GB HBM3", 3350),
        ("NVIDIA H100 PCIe", 2000),
        ("NVIDIA A100-SXM4-80GB", 2000),
        ("NVIDIA A10", 600),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA A10G", None),
        ("NVIDIA H200 MIG 1g.18gb", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("host memory", None),
    ],
)
def test_a_peak_is_found_by_the_cards_whole_name(device: str, memory: float | None) -> None:
    found = find_peak(device, "copy_gb_s")
    assert (found and found.value) == memory


def test_launches_and_copies_to_the_host_have_no_peak() -> None:
    assert [find_peak(H200, name) for name in ("launch_us", "host_to_device_gb_s", "cache_copy_gb_s")] == [None] * 3


def test_a_disk_whose_page_cache_was_not_bypassed_is_suspect() -> None:
    details = {"page cache": "not bypassed: the file system refuses O_DIRECT (Invalid argument)"}
    _, found = measured(job_of("disk"), {"read_mb_s": [2000]}, "tmpfs (tmpfs)", **details)
    assert codes(found) == {"page_cache": Grade.SUSPECT}
    assert "refuses O_DIRECT" in found.verdict.reasons[0].text


def test_arrays_that_fit_a_cache_are_suspect() -> None:
    details = {"array": "1 MB, with a last-level cache of 35 MB: too small, the cache helps"}
    _, found = measured(job_of("cpu-memory"), {"copy_gb_s": [50]}, "host memory", **details)
    assert codes(found) == {"small_arrays": Grade.SUSPECT}


def test_a_format_that_does_not_run_is_named_with_its_reason() -> None:
    details = {"fp8 left out": "does not run on this machine: no such kernel"}
    _, found = measured(job_of("gpu-gemm"), {"gemm_bf16_tflops/64x64x64": [100]}, H200, **details)
    assert codes(found) == {"left_out": Grade.VALID}
    assert found.verdict.reasons[0].text == "fp8 was skipped: it does not run on this machine: no such kernel."


def test_a_report_tells_each_reading_with_its_peak_and_where_that_comes_from() -> None:
    job = job_of("gpu-gemm")
    found, summary = measured(job, {"gemm_bf16_tflops/8192x8192x8192": [780], "gemm_fp64_tflops/64x64x64": [50]}, H200)
    entry = Entry(job=job, result=found, summary=summary, environment=environment({}), folder="")
    sections = REPORT.sections(entry)
    readings = sections[0].tables[0].rows
    assert readings[0][:2] == ("gpu-gemm cuda", "gemm bf16 8192x8192x8192")
    assert readings[0][3:] == ("TFLOP/s", "79 % of 989")
    assert readings[1][4] == ""
    (together,) = reading_tables([entry, entry])
    assert together.rows == (*readings, *readings)
    assert "ml-engineering" in str(sections[0].facts)


def test_readings_without_a_peak_have_no_column_for_it() -> None:
    job = job_of("cpu-memory")
    found, summary = measured(job, {"copy_gb_s": [10]}, "host memory")
    entry = Entry(job=job, result=found, summary=summary, environment=environment({}), folder="")
    (table,) = reading_tables([entry])
    assert table.headings == ("test", "reading", "value", "unit")
    assert table.numeric == (2,)


def test_columns_name_a_reading_without_its_unit() -> None:
    assert metric_heading("copy_gb_s.p50") == "copy"
    assert metric_heading("gemm_fp32_tflops/64x64x64.p50") == "gemm_fp32 64x64x64"
    assert metric_heading("loss_s") == "loss"


def test_bf16_stands_for_a_gpus_products_and_fp32_for_a_cpus() -> None:
    names = ["gemm_bf16_tflops", "gemm_fp32_tflops"]
    assert headline_metric(names, is_of_gpu=True) == "gemm_bf16_tflops"
    assert headline_metric(names, is_of_gpu=False) == "gemm_fp32_tflops"
    assert headline_metric([], is_of_gpu=True) is None


def test_the_operation_without_a_name_stands_for_a_metric() -> None:
    assert best_operation({"": {0: 1.0}, "threads=1": {0: 2.0}}) == ""
    assert best_operation({"a": {0: 1.0}, "b": {0: 2.0}}) == "b"
    assert best_operation({"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0}}) == "a"


@pytest.mark.parametrize("more", [{"shapes": "model"}, {"layers": ["1x2x3"]}, {"layers": ["1x2"], "shapes": "model"}])
def test_layers_and_their_shapes_go_together(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        job_of("cpu-gemm", **more)
