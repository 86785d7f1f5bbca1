"""The result folder, kept good at every instant: a repetition is on disk before the next one begins.

While the job runs, `result.json` says `partial` and each repetition's samples lie in `parts/`. `finish` turns the parts
into `samples.parquet`; a folder whose runner was killed can be finished later and keeps what was measured.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prony import __version__
from prony.errors import ConflictError, StoreError
from prony.instruments.kept_answers import OUTPUTS
from prony.instruments.samples import SAMPLE_PHASES, SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.model.base import Noun
from prony.model.device import Environment
from prony.model.job import Job
from prony.model.result import Failure, Repetition, Result, ResultState
from prony.ports.clock import Clock
from prony.runner.checksum import sha256_of

if TYPE_CHECKING:
    import polars as pl

PARTS = "parts"
_EMPTY = Path(__file__).parent / "empty"
_WAIT_S = 30
_PAUSE_S = 0.05
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
            raise ConflictError(f"{path} is not empty", hint="choose a new folder: results are never overwritten")
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
        """Keep the machine as it is, with the repository of the job's recipe: that was read where it was submitted."""
        write_noun(self.path / "environment.json", environment.model_copy(update={"git": self.job.git}))

    def part(self, repetition: int) -> Path:
        return self.path / PARTS / f"{repetition:04d}.i64"

    def requests_part(self, repetition: int) -> Path:
        return self.path / PARTS / f"{repetition:04d}.parquet"

    def add(self, repetition: Repetition, log: str = "") -> None:
        """Keep one repetition; from now on nothing but the loss of the disk can lose it."""
        self.update(repetitions=(*self.result.repetitions, repetition))
        self.save()
        if log:
            (self.path / "logs" / f"repetition-{repetition.index:04d}.log").write_bytes(f"{log}\n".encode())

    def finish(self, state: ResultState, ended_at: datetime, telemetry: list[TelemetryRow]) -> None:
        """Write the sample files and say how it ended; `result.json` comes last, because it says so."""
        write_frame(self.path / TELEMETRY, telemetry_frame(telemetry))
        compile_samples(self.path, self.result)
        self.update(state=state, ended_at=ended_at, checksums=sample_checksums(self.path))
        self.save()
        shutil.rmtree(self.path / PARTS)

    def finish_without_samples(self, state: ResultState, ended_at: datetime) -> None:
        """The same of a job whose numbers came without samples: its sample files are there, and empty."""
        for name, content in _empty_files():
            with _replacing(self.path / name) as unfinished:
                unfinished.write_bytes(content)
        self.update(state=state, ended_at=ended_at)
        self.save()
        shutil.rmtree(self.path / PARTS)


def begin_folders(
    jobs: Sequence[Job], paths: Sequence[Path], environment: Environment, clock: Clock
) -> list[ResultFolder]:
    """Make the folder of each job, with the machine as it is."""
    made = []
    for job, path in zip(jobs, paths, strict=True):
        made.append(ResultFolder.begin(path, job, prony_version=__version__, started_at=clock.now()))
        made[-1].write_environment(environment)
    return made


@cache
def _empty_files() -> tuple[tuple[str, bytes], ...]:
    """Return the sample files of a job without samples: kept in the package, so that a server which writes thousands
    need not load what writes such files."""
    return tuple((name, (_EMPTY / name).read_bytes()) for name in (TELEMETRY, SAMPLES))


