"""Read a result folder, and name the file that is missing or damaged."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from prony.errors import NotFoundError, StoreError
from prony.instruments.samples import SAMPLES, TELEMETRY
from prony.model.base import Noun
from prony.model.device import Environment
from prony.model.job import Job
from prony.model.result import Result, ResultState
from prony.model.validation_words import describe_invalid

if TYPE_CHECKING:
    import polars as pl

JOB = "job.json"
RESULT = "result.json"
ENVIRONMENT = "environment.json"
_READ_AT_ONCE = 8 * 2**20
_HINT = "restore it from a copy, or run the job again"

N = TypeVar("N", bound=Noun)


@dataclass(frozen=True)
class FolderContents:
    """`samples` are there where they were few and had to be looked at anyway."""

    path: Path
    job: Job
    result: Result
    environment: Environment
    samples: pl.DataFrame | None = None


def read_folder(path: Path) -> FolderContents:
    """Read what the runner left. A complete result must have samples that can be read to their end."""
    contents = read_nouns(path)
    return (
        replace(contents, samples=_samples(path, contents.job))
        if contents.result.state is ResultState.COMPLETE
        else contents
    )


def read_nouns(path: Path) -> FolderContents:
    """Read all but the samples, of a folder whose samples were looked at when it came."""
    if not path.is_dir():
        raise NotFoundError(
            f"no result folder at {path}", hint="if it was moved, move it back; else `prony delete ID` removes the rest"
        )
    contents = FolderContents(
        path=path,
        job=read_noun(path / JOB, Job),
        result=read_noun(path / RESULT, Result),
        environment=read_noun(path / ENVIRONMENT, Environment),
    )
    _check_same_job(contents)
    return contents


def read_noun(path: Path, kind: type[N]) -> N:
    """Read one JSON file that this or another Prony wrote."""
    try:
        return kind.read_json(path.read_bytes())
    except FileNotFoundError as exc:
        hint = "the folder is not complete: wait until `prony exec` has ended, or run the job again"
        raise NotFoundError(f"no {path.name} in {path.parent}", hint=hint) from exc
    except OSError as exc:
        raise StoreError(f"cannot read {path}: {exc.strerror}", hint="check its permissions and its disk") from exc
    except ValidationError as exc:
        raise StoreError(f"{path} is damaged: {describe_invalid(exc, whole='the whole file')}", hint=_HINT) from exc


def damage_in(path: Path, job: Job, result: Result) -> str | None:
    """Say what is wrong with the sample files of a result; None where they are as its runner left them.

    `result` is the store's own copy: whoever changes the folder does not change it. A result of an older Prony has no
    checksums; then the files of a complete one are read to their end.
    """
    for name, wanted in result.checksums.items():
        try:
            with (path / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            return f"{path / name} cannot be read: {exc.strerror}"
        if found != wanted:
            return f"{path / name} is damaged: its SHA-256 is not that of the measured data"
    if not result.checksums and result.state is ResultState.COMPLETE:
        try:
            _samples(path, job)
        except (StoreError, NotFoundError) as exc:
            return exc.message
    return None


def check_damage(path: Path, job: Job, result: Result) -> None:
    """Refuse a result whose sample files are not as its runner left them."""
    found = damage_in(path, job, result)
    if found is not None:
        raise StoreError(f"job {job.id}: {found}", hint=_HINT, code="damaged_samples")


def _check_same_job(contents: FolderContents) -> None:
    job, result = contents.job, contents.result
    if (job.id, job.experiment_id) != (result.job_id, result.experiment_id):
        raise StoreError(
            f"{contents.path / RESULT} is of job {result.job_id} of {result.experiment_id}, "
            f"but {JOB} says {job.id} of {job.experiment_id}",
            hint="the folder mixes files of two jobs; run the job again",
        )


def _samples(folder: Path, job: Job) -> pl.DataFrame | None:
    if not (folder / SAMPLES).is_file():
        raise NotFoundError(f"the result in {folder} is complete but has no {SAMPLES}", hint=_HINT)
    if (folder / TELEMETRY).exists():
        _decode(folder / TELEMETRY, ("repetition", "at_ns", "probe", "counter", "value"))
    return _decode(folder / SAMPLES, ("repetition", "index", "phase", *job.workload.sample_columns))


def _decode(path: Path, columns: tuple[str, ...]) -> pl.DataFrame | None:
    """Decode every page, of a large file as a stream, which leaves nothing: a good footer says nothing of the data."""
    import polars as pl

    try:
        if path.stat().st_size < _READ_AT_ONCE:
            frame = pl.read_parquet(path.read_bytes())  # bytes: without a search for a pattern
            frame.select(columns)  # all of them are there
            return frame
        # A count of distinct values cannot be answered from the footer's statistics.
        pl.scan_parquet(path).select(pl.col(columns).n_unique()).collect(engine="streaming")
    except (pl.exceptions.PolarsError, OSError) as exc:
        first_line = str(exc).strip().splitlines()[0]
        raise StoreError(f"{path} is damaged: {first_line}", hint=_HINT) from exc
    return None
