"""An experiment or a job of this machine in, the logs beside its results out."""

from __future__ import annotations

from pathlib import Path

from prony.errors import NotFoundError
from prony.store.store import Store


def log_files(store: Store, text: str) -> list[tuple[str, Path]]:
    """Return every log that is not empty, with its job and its name; `text` is an id, the beginning of one, or last."""
    experiment_id, job_id = _named(store, text)
    found = []
    for job in store.jobs(experiment_id):
        folder = store.home.result_folder(experiment_id, job.id) / "logs"
        if job_id in (None, job.id) and folder.is_dir():
            files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
            found += [(f"{job.id}: {path.relative_to(folder)}", path) for path in files]
    return found


def _named(store: Store, text: str) -> tuple[str, str | None]:
    """Return the experiment that is meant, and its job where one is."""
    try:
        return store.resolve_id(text), None
    except NotFoundError:
        experiment, dash, number = text.rpartition("-")
        if not dash or not number.isdigit():
            raise
        experiment_id = store.resolve_id(experiment)
        job_id = f"{experiment_id}-{number}"
        if job_id not in {job.id for job in store.jobs(experiment_id)}:
            raise
        return experiment_id, job_id
