"""Jobs, results and samples to be summarised, made of plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from prony.instruments.samples import sample_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.job import Job
from prony.model.recipe import Measure
from prony.model.result import (
    Effective,
    Failure,
    ModelFacts,
    OutputCheck,
    Phase,
    Repetition,
    Result,
    ResultState,
)
from prony.stats.quantiles import Array

if TYPE_CHECKING:
    import polars as pl

AT = datetime(2026, 1, 1, tzinfo=UTC)
GOOD_CHECK = OutputCheck(
    finite=True, reference="onnxruntime fp32", compared=True, max_error_of_range=1e-6, cosine=1.0, outputs=1
)


def job(*, batch_size: int = 1, precision: Any = "default", unit: str = "cpu", **measure: Any) -> Job:
    workload = ModelWorkload(
        kind="model", model="zoo:mlp", engine="onnxruntime", unit=unit, batch_size=batch_size, precision=precision
    )
    return Job(id="j1", experiment_id="e1", name="mlp", workload=workload, measure=Measure(**measure))


def repetition(index: int, **changes: Any) -> Repetition:
    return Repetition(index=index, started_at=AT, **changes)


def failed(index: int, message: str = "SIGILL: wrong instruction") -> Repetition:
    return repetition(index, state="failed", failure=Failure(code="crash", message=message, phase="load"))


def result(repetitions: Sequence[Repetition], **changes: Any) -> Result:
    values: dict[str, Any] = {
        "prony_version": "0", "job_id": "j1", "experiment_id": "e1", "state": ResultState.COMPLETE,
        "started_at": AT, "repetitions": tuple(repetitions), "check": GOOD_CHECK,
        "effective": effective("fp32"), "model": model_facts({"float32": 10}),
    }  # fmt: skip
    return Result(**(values | changes))


def effective(precision: str) -> Effective:
    return Effective(engine="openvino", engine_version="1", python="3", device="cpu", precision=precision)


def model_facts(weight_types: dict[str, int]) -> ModelFacts:
    return ModelFacts(
        source="zoo:mlp", path="m.onnx", format="onnx", sha256="0", size_bytes=1, files=("m.onnx",),
        weight_types=weight_types,
    )  # fmt: skip


def environment(clock: dict[str, float | int | str | bool]) -> Environment:
    hardware = Hardware(cpu=Cpu(architecture="x", logical_cores=1, allowed_cores=1), memory_mib=1)
    software = Software(os="linux", kernel="6", python="3", prony="0")
    device = Device(name="d", hardware_id="h", software_id="s", hardware=hardware, software=software)
    return Environment(device=device, state=State(taken_at=AT), clock=clock)


def samples(
    durations_ns: Mapping[int, Sequence[int] | Array], *, load_ns: int = 5_000_000, gap_ns: int = 100
) -> pl.DataFrame:
    """Return load, first inference, two warm-ups and the given measured durations, `gap_ns` apart."""
    rows: list[tuple[int, str, list[int], list[int]]] = []
    for index, measured in durations_ns.items():
        ends = np.cumsum(np.asarray(measured, dtype=np.int64) + gap_ns) + 20_000_000
        begins = ends - np.asarray(measured, dtype=np.int64)
        rows += [
            (index, "load", [0], [load_ns + index * 1000]),
            (index, "first", [10_000_000], [12_000_000]),
            (index, "warmup", [13_000_000, 14_000_000], [13_900_000, 14_900_000]),
            (index, "measure", begins.tolist(), ends.tolist()),
        ]
    return sample_frame(rows)


def steady_runs(count: int, *, size: int = 100, spread: float = 0.01, seed: int = 0) -> dict[int, Array]:
    """Return runs of about a millisecond that differ by `spread` within and between."""
    rng = np.random.default_rng(seed)
    levels = 1e6 * np.exp(rng.normal(0, spread, count))
    return {i: np.round(levels[i] * np.exp(rng.normal(0, spread, size))).astype(np.int64) for i in range(count)}


def phase(**changes: Any) -> Phase:
    return Phase(**({"begin_ns": 0, "end_ns": 10**9, "cpu_ns": 3 * 10**8, "count": 100} | changes))
