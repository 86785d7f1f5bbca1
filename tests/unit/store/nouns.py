"""Nouns and result folders as the runner writes them, and what the overview says of them, for tests of the store."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from sqlalchemy import text

from prony.instruments.samples import SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.calibration import Calibration
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.estimate import QUANTILES, Estimate, Grade, Summary, Verdict
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.metric import HEADLINE
from prony.model.recipe import Matrix, Recipe
from prony.model.result import Repetition, Result, ResultState
from prony.store.database import reading
from prony.store.store import Store

NOW = datetime(2025, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
WORKLOAD = ModelWorkload(kind="model", model="zoo:mlp", engine="onnxruntime")
RECIPE_TEXT = "name: quick  # kept as it was written\nworkload: {kind: model, model: 'zoo:mlp', engine: onnxruntime}\n"


def recipe(batch_sizes: tuple[int, ...] = (1, 8)) -> Recipe:
    axes = {"workload.batch_size": list(batch_sizes)} if batch_sizes else {}
    return Recipe(name="quick", workload=WORKLOAD, matrix=Matrix.model_validate(axes), labels={"team": "vision"})


def experiment(experiment_id: str = "abc123def", *, minutes: int = 0, **changes: Any) -> Experiment:
    values: dict[str, Any] = {
        "id": experiment_id,
        "name": "quick",
        "recipe": recipe(),
        "recipe_text": RECIPE_TEXT,
        "state": ExperimentState.COMPLETE,
        "created_at": NOW + timedelta(minutes=minutes),
        "ended_at": NOW + timedelta(minutes=minutes, seconds=40),
        "job_count": 2,
    }
    return Experiment(**values | changes)


def running(experiment_id: str = "abc123def", **changes: Any) -> Experiment:
    return experiment(experiment_id, state=ExperimentState.RUNNING, ended_at=None, **changes)


def jobs(experiment_id: str = "abc123def", batch_sizes: tuple[int, ...] = (1, 8)) -> tuple[Job, ...]:
    return tuple(
        Job(
            id=f"{experiment_id}-{number}",
            experiment_id=experiment_id,
            name="quick",
            cell={"workload.batch_size": size},
            workload=WORKLOAD.model_copy(update={"batch_size": size}),
            labels={"team": "vision"},
            seed=number,
        )
        for number, size in enumerate(batch_sizes)
    )


def result(job: Job, state: ResultState = ResultState.COMPLETE, **changes: Any) -> Result:
    values: dict[str, Any] = {
        "prony_version": "0.1.0",
        "job_id": job.id,
        "experiment_id": job.experiment_id,
        "state": state,
        "started_at": NOW,
        "ended_at": NOW + timedelta(seconds=30),
        "repetitions": (Repetition(index=0, started_at=NOW),),
    }
    return Result(**values | changes)


def environment() -> Environment:
    hardware = Hardware(cpu=Cpu(architecture="aarch64", logical_cores=2, allowed_cores=2), memory_mib=4096)
    software = Software(os="linux", kernel="6.1", python="3.11.2", prony="0.1.0")
    device = Device(name="bench", hardware_id="hw-1", software_id="sw-1", hardware=hardware, software=software)
    return Environment(device=device, state=State(taken_at=NOW), clock={"resolution_ns": 1})


def summary(job: Job, *, median_ms: float = 2.5, grade: Grade = Grade.VALID, estimated: bool = True) -> Summary:
    estimate = Estimate(
        value=median_ms, unit="ms", low=median_ms - 0.1, high=median_ms + 0.2, confidence=0.95, count=5, method="t"
    )
    # NaN is what a statistic of nothing is, and must survive every way through the store.
    spread = Estimate(value=float("nan"), unit="ms", count=1, method="sd")
    estimates = {HEADLINE: estimate, "inference_ms.sd": spread} if estimated else {}
    return Summary(job_id=job.id, title=job.title, cell=job.cell, estimates=estimates, quantiles=QUANTILES,
                   verdict=Verdict(grade=grade))  # fmt: skip


def calibration(calibration_id: str = "c1", *, hardware_id: str = "hw-1", minutes: int = 0) -> Calibration:
    figure = Estimate(value=41.5, unit="ns", low=41.0, high=42.0, confidence=0.95, count=9, method="t")
    return Calibration(
        id=calibration_id,
        hardware_id=hardware_id,
        software_id="sw-1",
        taken_at=NOW + timedelta(minutes=minutes),
        figures={"clock_cost_ns": figure},
    )


def write_folder(folder: Path, job: Job, state: ResultState = ResultState.COMPLETE, **changes: Any) -> Path:
    """Write a small result folder with real Parquet files."""
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "child-0.log").write_text("loaded\n")
    for name, noun in (
        ("job.json", job),
        ("result.json", result(job, state, **changes)),
        ("environment.json", environment().model_copy(update={"git": job.git})),
    ):
        (folder / name).write_text(noun.model_dump_json(indent=2))
    for name, content in _sample_files().items():
        (folder / name).write_bytes(content)
    return folder


@cache
def _sample_files() -> dict[str, bytes]:
    """Return the Parquet files, which are the same in every folder."""
    begins = list(range(1_000, 101_000, 1_000))
    ends = [begin + 500 + begin % 7 for begin in begins]
    frames = {
        SAMPLES: sample_frame([(0, "measure", begins, ends)]),
        TELEMETRY: telemetry_frame([(0, 1_000, "host", {"load": 0.5})]),
    }
    written = {name: BytesIO() for name in frames}
    for name, frame in frames.items():
        frame.write_parquet(written[name])
    return {name: file.getvalue() for name, file in written.items()}


def summarise(folder: Path) -> Summary:
    """Stand in for analysis, which the store may not know: a summary from what the folder says."""
    job = Job.read_json((folder / "job.json").read_bytes())
    return summary(job, median_ms=float(job.cell.get("workload.batch_size", 1)))


def accept_recipe(text: str, name: str) -> None:
    """Stand in for the reading of recipes, which the store may not know."""


def edited(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def overview(store: Store) -> list[dict[str, Any]]:
    """Return the rows that `prony list` is made of, the newest first, from either database."""
    query = text("SELECT * FROM experiment_overview ORDER BY created_at DESC, id DESC")
    with reading(store.engine) as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
