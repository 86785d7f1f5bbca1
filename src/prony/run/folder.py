"""The result folder, kept good at every instant: a repetition is on disk before the next one begins.

While the job runs, `result.json` says `partial` and each repetition's samples lie in `parts/`. `finish` turns the parts
into `samples.parquet`; a folder whose runner was killed can be finished later and keeps what was measured.
"""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import ConflictError, StoreError
from prony.measure.samples import SAMPLE_PHASES, SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.model.base import Noun
from prony.model.device import Environment
from prony.model.job import Job
from prony.model.result import Repetition, Result, ResultState

if TYPE_CHECKING:
    import polars as pl

PARTS = "parts"
TelemetryRow = tuple[int, int, str, Mapping[str, float]]


class ResultFolder:
    """One job's folder while the runner writes it."""

    def __init__(self, path: Path, job: Job, result: Result) -> None:
        self.path = path
        self.job = job
        self.result = result

    @classmethod
    def begin(cls, path: Path, job: Job, *, prony_version: str, started_at: datetime) -> ResultFolder:
        """Make the folder, marked partial; refuse one that holds something."""
        if path.exists() and any(path.iterdir()):
            raise ConflictError(f"{path} is not empty", hint="give a new folder: results are never overwritten")
        (path / PARTS).mkdir(parents=True, exist_ok=True)
        (path / "logs").mkdir(exist_ok=True)
        write_noun(path / "job.json", job)
        result = Result(
            prony_version=prony_version,
            job_id=job.id,
            experiment_id=job.experiment_id,
            state=ResultState.PARTIAL,
            started_at=started_at,
        )
        folder = cls(path, job, result)
        folder.save()
        return folder

    def update(self, **changes: object) -> None:
        self.result = self.result.model_copy(update=changes)

    def save(self) -> None:
        write_noun(self.path / "result.json", self.result)

    def write_environment(self, environment: Environment) -> None:
        write_noun(self.path / "environment.json", environment)

    def part(self, repetition: int) -> Path:
        return self.path / PARTS / f"{repetition:04d}.i64"

    def add(self, repetition: Repetition, log: str = "") -> None:
        """Keep one repetition; from now on nothing but the loss of the disk can lose it."""
        self.update(repetitions=(*self.result.repetitions, repetition))
        self.save()
        if log:
            (self.path / "logs" / f"repetition-{repetition.index:04d}.log").write_text(log + "\n")

    def finish(self, state: ResultState, ended_at: datetime, telemetry: list[TelemetryRow]) -> None:
        """Write the sample files and say how it ended; `result.json` comes last, because it says so."""
        write_frame(self.path / TELEMETRY, telemetry_frame(telemetry))
        compile_samples(self.path, self.result)
        self.update(state=state, ended_at=ended_at)
        self.save()
        shutil.rmtree(self.path / PARTS)


def compile_samples(folder: Path, result: Result) -> None:
    """Write `samples.parquet` from the parts; also how a folder that was left partial is mended."""
    write_frame(folder / SAMPLES, sample_frame(_blocks(folder, result)))


def _blocks(folder: Path, result: Result) -> Iterator[tuple[int, str, array[int], array[int]]]:
    for repetition in result.repetitions:
        path = folder / PARTS / f"{repetition.index:04d}.i64"
        if not path.exists():
            continue
        with path.open("rb") as file:
            for phase in SAMPLE_PHASES:
                count = repetition.phases[phase].count if phase in repetition.phases else 0
                begins, ends = array("q"), array("q")
                begins.fromfile(file, count)
                ends.fromfile(file, count)
                yield repetition.index, phase, begins, ends


def write_noun(path: Path, noun: Noun) -> None:
    """Replace a JSON file in one step, so that a reader sees the old one or the new one."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        unfinished.write_text(noun.model_dump_json(indent=1))
        unfinished.replace(path)
    except OSError as exc:
        raise StoreError(f"cannot write {path}: {exc.strerror}", hint="is the disk full or read-only?") from exc


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Replace a Parquet file in one step."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        frame.write_parquet(unfinished)
        unfinished.replace(path)
    except OSError as exc:
        raise StoreError(f"cannot write {path}: {exc}", hint="is the disk full or read-only?") from exc
