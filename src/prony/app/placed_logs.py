"""Keep the logs of jobs at targets while they run there; their results bring logs of their own."""

from __future__ import annotations

from pathlib import Path

from prony.app.job_log import JobLog
from prony.model.event import Event
from prony.model.target import Placement
from prony.store.placements import Placements


class PlacedLogs:
    """One log for each job of a placement, beside its file: how it fares there, and what it has printed so far."""

    def __init__(self, placements: Placements) -> None:
        self._placements = placements
        self._logs: dict[Path, JobLog] = {}

    def note(self, placement: Placement, text: str) -> None:
        """Add a line to the log of every job."""
        for job_id in placement.job_ids:
            self._open(placement, job_id).note(text)

    def note_event(self, placement: Placement, event: Event) -> None:
        """Note what a runner at the target said of one of its jobs."""
        if event.job_id in placement.job_ids:  # the id names a file here, and the other side sent it
            self._open(placement, event.job_id).note_event(event)

    def find(self, experiment_id: str, job_id: str) -> Path | None:
        """Return the log of a job's newest placement that has one."""
        paths = [self._path(placement, job_id) for placement in self._placements.of(experiment_id)]
        return next((path for path in reversed(paths) if path.is_file()), None)

    def _open(self, placement: Placement, job_id: str) -> JobLog:
        path = self._path(placement, job_id)
        if path not in self._logs:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._logs[path] = JobLog(path)
        return self._logs[path]

    def _path(self, placement: Placement, job_id: str) -> Path:
        return self._placements.logs_folder(placement) / f"{job_id}.log"
