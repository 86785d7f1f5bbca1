"""Export the runs of an MLPerf scenario as MLPerf summary and detail logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import InputError, NotFoundError
from prony.instruments.window import window_of
from prony.model.experiment_data import Entry
from prony.model.load import Mlperf
from prony.model.metric import key_of
from prony.ports.exporter import ExportedLoad
from prony.report.plots.load_series import requests_of

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from prony.load.mlperf import MlperfLimit, MlperfOutcome, MlperfRules

    Array = np.ndarray[Any, np.dtype[Any]]

_NAMES = {"single-stream": "SingleStream", "multi-stream": "MultiStream", "server": "Server", "offline": "Offline"}
_SHARES = (0.5, 0.9, 0.95, 0.97, 0.99, 0.999)
_RULER = "=" * 48


@dataclass(frozen=True)
class MlperfVerdict:
    """One run: what MLPerf's rules say of it, and its latencies in ns (of queries where one has several samples)."""

    outcome: MlperfOutcome
    rules: MlperfRules
    latencies: Array
    issued_s: float
    done_s: float

    def at(self, share: float) -> int:
        """Return the observed value at a percentile, as LoadGen takes it."""
        return int(self.latencies[min(int(self.latencies.size * share), self.latencies.size - 1)])


def write(load: ExportedLoad, to: Path) -> list[Path]:
    """Write `JOB-runN/mlperf_log_summary.txt` and `mlperf_log_detail.txt`; a failed request makes a run invalid."""
    entry = load.entry
    mlperf = entry.job.load.mlperf
    if mlperf is None:
        hint = "its recipe would say `load: {mlperf: {scenario: server, rate: 100}}`"
        raise InputError(f"job {entry.job.id} is not an MLPerf scenario", hint=hint)
    frame = requests_of(entry)
    if frame is None:
        raise NotFoundError(f"the requests of job {entry.job.id} cannot be read", hint=f"look in {entry.folder}")
    written = []
    for part in frame.partition_by("repetition", maintain_order=True):
        judged = _judge_run(part, entry, mlperf)
        folder = to / f"{entry.job.id}-run{int(part['repetition'][0])}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in (("summary", _summary(entry, mlperf, judged)), ("detail", _detail(entry, mlperf, judged))):
            path = folder / f"mlperf_log_{name}.txt"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            written.append(path)
    return written


def _judge_run(part: pl.DataFrame, entry: Entry, mlperf: Mlperf) -> MlperfVerdict:
    import numpy as np

    from prony.load.mlperf import FAILED, judge_scenario, query_latencies, rules

    rows = part.sort("index", "begin_ns", "end_ns")
    begins, ends = rows["begin_ns"].to_numpy(), rows["end_ns"].to_numpy()
    good, rule = (rows["cause"] == "ok").to_numpy(), rules(mlperf)
    whole = mlperf.scenario == "offline"
    latencies = np.where(good, ends - begins, FAILED) if whole else query_latencies(
        begins, ends, good, rule.samples_per_query
    )  # fmt: skip
    known = {one.index: one for one in entry.result.repetitions}
    window = window_of(begins, ends, good, entry.job.load, known.get(int(rows["repetition"][0])))
    issued, done = int(begins.max()) - int(begins.min()), window.length_ns
    lasted = issued if mlperf.scenario == "server" else done
    outcome = judge_scenario(mlperf, latencies, lasted_ns=lasted, limits=_limits(rows, entry.job.load.slo))
    ordered = np.sort(latencies[latencies != FAILED])
    return MlperfVerdict(outcome, rule, ordered, issued / 1e9, done / 1e9)


def _limits(rows: pl.DataFrame, slo: dict[str, float]) -> list[MlperfLimit]:
    """Return the limits of the recipe with what each request has of them; one that failed has all of them missed."""
    import polars as pl

    from prony.load.mlperf import MlperfLimit

    first = pl.col("token_ns").list.first()
    taken = {
        "e2e_ms": pl.col("end_ns") - pl.col("begin_ns"),
        "ttft_ms": first - pl.col("begin_ns"),
        "tpot_ms": (pl.col("end_ns") - first) / (pl.col("output_tokens") - 1),
    }
    found = []
    for key, limit in slo.items():
        metric = key_of(key).metric
        if metric in taken:
            value = pl.when(pl.col("cause") == "ok").then(taken[metric] / 1e6).fill_null(float("inf"))
            found.append(MlperfLimit(metric, limit, rows.select(value=value.cast(pl.Float64))["value"].to_numpy()))
    return found


