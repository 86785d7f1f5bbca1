"""Files of the results that a server keeps: list, read as text, fetch."""

from __future__ import annotations

from pathlib import Path

from prony.client.connection import ApiCall, ApiRequests
from prony.client.jobs import RemoteJobs, fetch_piece
from prony.model.log import LogPiece
from prony.model.result_files import ResultFiles


class RemoteFiles:
    """Files of results."""

    def __init__(self, requests: ApiRequests, jobs: RemoteJobs) -> None:
        self._requests = requests
        self._connection = requests.connection
        self._jobs = jobs

    def find(self, text: str) -> str:
        """Return the id of the job that a person means: a job's id, or an experiment that has one job."""
        return self._jobs.find(text)

    def listing(self, job_id: str) -> ResultFiles:
        """Return all files of a job's result."""
        return self._requests.get(ResultFiles, "jobs", job_id, "files")

    def text(self, job_id: str, name: str, *, offset: int = 0) -> LogPiece:
        """Return a piece of a text file, from an offset on.

        Raises:
            TransportError: The answer does not say where the file goes on.
        """
        call = ApiCall("GET", ("jobs", job_id, "file-text"), {"name": name, "offset": offset}, is_safe=True)
        return fetch_piece(self._connection, call)

    def fetch(self, job_id: str, name: str, to: Path) -> Path:
        """Write one file, as it is, to the path `to`."""
        return self._requests.fetch(to, "jobs", job_id, "file", name=name)
