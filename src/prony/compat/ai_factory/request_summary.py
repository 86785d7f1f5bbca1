"""Compute the figures of a log of requests by the rules of AI Factory's `summary.json`.

Percentiles lie between neighbours, over successes that took some time. Its rate counts every request, failed ones too,
by the time from the first stamp to the last, and that is at least the longest request. Nothing is left out at the
beginning. So these are not the figures that Prony publishes; they are what its own programs expect under these names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from prony.instruments.request_lines import Log, RequestLine
from prony.stats.quantiles import quantile

_LLMS = ("vllm", "ollama")


def summary_of(log: Log, service_type: str = "") -> dict[str, Any]:
    """Return the contents of `summary.json`; null is what no request could tell."""
    lines = log.lines
    good = [line for line in lines if line.succeeded]
    kind = service_type or log.service_type or "unknown"
    found: dict[str, Any] = {
        "total_requests": len(lines),
        "successful_requests": len(good),
        "failed_requests": len(lines) - len(good),
        "success_rate": len(good) / len(lines) * 100 if lines else 0.0,
        "service_type": kind,
        "latency_s": _latencies(good, ("p50", "p90", "p95", "p99")),
        "error_summary": dict(Counter(line.error or "unknown" for line in lines if not line.succeeded)),
    }
    if not lines:
        return found | {"requests_per_second": 0.0, "test_duration_s": 0.0}
    begin, end = log.span_s
    seconds = end - begin
    found |= {
        "requests_per_second": _by(len(lines), seconds),
        "successful_requests_per_second": _by(len(good), seconds),
        "test_duration_s": seconds,
        "test_start_time": begin,
        "test_end_time": end,
    }
    return found | _of_kind(kind, good, seconds, found["requests_per_second"])


def _of_kind(kind: str, good: Sequence[RequestLine], seconds: float, rate: float | None) -> dict[str, Any]:
    """Return what only some services have."""
    if kind in _LLMS:
        return _tokens(good, seconds)
    names = {line.operation for line in good}
    if names <= {"request"}:
        return {}
    operations = {
        name: _operation([line for line in good if line.operation == name], seconds) for name in sorted(names)
    }
    return {"operations": operations} | ({"transactions_per_second": rate} if kind == "postgres" else {})


def _operation(lines: Sequence[RequestLine], seconds: float) -> dict[str, Any]:
    told = _latencies(lines, ("p50", "p95", "p99"))
    named = {f"{name}_latency": value for name, value in told.items() if name != "std"}
    return {"count": len(lines), "throughput": _by(len(lines), seconds)} | named


def _tokens(good: Sequence[RequestLine], seconds: float) -> dict[str, Any]:
    outputs = [line.output_tokens for line in good if line.output_tokens is not None]
    inputs = [line.input_tokens for line in good if line.input_tokens is not None]
    return {
        "tokens_per_second": _by(sum(outputs), seconds) if outputs else None,
        "avg_output_tokens": float(np.mean(outputs)) if outputs else None,
        "avg_input_tokens": float(np.mean(inputs)) if inputs else None,
    }


def _latencies(good: Sequence[RequestLine], percentiles: Sequence[str]) -> dict[str, float | None]:
    ordered = np.sort([line.latency_s for line in good if line.latency_s > 0])
    if not ordered.size:
        return dict.fromkeys(("avg", "min", "max", "std", *percentiles))
    spread = float(np.std(ordered, ddof=1)) if ordered.size > 1 else 0.0
    found: dict[str, float | None] = {
        "avg": float(np.mean(ordered)),
        "min": float(ordered[0]),
        "max": float(ordered[-1]),
        "std": spread,
    }
    return found | {name: quantile(ordered, int(name[1:]) / 100) for name in percentiles}


def _by(count: float, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None