def sample_checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each sample file, by which later damage is noticed."""
    return {name: sha256_of(folder / name) for name in (SAMPLES, TELEMETRY, OUTPUTS) if (folder / name).exists()}


def decline(path: Path, job: Job, environment: Environment, failure: Failure, now: datetime) -> Result:
    """Write the folder of a job that is not run here at all."""
    made = ResultFolder.begin(path, job, prony_version=__version__, started_at=now)
    made.write_environment(environment)
    made.update(failure=failure)
    made.finish(ResultState.FAILED, now, [])
    return made.result


@contextmanager
def mark_writing(place: Path) -> Iterator[None]:
    """Let everybody see that a runner writes here: to one result folder, or to all those inside this one.

    One lock for all of them, because an experiment may have more jobs than a process may have open files. The system
    lets go of it when this process ends, however it ends.
    """
    place.mkdir(parents=True, exist_ok=True)
    hold = _open_folder(place)
    _take(hold)
    try:
        yield
    finally:
        _let_go(hold)


@contextmanager
def wait_until_abandoned(folder: Path) -> Iterator[None]:
    """Wait until no runner writes to the folder, and keep everybody else from mending it meanwhile."""
    holds, deadline = [_open_folder(folder), _open_folder(folder.parent)], time.monotonic() + _WAIT_S
    try:
        while not all(_take(hold) for hold in holds):
            if time.monotonic() > deadline:
                hint = "its runner is still active: wait for it, or end it"
                raise StoreError(f"{folder} is still being written", hint=hint, code="store_busy")
            time.sleep(_PAUSE_S)
        yield
    finally:
        for hold in holds:
            _let_go(hold)


def _open_folder(place: Path) -> int | None:
    """Return a descriptor of a folder, to be locked; None where it is gone or cannot be had."""
    try:
        return None if sys.platform == "win32" else os.open(place, os.O_RDONLY)
    except FileNotFoundError:
        return None


def _let_go(hold: int | None) -> None:
    if hold is not None:
        os.close(hold)


def _take(hold: int | None) -> bool:
    """Say whether nobody else holds it; where there are no such locks, nobody does."""
    if hold is None or sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def compile_samples(folder: Path, result: Result) -> None:
    """Write `samples.parquet` from the parts; also how a folder that was left partial is mended."""
    runs = sorted((folder / PARTS).glob("*.parquet"))
    if len(runs) == 1:  # it is whole already; a link, for the part goes only when all is done
        with _replacing(folder / SAMPLES) as unfinished:
            unfinished.unlink(missing_ok=True)
            os.link(runs[0], unfinished)
        return
    frame = _requests(runs) if runs else sample_frame(_blocks(folder, result))
    write_frame(folder / SAMPLES, frame)


def _requests(runs: Sequence[Path]) -> pl.DataFrame:
    import polars as pl

    from prony.instruments.requests import join_runs

    try:
        return join_runs(pl.read_parquet(path) for path in runs)
    except pl.exceptions.PolarsError as exc:
        hint = "this can follow a power failure; remove this file to keep the others"
        raise StoreError(f"a part of {runs[0].parent} is damaged: {exc}", hint=hint) from exc


def _blocks(folder: Path, result: Result) -> Iterator[tuple[int, str, array[int], array[int]]]:
    for repetition in result.repetitions:
        path = folder / PARTS / f"{repetition.index:04d}.i64"
        if not path.exists():
            continue
        with path.open("rb") as file:
            for phase in SAMPLE_PHASES:
                count = repetition.phases[phase].count if phase in repetition.phases else 0
                begins, ends = array("q"), array("q")
                try:
                    begins.fromfile(file, count)
                    ends.fromfile(file, count)
                except (EOFError, ValueError) as exc:  # ValueError: not even a whole number at its end
                    hint = "this can follow a power failure; remove this file to keep the others"
                    raise StoreError(f"{path} is cut short", hint=hint) from exc
                yield repetition.index, phase, begins, ends


def write_noun(path: Path, noun: Noun) -> None:
    """Replace a JSON file in one step, so that a reader sees the old one or the new one."""
    with _replacing(path) as unfinished:
        unfinished.write_bytes(noun.model_dump_json(indent=1).encode())


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Replace a Parquet file in one step."""
    import polars as pl

    with _replacing(path) as unfinished:
        try:
            frame.write_parquet(unfinished)
        except pl.exceptions.PolarsError as exc:  # how it tells of a disk that is full
            raise OSError(str(exc)) from exc


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give the name to write to; what was written takes the place of `path`, or nothing of it stays."""
    unfinished = path.with_name(f".{path.name}.tmp")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as exc:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {exc.strerror or exc}", hint="check whether the disk is full or read-only"
        ) from exc
