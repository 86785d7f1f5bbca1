"""Loads to be summarised, made of plain numbers: records as the generator leaves them, jobs and results around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.requests import Digests, Taken, join_runs, request_frame
from prony.kinds.service.schema import ServiceWorkload
from prony.model.clients import ClientSide
from prony.model.job import Job
from prony.model.load import Load
from prony.model.result import Phase, Repetition, Result, ResultState
from prony.ports.driver import Cause, Digest
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

AT = datetime(2026, 1, 1, tzinfo=UTC)
S, MS = 1_000_000_000, 1_000_000
START = 50 * S  # a monotonic clock does not begin at 0
GOOD_SIDE = ClientSide(
    asked_concurrency=8, delivered_concurrency=8.0, loop_lag_p50_ms=0.01, loop_lag_p99_ms=0.05, kernel_lag_p50_ms=0.01,
    kernel_lag_p99_ms=0.05, cpu_shares=(0.3,), connections_asked=8, connections_opened=8,
)  # fmt: skip


def closed_records(
    *, users: int = 8, seconds: float = 10, latency_ms: float = 20, spread: float = 0.1, seed: int = 0
) -> dict[str, Array]:
    """Return a closed load whose users each send the next request when the last one is answered."""
    rng = np.random.default_rng(seed)
    per_user = int(seconds * 1000 / latency_ms * 2) + 2
    took = np.round(latency_ms * MS * rng.lognormal(0, spread, (users, per_user))).astype(np.int64)
    ends = START + np.cumsum(took, axis=1)
    begins = ends - took
    kept = begins < START + seconds * S
    return records(begins[kept], ends[kept])


def open_records(
    *, rate: float = 200, seconds: float = 10, latency_ms: float = 20, late_ms: float = 0.02, seed: int = 0
) -> dict[str, Array]:
    """Return requests that are due at random instants, whatever became of the last ones."""
    rng = np.random.default_rng(seed)
    dues = START + np.sort(rng.uniform(0, seconds * S, int(rate * seconds))).astype(np.int64)
    took = np.round(latency_ms * MS * rng.lognormal(0, 0.1, dues.size)).astype(np.int64)
    return records(dues + round(late_ms * MS), dues + round(late_ms * MS) + took, due=dues)


def records(
    begins: Sequence[int] | Array,
    ends: Sequence[int] | Array,
    *,
    due: Array | None = None,
    cause: Array | None = None,
    request: Array | None = None,
) -> dict[str, Array]:
    """Return the columns that a generator leaves, in the order in which requests were sent."""
    sent, end = np.asarray(begins, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    order = np.argsort(sent, kind="stable")
    none = np.zeros(sent.size, dtype=np.int64)
    columns = {
        "due_ns": sent if due is None else due, "sent_ns": sent, "first_ns": sent + (end - sent) // 2, "end_ns": end,
        "cause": none if cause is None else cause, "request": none if request is None else request,
    }  # fmt: skip
    columns = {name: np.asarray(column, dtype=np.int64)[order] for name, column in columns.items()}
    rest = {"status": none + 200, "bytes_in": none + 100, "lag_ns": none + 10_000, "reads": none + 1}
    return columns | rest | {"index": np.arange(sent.size), "spool_at": none - 1}


def failing(columns: Mapping[str, Array], rows: Array, cause: Cause) -> dict[str, Array]:
    """Return the same with some requests that came to nothing."""
    causes = columns["cause"].copy()
    causes[rows] = cause
    return dict(columns) | {"cause": causes}


def streamed(columns: Mapping[str, Array], *, tokens: int = 5, counted: bool = True) -> Digests:
    """Return digests of replies of so many tokens, the first after half of the time and the last at the end."""
    digests = Digests()
    for row, (first, end) in enumerate(zip(columns["first_ns"], columns["end_ns"], strict=True)):
        stamps = np.linspace(first, end, tokens).round().astype(np.int64)
        number = tokens if counted else None
        digests.add(row, Digest(input_tokens=100, output_tokens=number, token_ns=stamps, content_ns=int(stamps[1])))
    return digests


def frame(
    runs: Mapping[int, Mapping[str, Array]],
    *,
    is_open: bool = False,
    operations: Sequence[str] = ("request",),
    digests: Mapping[int, Digests] | None = None,
) -> pl.DataFrame:
    """Return the samples of a job with these runs."""
    made = []
    for repetition, columns in runs.items():
        whole = (int(columns["sent_ns"].min(initial=START)), int(columns["end_ns"].max(initial=START)) + 1)
        told = (digests or {}).get(repetition, Digests())
        made.append(request_frame(Taken(repetition, columns, operations, is_open, whole, told)))
    return join_runs(made)


def job(**load: Any) -> Job:
    workload = ServiceWorkload(kind="service", endpoint="http://127.0.0.1:1", driver="http")
    made = Load.model_validate({"closed": {"concurrency": 8}} | load if "closed" not in load else load)
    return Job(id="j1", experiment_id="e1", name="load", workload=workload, load=made)


def open_job(rate: float = 200, **load: Any) -> Job:
    return job(**load).model_copy(update={"load": Load.model_validate({"open": {"rate": rate}} | load)})


def repetition(index: int, *, seconds: float = 10, **changes: Any) -> Repetition:
    """Return a run that sent for so long, with clients who had time to spare."""
    phase = Phase(begin_ns=START, end_ns=START + round(seconds * S), cpu_ns=S, count=100)
    values: dict[str, Any] = {"started_at": AT, "phases": {"measure": phase}, "client": GOOD_SIDE}
    return Repetition(index=index, **(values | changes))


def result(repetitions: Sequence[Repetition], **changes: Any) -> Result:
    values: dict[str, Any] = {
        "prony_version": "0", "job_id": "j1", "experiment_id": "e1", "state": ResultState.COMPLETE, "started_at": AT,
        "repetitions": tuple(repetitions),
    }  # fmt: skip
    return Result(**(values | changes))
