"""Read an export or result folders as an experiment with jobs and results, and check its files by their checksums."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from prony import __version__
from prony.errors import ConflictError, InputError, NotFoundError, StoreError
from prony.model.base import Noun
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.recipe import MOST_COMBINATIONS, Matrix, Recipe
from prony.model.states import outcome_of_results
from prony.model.workload import Scalar, kind_package
from prony.store.codecs import experiment_from
from prony.store.folder import JOB, RESULT, FolderContents, read_folder, read_noun

MANIFEST = "MANIFEST.json"


class Manifest(Noun):
    """What an export holds: its jobs in order, which attempt of each, and the SHA-256 of every file by its path."""

    version: int = 1
    prony_version: str = __version__
    experiment_id: str
    jobs: tuple[str, ...] = ()
    attempts: dict[str, int] = Field(default={})
    files: dict[str, str]


def check_export_target(to: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds something, unless it is an export that may be overwritten."""
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        return
    if not overwrite:
        raise ConflictError(f"{to} exists already", hint="name another folder, or overwrite it: --overwrite")
    # Overwriting removes the whole folder: only one that we made.
    if not (to / MANIFEST).is_file() or not (to / EXPERIMENT).is_file():
        raise ConflictError(f"{to} is not an export, so it is not overwritten", hint="name another folder")


def bundle_files(folder: Path) -> list[Path]:
    """Return every file below a folder, sorted; a link or a device is refused, a hidden file passed over."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue  # left by the system's file browser
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise InputError(f"{path} is not a plain file", hint="a result folder holds plain files and folders only")
        found += bundle_files(path) if path.is_dir() else [path]
    return found


def checksums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file, by its path from `folder` with forward slashes."""
    return {path.relative_to(folder).as_posix(): _sha256(path) for path in bundle_files(folder)}


def verify_files(folder: Path, manifest: Manifest) -> None:
    """Say which file is missing, damaged or not part of what was exported."""
    hint = "copy the export again from where it was made"
    found = checksums(folder)
    found.pop(MANIFEST, None)
    for name, wanted in manifest.files.items():
        if name not in found:
            raise StoreError(f"{folder} lacks {name}, which {MANIFEST} names", hint=hint)
        if found[name] != wanted:
            raise StoreError(f"{folder / name} is damaged: its checksum does not match {MANIFEST}", hint=hint)
    for name in found.keys() - manifest.files.keys():
        raise StoreError(f"{folder / name} is not named in {MANIFEST}", hint="remove it, or copy the export again")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


EXPERIMENT = "experiment.json"
JOBS = "jobs"


@dataclass(frozen=True)
class Bundle:
    """`is_whole` is False when the experiment was put together again from its jobs' folders."""

    experiment: Experiment
    jobs: tuple[Job, ...]
    results: tuple[FolderContents, ...]
    attempts: dict[str, int]
    is_whole: bool


def read_bundle(path: Path) -> Bundle:
    """Read an export, one result folder, or a folder of result folders of one experiment."""
    if not path.is_dir():
        raise NotFoundError(f"no folder at {path}", hint="name an export or a result folder")
    if (path / EXPERIMENT).exists() or (path / MANIFEST).exists():
        return _read_export(path)
    if (path / JOB).exists():
        return _rebuilt([path])
    folders = sorted(child for child in path.iterdir() if (child / JOB).exists() and not child.name.startswith("."))
    if folders:
        return _rebuilt(folders)
    raise InputError(f"{path} is neither an export nor a result folder", hint=f"it has no {EXPERIMENT} and no {JOB}")


