"""A folder of job files that travels to another machine, and comes back with results and a list of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.model.job import Job
from prony.model.target import DoneNote, SentFile
from prony.runner.checksum import sha256_of
from prony.runner.folder import write_noun

JOBS, INPUTS, RESULT = "jobs", "inputs", "result"
EVENTS, DONE, LOG = "events.jsonl", "DONE", "out.log"
BEGUN, WAITING = "begun", "waiting"
DESCRIBE, VARIABLES, DESCRIPTION = "describe", "variables.json", "capabilities.json"


def write_job_folder(
    folder: Path, jobs: Sequence[Job], anchored: Sequence[Job], *, variables: Mapping[str, str] | None = None
) -> None:
    """Write jobs and the files that they name into a new folder.

    A path is what reads otherwise in the `anchored` job, whose paths are absolute: relative paths of a recipe travel,
    absolute ones mean the machine that runs the job. `variables` are those of Prony's own that the runner is to have.
    """
    (folder / JOBS).mkdir(parents=True)
    if variables:
        (folder / VARIABLES).write_text(json.dumps(dict(variables)), encoding="utf-8")
    sent: dict[str, str] = {}
    for number, (job, there) in enumerate(zip(jobs, anchored, strict=True)):
        written, absolute = job.model_dump(mode="json"), there.model_dump(mode="json")
        for part in ("workload", "load"):
            absolute[part] = _send_paths(written[part], absolute[part], folder, sent)
        write_noun(folder / JOBS / f"{number:04d}.json", Job.read(absolute))


def read_variables(folder: Path) -> dict[str, str]:
    """Return the variables that were sent along; only Prony's own count."""
    path = folder / VARIABLES
    if not path.exists():
        return {}
    sent = json.loads(path.read_text(encoding="utf-8"))
    return {str(name): str(value) for name, value in sent.items() if str(name).startswith("PRONY_")}


def write_question(folder: Path) -> None:
    """Write a new folder without jobs, which asks the machine that runs it what it is and has."""
    (folder / JOBS).mkdir(parents=True)
    (folder / DESCRIBE).touch()


def read_job_files(folder: Path) -> list[Path]:
    """Return the job files in the order in which they were written."""
    return sorted((folder / JOBS).glob("*.json"))


def begin_job_folder(folder: Path) -> bool:
    """Claim the folder for this process; False where it was claimed before: it is run once, however often started."""
    try:
        (folder / BEGUN).mkdir()
    except FileExistsError:
        return False
    return True


def write_done_note(folder: Path, note: DoneNote) -> None:
    """List what was measured and say that nothing more will come."""
    found = sorted(path for path in (folder / RESULT).rglob("*") if path.is_file() and not path.is_symlink())
    files = {
        path.relative_to(folder).as_posix(): SentFile(size=path.stat().st_size, sha256=sha256_of(path))
        for path in found
    }
    write_noun(folder / DONE, note.model_copy(update={"files": files, "node": socket.gethostname()}))


def find_missing_files(note: DoneNote, into: Path) -> list[str]:
    """Return what of the list is not in a folder, or not as it was written."""
    return [name for name, file in note.files.items() if not _is_whole(into / name, file)]


def _is_whole(path: Path, file: SentFile) -> bool:
    return path.is_file() and path.stat().st_size == file.size and sha256_of(path) == file.sha256


def _send_paths(written: Any, absolute: Any, folder: Path, sent: dict[str, str]) -> Any:
    """Return the second of two alike documents, with each path that only it has replaced by that of a copy."""
    if isinstance(absolute, dict) and isinstance(written, dict):
        return {key: _send_paths(written.get(key), value, folder, sent) for key, value in absolute.items()}
    if isinstance(absolute, list) and isinstance(written, list) and len(written) == len(absolute):
        return [_send_paths(a, b, folder, sent) for a, b in zip(written, absolute, strict=True)]
    if not isinstance(absolute, str) or absolute == written or not os.path.isabs(absolute):  # noqa: PTH117 - any text
        return absolute
    if absolute not in sent:
        sent[absolute] = _copy_input(Path(absolute), folder, len(sent))
    return sent[absolute]


def _copy_input(path: Path, folder: Path, number: int) -> str:
    name = f"{INPUTS}/{number}/{path.name}"
    (folder / name).parent.mkdir(parents=True)
    try:
        if path.is_dir():
            shutil.copytree(path, folder / name, symlinks=False, ignore=shutil.ignore_patterns(".git", "__pycache__"))
        else:
            shutil.copyfile(path, folder / name)
            shutil.copymode(path, folder / name)
    except (OSError, shutil.Error) as exc:
        raise InputError(
            f"cannot send {path}: {exc}",
            hint="files with a relative path are sent to the target; use an absolute path for a file on the target",
            code="no_input",
        ) from exc
    return name
