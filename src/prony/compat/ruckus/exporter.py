"""Write a job in the shapes of RUCKUS: MultiRunJobResult with its SingleRunResults and MetricStatistics.

Its words hold no interval and no verdict: those stand under `prony`. A run that includes loading is never mixed with
others, so `is_cold_start` is false of the runs here, and what a cold start takes stands in `cold_start_data`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from prony import __version__
from prony.compat.ruckus.experiment_spec import spec_id
from prony.instruments.kept_answers import read_answers
from prony.model.estimate import Summary
from prony.model.experiment_data import Entry
from prony.model.result import Repetition
from prony.ports.exporter import ExportedLoad

# What its results call a number that Prony has under another name, and how many of its units are one of Prony's.
_HARDWARE: dict[str, dict[str, float]] = {
    **{f"{name}_gb_s.p50": {f"memory_{name}_bandwidth_gb_s": 1.0} for name in ("copy", "write", "read")},
    **{
        f"gemm_{name}_tflops.p50": {f"precision_{name}_gops": 1e3}
        for name in ("bf16", "fp16", "fp8", "tf32", "fp32", "fp64")
    },
    "gemm_int8_tops.p50": {"precision_int8_gops": 1e3},
}
_HARDWARE["gemm_fp32_tflops.p50"]["compute_fp32_tflops"] = 1.0
_NAMES = _HARDWARE | {
    "rouge_1.mean": {"rouge_1_f1": 1.0},
    "rouge_2.mean": {"rouge_2_f1": 1.0},
    "rouge_l.mean": {"rouge_l_f1": 1.0},
    "output_tokens_per_s.p50": {"tokens_per_second": 1.0},
    "e2e_ms.p50": {"latency_ms": 1.0},
    "ttft_ms.p50": {"time_to_first_token_ms": 1.0},
}
_COLD = ("load_ms.p50", "first_inference_ms.p50", "cold_start_ms.p50")
_OUTLYING = 2.0


class RuckusWriter:
    """Writes `JOB.multi_run.json`, of a job of any kind."""

    takes_every_kind = True

    def __call__(self, load: ExportedLoad, to: Path) -> list[Path]:
        path = to / f"{load.entry.job.id}.multi_run.json"
        path.write_text(json.dumps(_multi_run(load.entry), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path]


WRITER = RuckusWriter()


def _multi_run(entry: Entry) -> dict[str, Any]:
    job, result, summary = entry.job, entry.result, entry.summary
    runs = [one for one in result.repetitions if one.kind == "measure"]
    ended = result.ended_at or max((_end(one) for one in runs), default=result.started_at)
    cold = {key: one.value for key, one in summary.estimates.items() if key in _COLD}
    return {
        "job_id": job.id,
        "experiment_id": spec_id(job.name),
        "total_runs": len(runs),
        "successful_runs": sum(one.state == "ok" for one in runs),
        "failed_runs": sum(one.state == "failed" for one in runs),
        "individual_runs": [_single_run(entry, one) for one in runs],
        "summary_stats": {
            name: _statistics(numbers, summary.used) for name, numbers in _numbers_of(summary).items() if numbers
        },
        "cold_start_data": cold or None,
        "started_at": result.started_at.isoformat(),
        "completed_at": ended.isoformat(),
        "total_duration_seconds": max(0.0, (ended - result.started_at).total_seconds()),
        "model_actual": _model(entry),
        "framework_version": _framework(entry),
        "hardware_info": entry.environment.device.hardware.model_dump(mode="json"),
        "gpu_benchmark_results": _gpu_benchmark(entry),
        "prony": {
            "version": __version__, "experiment_id": job.experiment_id, "state": result.state.value,
            "verdict": summary.verdict.model_dump(mode="json"),
            "estimates": {key: one.model_dump(mode="json") for key, one in summary.estimates.items()},
        },
    }  # fmt: skip


def _single_run(entry: Entry, one: Repetition) -> dict[str, Any]:
    failure = one.failure
    return {
        "run_id": one.index,
        "is_cold_start": False,
        "started_at": one.started_at.isoformat(),
        "completed_at": _end(one).isoformat(),
        "duration_seconds": _lasting(one).total_seconds(),
        "metrics": _metrics_of(entry.summary, one.index),
        "model_load_time_seconds": None,
        "model_load_memory_mb": None,
        "output": _first_output(entry, one.index),
        "error": None if failure is None else failure.message,
        "error_type": None if failure is None else failure.code,
    }


def _metrics_of(summary: Summary, index: int) -> dict[str, float]:
    """Return the numbers of one run; none of a run that does not count."""
    if index not in summary.used:
        return {}
    place = summary.used.index(index)
    return {name: numbers[place] for name, numbers in _numbers_of(summary).items()}


def _numbers_of(summary: Summary) -> dict[str, list[float]]:
    """Return what each metric that all runs have was in each of them, by its names and in its units."""
    return {
        name: [value * factor for value in numbers]
        for key, numbers in summary.runs.items()
        if len(numbers) == len(summary.used)
        for name, factor in _NAMES.get(key, {key: 1.0}).items()
    }


def _gpu_benchmark(entry: Entry) -> dict[str, Any] | None:
    """Return what a test of a GPU found, as medians over its runs; None of any other job."""
    summary, effective = entry.summary, entry.result.effective
    found = {
        name: one.value * factor
        for key, one in summary.estimates.items()
        for name, factor in _HARDWARE.get(key, {}).items()
    }
    if effective is None or not found or not getattr(entry.job.workload, "is_of_gpu", False):
        return None
    lasting = [_lasting(one) for one in entry.result.repetitions if one.index in summary.used]
    duration = sum(lasting, timedelta()).total_seconds()
    return {"gpu_device": effective.device, "benchmark_duration_seconds": duration, **found}


def _statistics(numbers: Sequence[float], used: Sequence[int]) -> dict[str, Any]:
    """Return MetricStatistics; its outliers are the ids of runs, and lie more than two deviations from the mean."""
    mean = statistics.fmean(numbers)
    spread = statistics.stdev(numbers) if len(numbers) > 1 else 0.0
    outliers = [run for run, value in zip(used, numbers, strict=True) if abs(value - mean) > _OUTLYING * spread > 0]
    return {
        "mean": mean, "std": spread, "min": min(numbers), "max": max(numbers), "median": statistics.median(numbers),
        "count": len(numbers), "raw_values": list(numbers), "outliers": outliers,
    }  # fmt: skip


def _lasting(one: Repetition) -> timedelta:
    spans = [phase.end_ns - phase.begin_ns for phase in one.phases.values()]
    return timedelta(microseconds=sum(spans) / 1000)


def _end(one: Repetition) -> datetime:
    return one.started_at + _lasting(one)


def _first_output(entry: Entry, index: int) -> str | None:
    """Return what was answered first in a run, where answers are kept."""
    if not entry.folder.is_dir() or not entry.summary.items:
        return None
    return next((one.output for one in read_answers(entry.folder) if one.repetition == index), None)


def _model(entry: Entry) -> str | None:
    if entry.result.model is not None:
        return entry.result.model.source
    service = entry.result.service
    return None if service is None else service.notes.get("model")


def _framework(entry: Entry) -> str | None:
    if entry.result.effective is not None:
        return f"{entry.result.effective.engine} {entry.result.effective.engine_version}".strip()
    service = entry.result.service
    return f"{service.name} {service.version}".strip() or None if service is not None else None
