"""Write AI Factory's `metrics.txt` and `logs_summary.json`.

The first has the names that its programs expose to Prometheus, each told once, for what the requests show. Only the
name of the second is known: it tells of each log how long it is, and how many lines a program itself calls an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_PLAIN = {
    "total_requests": ("benchmark_requests_total", "requests"),
    "successful_requests": ("benchmark_requests_success", "requests that succeeded"),
    "failed_requests": ("benchmark_requests_failed", "requests that failed"),
    "success_rate": ("benchmark_success_rate_percent", "share of requests that succeeded"),
    "requests_per_second": ("benchmark_throughput_rps", "requests a second, failed ones too"),
    "test_duration_s": ("benchmark_duration_seconds", "from the first request to the end of the last"),
    "test_start_time": ("benchmark_start_timestamp", "when the first request began"),
    "test_end_time": ("benchmark_end_timestamp", "when the last request ended"),
    "tokens_per_second": ("benchmark_llm_tokens_per_second", "output tokens a second"),
    "avg_output_tokens": ("benchmark_llm_avg_output_tokens", "output tokens of an answer"),
    "avg_input_tokens": ("benchmark_llm_avg_input_tokens", "input tokens of a request"),
    "transactions_per_second": ("benchmark_db_transactions_per_second", "transactions a second"),
}
_QUANTILES = {"p50": "0.50", "p90": "0.90", "p95": "0.95", "p99": "0.99"}
_OPERATIONS = {
    "count": "benchmark_db_operation_count",
    "throughput": "benchmark_db_operation_throughput_rps",
    **{f"{name}_latency": f"benchmark_db_operation_{name}_latency_seconds" for name in ("avg", "p50", "p95", "p99")},
}
# What programs write before an error of theirs; a number such as 500 is none.
_ERROR = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|PANIC)\b|^Traceback \(most recent call last\)|^\s*error:", re.MULTILINE)
_MOST_SHOWN = 5
_LONGEST = 300

Sample = tuple[str, str, dict[str, str], Any]


def metrics_text(identity: str, summary: Mapping[str, Any], clients: int | None) -> str:
    """Return the figures as Prometheus reads them: every family once, with its help and its type."""
    labels = {"benchmark_id": identity, "service": str(summary["service_type"])}
    lines: list[str] = []
    for name, meaning, more, value in [*_samples(summary), ("benchmark_client_count", "clients", {}, clients)]:
        if value is None:
            continue
        if not any(line.startswith(f"# TYPE {name} ") for line in lines):
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
        told = ",".join(f'{key}="{_quote(text)}"' for key, text in (labels | more).items())
        lines.append(f"{name}{{{told}}} {value!r}")
    return "\n".join(lines) + "\n"


def _samples(summary: Mapping[str, Any]) -> Iterator[Sample]:
    for key, (name, meaning) in _PLAIN.items():
        yield name, meaning, {}, summary.get(key)
    for key, quantile in _QUANTILES.items():
        yield "benchmark_latency_seconds", "latency of successes", {"quantile": quantile}, summary["latency_s"].get(key)
    for key in ("avg", "min", "max", "std"):
        yield f"benchmark_latency_{key}_seconds", f"{key} latency of successes", {}, summary["latency_s"].get(key)
    for key, name in _OPERATIONS.items():
        for operation, told in summary.get("operations", {}).items():
            yield name, f"{key.replace('_', ' ')} of an operation", {"operation": operation}, told.get(key)
    for error, count in summary["error_summary"].items():
        yield "benchmark_errors_by_type", "requests that failed so", {"error_type": error}, count


def logs_summary(folder: Path) -> str:
    """Return what stands in the logs below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    told = {path.relative_to(folder).as_posix(): _log(path) for path in files}
    total = sum(one["errors"] for one in told.values())
    return json.dumps({"files": told, "total_errors": total}, indent=2, ensure_ascii=False) + "\n"


def _log(path: Path) -> dict[str, Any]:
    lines = errors = 0
    shown: list[str] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            lines += 1
            if _ERROR.search(line):
                errors += 1
                if len(shown) < _MOST_SHOWN:
                    shown.append(line.rstrip()[:_LONGEST])
    return {"bytes": path.stat().st_size, "lines": lines, "errors": errors, "first_errors": shown}


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
