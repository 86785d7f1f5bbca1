"""What Prony measured, in the fields that a SARK worker reports."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from chaos.work import record
from prony.app.results import summary_of
from prony.compat.sark.agent.link import busiest_gpu_percent, result_of
from prony.store.result_tar import pack


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recording"))


def test_every_figure_is_the_estimate_that_it_stands_for(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "result.tar")
    result = result_of(tmp_path / "result.tar", "worker-1", "bench 1")
    estimates = {name: one.value for name, one in summary_of(folder).estimates.items()}
    assert (result.status, result.worker_id, result.compute_units) == ("Complete", "worker-1", "CPU (ONNX)")
    assert result.device_name == "bench 1"
    assert result.inference_ms_median == estimates["inference_ms.p50"]
    assert result.inference_ms_average == estimates["inference_ms.mean"]
    assert result.inference_ms_first == estimates["first_inference_ms.p50"]
    assert result.load_ms_median == estimates["load_ms.p50"]
    assert result.peak_load_ram_usage == estimates["rss_load_peak_mib.p50"]
    assert result.peak_inference_ram_usage == estimates["rss_peak_mib.p50"]
    assert result.average_inference_gpu_percent is None
    assert result.file_size


def test_a_number_that_may_not_be_quoted_says_why(folder: Path, tmp_path: Path) -> None:
    pack(folder, tmp_path / "result.tar")
    result = result_of(tmp_path / "result.tar", "worker-1", "bench 1")
    verdict = summary_of(folder).verdict
    assert (result.remark or "").startswith(f"{verdict.grade.value}:")


def test_the_gpu_that_was_busiest_is_told() -> None:
    rows = [("gpu0_busy", 0.1), ("gpu0_busy", 0.3), ("gpu1_busy", 0.5), ("gpu1_busy", 1.0), ("gpu1_power_w", 300.0)]
    telemetry = pl.DataFrame(rows, schema=["counter", "value"], orient="row")
    assert busiest_gpu_percent(telemetry) == pytest.approx(75.0)
    assert busiest_gpu_percent(telemetry.clear()) is None