def _summary(entry: Entry, mlperf: Mlperf, judged: MlperfVerdict) -> Iterator[str]:
    yield from (_RULER, "MLPerf Results Summary", _RULER)
    yield f"SUT name : {_sut(entry)}"
    yield f"Scenario : {_NAMES[mlperf.scenario]}"
    yield "Mode     : PerformanceOnly"
    yield from _headline(mlperf, judged)
    outcome = judged.outcome
    yield f"Result is : {'VALID' if outcome.valid else 'INVALID'}"
    yield f"  Min duration satisfied : {_yes(_long_enough(mlperf, judged))}"
    yield f"  Min queries satisfied : {_yes(_enough(judged))}"
    yield f"  Early stopping satisfied: {_yes(outcome.valid or outcome.estimate_ns is not None)}"
    if outcome.reasons:
        yield "Recommendations:"
        yield from (f" * {reason}" for reason in outcome.reasons)
    yield from _estimates(outcome)
    yield from ("", _RULER, "Additional Stats", _RULER)
    if judged.latencies.size:
        yield f"Min latency (ns)                : {judged.latencies[0]}"
        yield f"Max latency (ns)                : {judged.latencies[-1]}"
        yield f"Mean latency (ns)               : {int(judged.latencies.mean())}"
        yield from (f"{share * 100:.2f} percentile latency (ns)   : {judged.at(share)}" for share in _SHARES)
    yield from ("", _RULER, "Test Parameters Used", _RULER)
    yield from (f"{name} : {value}" for name, value in _parameters(entry, mlperf, judged).items())
    yield ""
    yield from (f"{note}." for note in outcome.notes)
    yield f"{outcome.failed} failed. Written by Prony from its own requests, without LoadGen."


def _headline(mlperf: Mlperf, judged: MlperfVerdict) -> Iterator[str]:
    outcome = judged.outcome
    if mlperf.scenario == "server":
        yield f"Scheduled samples per second : {outcome.result or 0:.2f}"
    elif mlperf.scenario == "offline":
        yield f"Samples per second: {outcome.result or 0:g}"
    else:
        yield f"{outcome.percentile * 100:.0f}th percentile latency (ns) : {outcome.percentile_ns}"


def _estimates(outcome: MlperfOutcome) -> Iterator[str]:
    if outcome.estimate_ns is None:
        return
    yield "Early Stopping Result:"
    yield f" * Of {outcome.queries} queries, {outcome.discarded} of the slowest are excluded."
    yield f" * Early stopping {outcome.percentile * 100:.0f}th percentile estimate: {outcome.estimate_ns}"
    if outcome.p99_ns is not None and outcome.percentile != 0.99:
        yield f" * Early stopping 99th percentile estimate: {outcome.p99_ns}"


def _detail(entry: Entry, mlperf: Mlperf, judged: MlperfVerdict) -> Iterator[str]:
    """Give one line of JSON for each fact, under the keys by which MLPerf's tools look for them."""
    outcome, latencies = judged.outcome, judged.latencies
    facts: dict[str, Any] = {"sut_name": _sut(entry), "requested_scenario": _NAMES[mlperf.scenario]}
    facts |= {f"effective_{name}": value for name, value in _parameters(entry, mlperf, judged).items()}
    facts["result_validity"] = "VALID" if outcome.valid else "INVALID"
    facts["result_min_duration_met"] = _long_enough(mlperf, judged)
    facts["result_min_queries_met"] = _enough(judged)
    facts["early_stopping_met"] = outcome.valid or outcome.estimate_ns is not None
    if outcome.reasons:
        facts["result_invalid_reason"] = "; ".join(outcome.reasons)
    facts["result_query_count"] = outcome.queries
    facts |= _rates(mlperf, judged)
    if latencies.size:
        facts |= {"result_min_latency_ns": int(latencies[0]), "result_max_latency_ns": int(latencies[-1])}
        facts["result_mean_latency_ns"] = int(latencies.mean())
        facts |= {f"result_{share * 100:.2f}_percentile_latency_ns": judged.at(share) for share in _SHARES}
    for key, value in facts.items():
        line = {"key": key, "value": value, "time_ms": judged.done_s * 1000, "namespace": "mlperf::logging",
                "event_type": "POINT_IN_TIME", "metadata": {"is_error": False, "is_warning": False}}  # fmt: skip
        yield f":::MLLOG {json.dumps(line)}"


def _rates(mlperf: Mlperf, judged: MlperfVerdict) -> dict[str, Any]:
    outcome, count = judged.outcome, judged.latencies.size
    if mlperf.scenario == "server":
        done = (count - 1) / judged.done_s if judged.done_s > 0 else None
        return {"result_scheduled_samples_per_sec": outcome.result, "result_completed_samples_per_sec": done}
    if mlperf.scenario == "offline":
        return {"result_samples_per_second": outcome.result}
    name = "early_stopping_latency_ss" if mlperf.scenario == "single-stream" else "early_stopping_latency_ms"
    return {name: outcome.estimate_ns}


def _parameters(entry: Entry, mlperf: Mlperf, judged: MlperfVerdict) -> dict[str, Any]:
    load = entry.job.load
    asked = {
        "samples_per_query": judged.rules.samples_per_query, "target_qps": mlperf.rate,
        "target_latency_percentile": judged.rules.percentile, "min_duration_ms": judged.rules.min_duration_ns // 10**6,
        "min_query_count": judged.rules.min_queries, "sample_index_rng_seed": load.seeds.prompts,
        "schedule_rng_seed": load.seeds.arrivals,
    }  # fmt: skip
    return {name: value for name, value in asked.items() if value is not None}


def _sut(entry: Entry) -> str:
    return entry.job.workload.subject or entry.summary.title


def _long_enough(mlperf: Mlperf, judged: MlperfVerdict) -> bool:
    lasted_s = judged.issued_s if mlperf.scenario == "server" else judged.done_s
    return lasted_s * 1e9 >= judged.rules.min_duration_ns


def _enough(judged: MlperfVerdict) -> bool:
    return judged.outcome.queries >= judged.rules.min_queries


def _yes(is_so: bool) -> str:
    return "Yes" if is_so else "NO"
