"""Export an experiment as CSV: one row per job, with stable columns."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

from prony.model.experiment_data import Entry, ExperimentData
from prony.model.shown import visible
from prony.ports.workload import shown_kind
from prony.report import entry_fields

# What identifies the row and its circumstances; empty where unknown.
FACTS: tuple[str, ...] = (
    "experiment_id", "experiment_name", "job_id", "title", "state", "verdict", "reasons", "failure",
    "model", "model_sha256", "engine", "engine_version", "unit", "batch_size", "threads_asked", "precision_asked",
    "device_effective", "precision_effective", "threads_effective", "device_name", "hardware_id", "software_id",
    "started_at", "runs_used", "outliers",
)  # fmt: skip
# Each gives four columns: the value under its own name, then `.low`, `.high` and `.count`.
NUMBERS: tuple[str, ...] = (
    "inference_ms.p50", "inference_ms.mean", "inference_ms.min", "inference_ms.max", "inference_ms.sd",
    "inference_ms.p90", "inference_ms.p95", "inference_ms.p99", "inference_ms.p99.9",
    "throughput_per_s", "load_ms", "first_inference_ms", "cold_start_ms", "inference_cpu_ms", "import_ms",
    "memory_mib", "rss_baseline_mib", "rss_load_peak_mib", "rss_peak_mib", "rss_anon_mib", "rss_file_mib",
    "vram_peak_mib", "energy_j", "power_w",
    "e2e_ms.p50", "e2e_ms.mean", "e2e_ms.min", "e2e_ms.max", "e2e_ms.p90", "e2e_ms.p95", "e2e_ms.p99", "e2e_ms.p99.9",
    "service_ms.p50", "service_ms.p99", "ttfb_ms.p50", "ttft_ms.p50", "ttft_ms.p99", "ttft_content_ms.p50",
    "itl_ms.p50", "itl_ms.p99", "tpot_ms.p50", "tpot_ms.p99", "goodput_per_s", "goodput_share", "request_rate_per_s",
    "cached_share", "cache_hit_share",
    "output_tokens_per_s", "input_tokens_per_s", "total_tokens_per_s", "tokens_per_s_per_user", "items_per_s",
    "bytes_per_s", "in_flight", "quality", "highest_load", "error_rate",
    "device_ms", "launch_ms", "launch_share", "hot_ms", "copy_in_ms", "copy_out_ms", "copy_in_gb_s", "copy_out_gb_s",
    "roundtrip_ms", "compile_ms", "capture_ms", "vram_weights_mib", "vram_run_peak_mib", "vram_reserved_mib",
    "vram_device_mib", "energy_net_j", "idle_power_w", "gpu_clock_mhz", "gpu_temperature_c", "gpu_held_power",
    "gpu_held_thermal", "cpu_percent", "client_cpu_percent", "machine_cpu_percent", "gpu_percent", "gpu_memory_percent",
    "gpu_sm_percent", "gpu_tensor_percent", "gpu_dram_percent",
)  # fmt: skip
# What a kind of workload may say that was asked for; empty where it says nothing of it.
_ASKED = ("unit", "batch_size", "threads_asked", "precision_asked")
_PARTS = ("", ".low", ".high", ".count")
COLUMNS: tuple[str, ...] = FACTS + tuple(f"{key}{part}" for key in NUMBERS for part in _PARTS)
# A spreadsheet takes a cell that begins so for a formula and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def render(data: ExperimentData) -> str:
    """Return the header and one line a job. A metric's column holds its median unless it names another statistic."""
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\r\n")
    told = _script_columns(data)
    writer.writerow([*COLUMNS, *map(safe_text, _column_names(told))])
    for entry in data.entries:
        writer.writerow([*map(safe_text, _facts(data, entry)), *_numbers(entry, (*NUMBERS, *told))])
    return sink.getvalue()


def _facts(data: ExperimentData, entry: Entry) -> list[str]:
    job, result, summary, device = entry.job, entry.result, entry.summary, entry.environment.device
    work, effective = job.workload, result.effective
    failed = entry_fields.failures(entry)
    asked = shown_kind(work.kind).report.settings(work)
    return [
        data.experiment.id, data.experiment.name, job.id, summary.title, str(result.state),
        str(summary.verdict.grade), "; ".join(one.text for one in summary.verdict.reasons),
        entry_fields.failure_text(failed[0][1], job.id) if failed else "",
        work.subject, result.model.sha256 if result.model else "", work.tool,
        effective.engine_version if effective else "", *(asked.get(name, "") for name in _ASKED),
        effective.device if effective else "", effective.precision if effective else "",
        "" if effective is None or effective.threads is None else str(effective.threads),
        device.name, device.hardware_id, device.software_id, result.started_at.isoformat(),
        str(len(summary.used)), str(summary.outlier_count),
    ]  # fmt: skip


def _script_columns(data: ExperimentData) -> list[str]:
    """Return what scripts told: their columns come after all others, because nobody knows their names before."""
    keys = dict.fromkeys(key for entry in data.entries for key in entry_fields.own_columns(entry))
    return [key for key in keys if key not in NUMBERS and key.removesuffix(".p50") not in NUMBERS]


def _column_names(told: list[str]) -> list[str]:
    return [f"{key}{part}" for key in told for part in _PARTS]


def _numbers(entry: Entry, keys: Sequence[str]) -> list[str]:
    cells = []
    for key in keys:
        found = entry_fields.find_estimate(entry.summary, key)
        four = (None,) * 4 if found is None else (found.value, found.low, found.high, found.count)
        cells += ["" if one is None or not math.isfinite(one) else repr(one) for one in four]
    return cells


def safe_text(cell: str) -> str:
    """Return text that a spreadsheet shows and never executes, nor a terminal; blanks in front keep neither from it."""
    cell = visible(cell)
    is_formula = cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA)
    return f"'{cell}" if is_formula and not _NUMBER.fullmatch(cell) else cell
