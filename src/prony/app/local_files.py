"""Files of the results in this machine's home."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from prony.app import result_files
from prony.app.experiment_data import resolve_reference
from prony.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from prony.model.log import LogPiece
    from prony.model.result_files import ResultFiles
    from prony.store.store import Store


class LocalFiles:
    """Files of results that are kept here. See `prony.ports.use_cases.FileUseCases`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, text: str) -> str:
        """Return the id of the job that a person means: a job's id, or an experiment that has one job.

        Raises:
            NotFoundError: There is no such job.
            InputError: Several may be meant.
        """
        experiment_id, job_id = resolve_reference(self._store, text)
        jobs = [job.id for job in self._store.jobs(experiment_id)]
        if job_id is None and len(jobs) == 1:
            return jobs[0]
        hint = f"`prony show {experiment_id}` shows its jobs"
        if job_id is None:
            raise InputError(f"experiment {experiment_id} has {len(jobs)} jobs", hint=hint)
        if job_id not in jobs:
            raise NotFoundError(f"no job {job_id!r}", hint=hint)
        return job_id

    def listing(self, job_id: str) -> ResultFiles:
        """Return all files of a job's result."""
        return result_files.list_files(job_id, self.folder(job_id))

    def text(self, job_id: str, name: str, *, offset: int = 0) -> LogPiece:
        """Return a piece of a text file, from an offset on."""
        return result_files.read_file_text(self.folder(job_id), name, offset)

    def fetch(self, job_id: str, name: str, to: Path) -> Path:
        """Copy one file to the path `to`."""
        shutil.copyfile(result_files.find_file(self.folder(job_id), name), to)
        return to

    def folder(self, job_id: str) -> Path:
        """Return where the result of a job lies.

        Raises:
            NotFoundError: There is no such job, or it has no result yet.
        """
        record = self._store.record(job_id)
        if record is None:
            hint = "`prony show ID` shows its state; on a server, `prony watch ID` waits"
            raise NotFoundError(f"job {job_id} has no result yet", hint=hint, code="no_result")
        return record.folder
