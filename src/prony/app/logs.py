"""Find the log files beside the results of an experiment or a job on this machine."""

from __future__ import annotations

from pathlib import Path

from prony.app.experiment_data import resolve_reference
from prony.errors import NotFoundError
from prony.store.store import Store


def log_files(store: Store, text: str) -> list[tuple[str, Path]]:
    """Return every log that is not empty, with its job and its name; `text` is an id, the beginning of one, or last."""
    experiment_id, job_id = resolve_reference(store, text)
    jobs = store.jobs(experiment_id)
    if job_id is not None and job_id not in {job.id for job in jobs}:
        raise NotFoundError(f"no job {job_id!r}", hint=f"`prony show {experiment_id}` shows its jobs", code="no_result")
    found = []
    for job in jobs:
        folder = store.home.result_folder(experiment_id, job.id) / "logs"
        if job_id in (None, job.id) and folder.is_dir():
            files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
            found += [(f"{job.id}: {path.relative_to(folder)}", path) for path in files]
    return found
