"""Dossiers of loads for tests: seeded requests in real files, summaries by the real analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prony.analyse.load.summary import summarise_load
from prony.app.sweeps import sweep_of
from prony.instruments.requests import Digests, Taken, join_runs, request_frame
from prony.instruments.samples import SAMPLES
from prony.kinds.service.schema import ServiceWorkload
from prony.model.clients import ClientSide, ServiceFacts
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.job import Job
from prony.model.load import Load
from prony.model.recipe import Recipe
from prony.model.result import Phase, Repetition, Result, ResultState
from prony.model.workload import Scalar
from prony.ports.driver import Cause, Digest
from prony.stats.quantiles import Array
from report.experiments import BEGAN_AT, environment

S, MS = 1_000_000_000, 1_000_000
START = 70 * S


def records(users: int, seconds: int, latency_ms: float, seed: int) -> dict[str, Array]:
    """Return a closed load; one request in two hundred is refused by the server."""
    rng = np.random.default_rng(seed)
    per_user = int(seconds * 2000 / latency_ms)
    took = (latency_ms * MS * rng.lognormal(0, 0.2, (users, per_user))).astype(np.int64)
    ends = START + seed * 100 * S + np.cumsum(took, axis=1)
    sent = (ends - took)[kept] if (kept := ends - took < START + seed * 100 * S + seconds * S).any() else ends
    order = np.argsort(sent, kind="stable")
    sent, end = sent[order], ends[kept][order]
    none = np.zeros(sent.size, dtype=np.int64)
    cause = np.where(rng.random(sent.size) < 0.005, int(Cause.STATUS), 0)
    return {
        "index": np.arange(sent.size), "request": np.arange(sent.size) % 2, "due_ns": sent, "sent_ns": sent,
        "first_ns": sent + (end - sent) // 3, "end_ns": end, "status": np.where(cause, 503, 200), "cause": cause,
        "bytes_in": none + 512, "lag_ns": none + 8_000, "reads": none + 3, "spool_at": none - 1,
    }  # fmt: skip


def entry(folder: Path, number: int, cell: dict[str, Scalar], load: dict[str, Any], *, tokens: bool = False) -> Entry:
    """Return one load of three runs with its file and its real summary."""
    made = Load.model_validate({"repeats": 3} | load)
    users = made.users.concurrency
    job = Job(
        id=f"job-{number}", experiment_id="exp-2", name="endpoint", cell=cell, load=made,
        workload=ServiceWorkload(kind="service", endpoint="http://127.0.0.1:8000", driver="openai-chat"),
    )  # fmt: skip
    frames, repetitions = [], []
    for index in range(made.repeats):
        columns = records(users, 4, 20 + users, 10 * number + index)
        begin = START + (10 * number + index) * 100 * S
        digests = _digests(columns) if tokens else Digests()
        frames.append(
            request_frame(
                Taken(index, columns, ["chat", "=embed|<b>"], is_open=False, window_ns=(begin, begin + 4 * S),
                      digests=digests)
            )
        )  # fmt: skip
        repetitions.append(_repetition(index, begin, users, columns))
    samples = join_runs(frames)
    target = folder / job.id
    target.mkdir(parents=True)
    samples.write_parquet(target / SAMPLES)
    result = Result(
        prony_version="0.1.0", job_id=job.id, experiment_id="exp-2", state=ResultState.COMPLETE, started_at=BEGAN_AT,
        repetitions=tuple(repetitions),
        service=ServiceFacts(name="llm", version="1.2", settings={"max": "8"}, notes={"model": "tiny"}),
    )  # fmt: skip
    summary = summarise_load(job, result, samples)
    return Entry(job=job, result=result, summary=summary, environment=environment(), folder=target)


def _digests(columns: dict[str, Array]) -> Digests:
    digests = Digests()
    for row, (first, end) in enumerate(zip(columns["first_ns"], columns["end_ns"], strict=True)):
        stamps = np.linspace(first, end, 6).astype(np.int64)
        digests.add(row, Digest(input_tokens=32, output_tokens=6, token_ns=stamps, content_ns=int(stamps[2])))
    return digests


def _repetition(index: int, begin: int, users: int, columns: dict[str, Array]) -> Repetition:
    failed = int(np.count_nonzero(columns["cause"]))
    side = ClientSide(
        asked_concurrency=users, delivered_concurrency=users * 0.999, kernel_lag_p50_ms=0.01, kernel_lag_p99_ms=0.06,
        loop_lag_p50_ms=0.01, loop_lag_p99_ms=0.08, cpu_shares=(0.21, 0.2), connections_asked=users,
        connections_opened=users, causes={"ok": columns["index"].size - failed, "status": failed},
    )  # fmt: skip
    phase = Phase(begin_ns=begin, end_ns=begin + 4 * S, cpu_ns=S, count=columns["index"].size)
    return Repetition(index=index, started_at=BEGAN_AT, phases={"measure": phase}, client=side)


def data(entries: Sequence[Entry]) -> ExperimentData:
    recipe = Recipe(name="endpoint", workload=entries[0].job.workload)
    experiment = Experiment(
        id="exp-2", name="endpoint", recipe=recipe, recipe_text="name: endpoint", state=ExperimentState.COMPLETE,
        created_at=BEGAN_AT, ended_at=BEGAN_AT, job_count=len(entries),
    )  # fmt: skip
    return ExperimentData(experiment=experiment, entries=tuple(entries), sweep=sweep_of(entries))


def one_load(folder: Path, **load: Any) -> ExperimentData:
    return data([entry(folder, 0, {}, {"closed": {"concurrency": 4}} | load, tokens=True)])


def swept(folder: Path) -> ExperimentData:
    made = [
        entry(folder, number, {"load.closed.concurrency": users}, {"closed": {"concurrency": users}})
        for number, users in enumerate((1, 4, 16))
    ]
    return data(made)
