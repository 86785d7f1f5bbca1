"""Write the files of AI Factory's folders: metrics, a summary of logs, reports and plots.

The metrics have the names that its programs expose to Prometheus, each written once, for what the requests show. Of the
summary of logs only the name is known: it says of each log how long it is, and how many lines a program itself calls an
error.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.instruments.request_lines import Log
from prony.model.estimate import Grade
from prony.model.sweep import Bottleneck
from prony.ports.exporter import ExportedLoad
from prony.report.load_tables import load_findings
from prony.report.markdown.text import escape_markdown
from prony.report.plots.figure import check_drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_PLAIN = {
    "total_requests": ("benchmark_requests_total", "requests"),
    "successful_requests": ("benchmark_requests_success", "requests that succeeded"),
    "failed_requests": ("benchmark_requests_failed", "requests that failed"),
    "success_rate": ("benchmark_success_rate_percent", "share of requests that succeeded"),
    "requests_per_second": ("benchmark_throughput_rps", "requests per second, including failed ones"),
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
        yield "benchmark_errors_by_type", "requests that failed with this error", {"error_type": error}, count


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


_BOUND = {
    "cpu": "cpu-bound", "gpu": "gpu-bound", "gpu memory": "memory-bound", "memory": "memory-bound",
    "gpu compute": "gpu-bound", "gpu bandwidth": "memory-bound",
    "queue": "queueing", "network": "network-bound", "disk": "disk-bound",
}  # fmt: skip
_VERDICTS = {Grade.VALID: "PASS", Grade.SUSPECT: "ACCEPTABLE", Grade.VOID: "FAIL"}
_LATENCIES = ("avg", "min", "max", "std", "p50", "p90", "p95", "p99")
_RATES = (
    ("requests_per_second", "requests per second, including failed ones"),
    ("successful_requests_per_second", "successes a second"),
    ("tokens_per_second", "output tokens a second"),
    ("avg_output_tokens", "output tokens of an answer"),
    ("avg_input_tokens", "input tokens of a request"),
    ("transactions_per_second", "transactions a second"),
)


def write_report(
    folder: Path, load: ExportedLoad, identity: str, summary: Mapping[str, Any], run: Mapping[str, Any], log: Log
) -> Path:
    """Write the folder; return the page."""
    entry = load.entry
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    if log.lines:
        _draw(folder / "plots", summary, log)
    ended = entry.result.ended_at or entry.result.started_at
    document = {
        "benchmark_id": identity,
        "generated_at": ended.isoformat(),
        "summary": summary,
        "findings": load_findings([entry]),
        "recommendations": [reason.text for reason in entry.summary.verdict.reasons if reason.grade is not Grade.VALID],
        "bottleneck": _bottleneck(load.bottleneck),
        "run_metadata": run,
    }
    (folder / "report.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    page = folder / "report.md"
    page.write_text("\n".join(_page(load, identity, summary)), encoding="utf-8")
    return page


def _bottleneck(found: Bottleneck | None) -> dict[str, Any]:
    """Return what limited the load: its word for it, and what was seen."""
    if found is None:
        return {"classification": "unknown"}
    return {"classification": _name_bottleneck(found)} | found.model_dump(mode="json")


def _name_bottleneck(found: Bottleneck) -> str:
    """Return the nearest of its words: GPU-bound, CPU-bound, Memory-bound, Queueing, Healthy."""
    if found.where == "others":
        return "disturbed"
    return {"none": "healthy", "unknown": "unknown"}.get(found.where) or _BOUND.get(found.what, "unknown")


def _page(load: ExportedLoad, identity: str, summary: Mapping[str, Any]) -> list[str]:
    entry = load.entry
    limit = _bottleneck(load.bottleneck)
    grade = entry.summary.verdict.grade
    told = [
        f"- {'note' if reason.grade is Grade.VALID else reason.grade.value}: {escape_markdown(reason.text)}"
        for reason in entry.summary.verdict.reasons
    ]
    rates = [(text, summary[key]) for key, text in _RATES if summary.get(key) is not None]
    latencies = [(name, summary["latency_s"].get(name)) for name in _LATENCIES]
    errors = list(summary["error_summary"].items())
    return [
        f"# Benchmark {escape_markdown(identity)}",
        "",
        f"**Verdict: {_VERDICTS[grade]}** ({grade.value}: may the numbers be quoted?)",
        "",
        *(told or ["- no problems were found"]),
        "",
        "## Summary",
        "",
        f"{summary['successful_requests']} of {summary['total_requests']} requests succeeded"
        f" ({summary['success_rate']:.4g} %) in {summary['test_duration_s']:.6g} s.",
        "",
        "## Latency",
        "",
        *_table("latency of successes", "seconds", latencies),
        "## Throughput",
        "",
        *_table("rate", "value", rates),
        *(["## Errors", "", *_table("error", "requests", errors)] if errors else []),
        "## Bottleneck",
        "",
        f"**{limit['classification']}**. {escape_markdown(limit.get('text', ''))}",
        "",
        "## Method",
        "",
        "As the format requires, every request of the run counts here, including the warm-up, and percentiles are"
        " interpolated. Prony's own numbers, for the steady part and with intervals, are in `summary.json` under"
        " `prony`.",
        "",
        f"To run it again: `prony rerun {entry.job.experiment_id}`",
        "",
    ]


def _table(first: str, second: str, rows: list[tuple[str, Any]]) -> list[str]:
    body = [f"| {escape_markdown(name)} | {'-' if value is None else f'{value:.6g}'} |" for name, value in rows]
    return [f"| {first} | {second} |", "|---|---:|", *body, ""]


def _draw(folder: Path, summary: Mapping[str, Any], log: Log) -> None:
    """Draw what the requests show, each picture a file of its own."""
    import numpy as np

    begin = log.span_s[0]
    ends = np.array([int(line.end_s - begin) for line in log.lines])
    good = np.array([line.succeeded for line in log.lines])
    total = np.bincount(ends)
    successes = np.bincount(ends[good], minlength=total.size)
    seconds = np.arange(total.size)
    latencies = np.array([line.latency_s for line in log.lines if line.succeeded and line.latency_s > 0]) * 1000
    told = [
        (name, value * 1000) for name, value in summary["latency_s"].items() if name[0] == "p" and value is not None
    ]
    _save(
        folder / "throughput_timeline.png", "second", "successes a second", lambda axes: axes.step(seconds, successes)
    )
    share = 100 * successes / np.maximum(total, 1)
    shown = np.where(total > 0, share, np.nan)
    _save(folder / "success_rate.png", "second", "successes, %", lambda axes: axes.plot(seconds, shown, "o-"))
    if latencies.size:
        names, values = [name for name, _ in told], [value for _, value in told]
        _save(folder / "latency_percentiles.png", "", "latency, ms", lambda axes: axes.bar(names, values))
        _save(folder / "latency_histogram.png", "latency, ms", "requests", lambda axes: axes.hist(latencies, bins=50))
    errors = Counter(line.error or "unknown" for line in log.lines if not line.succeeded)
    if errors:
        bars = (list(errors.keys()), list(errors.values()))
        _save(folder / "error_distribution.png", "", "failed requests", lambda axes: axes.bar(*bars))


def _save(path: Path, across: str, up: str, draws: Any) -> None:
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes: Axes = figure.subplots()
    draws(axes)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    figure.savefig(path, dpi=110)