def _read_export(path: Path) -> Bundle:
    manifest = read_noun(path / MANIFEST, Manifest) if (path / MANIFEST).exists() else None
    if manifest is not None:
        verify_files(path, manifest)
    experiment = _read_experiment(path / EXPERIMENT)
    if experiment.state is ExperimentState.RUNNING:
        raise InputError(f"{path / EXPERIMENT} says that it is still running", hint="export it when it has ended")
    inside = path / JOBS
    folders = {child.name: child for child in sorted(inside.iterdir())} if inside.is_dir() else {}
    order = [name for name in (manifest.jobs if manifest else ()) if name in folders]
    order += [name for name in folders if name not in order and not name.startswith(".")]
    jobs = _read_jobs([folders[name] for name in order])
    results = tuple(read_folder(folders[name]) for name in order if (folders[name] / RESULT).exists())
    _check_one_experiment(path, experiment.id, jobs)
    return Bundle(experiment, jobs, results, manifest.attempts if manifest else {}, is_whole=True)


def _read_jobs(folders: Sequence[Path]) -> tuple[Job, ...]:
    """Read the jobs of folders; without the package of a kind nobody can tell whether its samples are whole.

    Raises:
        NotFoundError: The kind of a job is not installed here, with the code `unknown_kind`.
    """
    jobs = tuple(read_noun(folder / JOB, Job) for folder in folders)
    for kind in dict.fromkeys(job.workload.kind for job in jobs):
        kind_package(kind)
    return jobs


def _read_experiment(path: Path) -> Experiment:
    read_noun(path, Experiment)  # says which key is wrong
    try:
        return experiment_from(json.loads(path.read_bytes()))
    except ValidationError as exc:
        raise StoreError(
            f"{path} is damaged: the matrix of its recipe cannot be read", hint="export the experiment again"
        ) from exc


def _rebuilt(folders: Sequence[Path]) -> Bundle:
    jobs = _read_jobs(folders)
    results = tuple(read_folder(folder) for folder in folders)
    _check_one_experiment(folders[0].parent, jobs[0].experiment_id, jobs)
    ends = [contents.result.ended_at for contents in results]
    experiment = Experiment(
        id=jobs[0].experiment_id,
        name=jobs[0].name,
        recipe=_recipe(jobs),
        state=outcome_of_results([contents.result.state for contents in results], expected=len(results)),
        created_at=min(contents.result.started_at for contents in results),
        ended_at=max((end for end in ends if end is not None), default=None),
        job_count=len(jobs),
        git=jobs[0].git,
    )
    return Bundle(experiment, jobs, results, {}, is_whole=False)


def _recipe(jobs: Sequence[Job]) -> Recipe:
    """Write the recipe that expands into just these jobs again; the words of the first one are lost."""
    first = jobs[0]
    axes: dict[str, list[Scalar]] = {}
    for job in jobs:
        for path, value in job.cell.items():
            values = axes.setdefault(path, [])
            values += [] if value in values else [value]
    if math.prod(map(len, axes.values())) > MOST_COMBINATIONS:
        raise InputError(
            f"the settings of these jobs have more than {MOST_COMBINATIONS:,} combinations, the most of a recipe",
            hint="import an export of the whole experiment, which has its recipe",
        )
    return Recipe(
        name=re.sub(r"[^A-Za-z0-9._-]", "-", first.name).lstrip("._-")[:100] or "imported",
        workload=first.workload,
        matrix=Matrix.model_validate(axes | {"exclude": _absent(axes, jobs)}),
        measure=first.measure,
        load=first.load,
        limits=first.limits,
        labels=first.labels,
    )


def _absent(axes: dict[str, list[Scalar]], jobs: Sequence[Job]) -> list[dict[str, Scalar]]:
    cells: list[dict[str, Scalar]] = [{}]
    for path, values in axes.items():
        cells = [cell | {path: value} for cell in cells for value in values]
    present = [job.cell for job in jobs]
    return [cell for cell in cells if cell not in present]


def _check_one_experiment(path: Path, experiment_id: str, jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.experiment_id != experiment_id:
            raise StoreError(
                f"{path} mixes experiments: job {job.id} is of {job.experiment_id}, not of {experiment_id}",
                hint="import the folders of one experiment at a time",
            )
