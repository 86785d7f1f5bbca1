"""Results in the shapes of RUCKUS, and its names for who can run an experiment."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from report.experiments import data

from prony.compat.ruckus.compatibility import describe_compatibility
from prony.compat.ruckus.exporter import WRITER
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.agent import Agent, AgentState, Capabilities
from prony.model.place import Demand, Lack
from prony.model.queue import Compatibility, Fit, LotFit
from prony.model.result import Failure, Phase, Repetition
from prony.ports.exporter import ExportedLoad

AT = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)


def written(folder: Path) -> dict[str, Any]:
    """Write a job of eight runs, the sixth of which failed and the last of which stands apart."""
    entry = data(folder, batches=(1,), repeats=1, runs=2).entries[0]
    phase = {"measure": Phase(begin_ns=0, end_ns=2 * 10**9, cpu_ns=0)}
    runs = [Repetition(index=index, started_at=AT, phases=phase) for index in range(8)]
    failure = Failure(code="timeout", message="it took too long")
    runs[5] = runs[5].model_copy(update={"state": "failed", "failure": failure})
    used = (0, 1, 2, 3, 4, 6, 7)
    numbers = {"inference_ms.p50": (1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 9.0)}
    entry = entry.model_copy(
        update={
            "result": entry.result.model_copy(update={"repetitions": tuple(runs)}),
            "summary": entry.summary.model_copy(update={"used": used, "runs": numbers}),
        }
    )
    (path,) = WRITER(ExportedLoad(entry), folder)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_job_is_written_as_a_multi_run_result_with_failures_and_ids_of_outliers(tmp_path: Path) -> None:
    found = written(tmp_path)
    assert (found["total_runs"], found["successful_runs"], found["failed_runs"]) == (8, 7, 1)
    statistics = found["summary_stats"]["inference_ms.p50"]
    assert statistics["outliers"] == [7]
    assert statistics["count"] == len(statistics["raw_values"]) == 7
    assert statistics["min"] <= statistics["median"] <= statistics["mean"] <= statistics["max"]
    failed = found["individual_runs"][5]
    assert (failed["run_id"], failed["error"], failed["error_type"]) == (5, "it took too long", "timeout")
    assert failed["metrics"] == {}
    last = found["individual_runs"][7]
    assert (last["duration_seconds"], last["metrics"]) == (2.0, {"inference_ms.p50": 9.0})
    assert found["experiment_id"].startswith("exp_")
    assert "verdict" in found["prony"]


@pytest.mark.parametrize("test", ["gpu-gemm", "gpu-memory", "cpu-gemm"])
def test_results_of_hardware_have_the_names_and_units_of_ruckus(tmp_path: Path, test: str) -> None:
    entry = data(tmp_path, batches=(1,), repeats=1, runs=2).entries[0]
    numbers = {
        "gpu-memory": {"copy_gb_s.p50": 4200.0, "read_gb_s.p50": 4300.0, "write_gb_s.p50": 4600.0},
        "gpu-gemm": {"gemm_fp32_tflops.p50": 50.0, "gemm_bf16_tflops.p50": 750.0, "gemm_int8_tops.p50": 900.0},
        "cpu-gemm": {"gemm_fp32_tflops.p50": 0.5},
    }[test]
    wanted = {
        "gpu-memory": {
            "memory_copy_bandwidth_gb_s": 4200, "memory_read_bandwidth_gb_s": 4300, "memory_write_bandwidth_gb_s": 4600,
        },
        "gpu-gemm": {
            "compute_fp32_tflops": 50, "precision_fp32_gops": 50e3, "precision_bf16_gops": 750e3,
            "precision_int8_gops": 900e3,
        },
        "cpu-gemm": {"compute_fp32_tflops": 0.5, "precision_fp32_gops": 500},
    }[test]  # fmt: skip
    (_, estimate), *_ = entry.summary.estimates.items()
    estimates = {key: estimate.model_copy(update={"value": value}) for key, value in numbers.items()}
    summary = entry.summary.model_copy(
        update={"runs": {key: (value,) for key, value in numbers.items()}, "estimates": estimates, "used": (0,)}
    )
    workload = HardwareWorkload(kind="hardware", test=test)
    entry = entry.model_copy(update={"summary": summary, "job": entry.job.model_copy(update={"workload": workload})})
    (path,) = WRITER(ExportedLoad(entry), tmp_path)
    found = json.loads(path.read_text())
    assert {name: one["mean"] for name, one in found["summary_stats"].items()} == wanted
    assert found["individual_runs"][0]["metrics"] == wanted
    of_gpu = found["gpu_benchmark_results"]
    if test.startswith("cpu"):
        assert of_gpu is None
    else:
        assert of_gpu.pop("gpu_device")
        assert of_gpu.pop("benchmark_duration_seconds") > 0
        assert of_gpu == wanted


def test_a_run_has_the_fields_of_its_shape_and_no_other(tmp_path: Path) -> None:
    (run, *_) = written(tmp_path)["individual_runs"]
    assert list(run) == [
        "run_id", "is_cold_start", "started_at", "completed_at", "duration_seconds", "metrics",
        "model_load_time_seconds", "model_load_memory_mb", "output", "error", "error_type",
    ]  # fmt: skip


@pytest.mark.parametrize("fits", [True, False])
def test_who_can_run_it_is_told_in_the_names_of_its_check(fits: bool) -> None:
    lacks = () if fits else (Lack(fact="gpu.count", wanted=">=8", has="0"),)
    agent = Agent(
        id="a1", name="lab", state=AgentState.ACTIVE, device_key="d", incarnation="i", created_at=AT, seen_at=AT,
        capabilities=Capabilities(facts={"kinds": ("service",), "probe": ("host",)}),
    )  # fmt: skip
    fit = Fit(agent_id="a1", agent_name="lab", state=AgentState.ACTIVE, fits=fits, lacks=lacks)
    checked = Compatibility(lots=(LotFit(demand=Demand(), jobs=1, agents=(fit,)),), runnable=fits)
    found = describe_compatibility("mine", checked, [agent], AT)
    assert (found["total_agents_checked"], found["compatible_agents_count"]) == (1, int(fits))
    (one,) = found["compatibility_results"]
    assert one["can_run"] is fits
    assert one["missing_requirements"] == ([] if fits else ["gpu.count >=8 (has 0)"])
    assert one["available_capabilities"] == ["service", "host"]
