"""Logs of jobs that ran, or run, in this machine's home without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prony.app.experiment_data import resolve_reference
from prony.app.job_log import LOOK_S
from prony.app.placed_logs import PlacedLogs
from prony.app.printed_lines import JOB_LOG
from prony.app.read_log import read_piece
from prony.errors import NotFoundError
from prony.model.experiment import ExperimentState
from prony.model.log import LogFilter
from prony.store.placements import Placements
from prony.store.store import Store


@dataclass(frozen=True)
class LocalLog:
    """`source` is empty where the lines tell theirs; else it is the name of the file."""

    experiment_id: str
    job_id: str
    path: Path
    source: str = ""

    @property
    def title(self) -> str:
        """What stands above it, where several are printed."""
        return f"{self.job_id}: {self.source}" if self.source else self.job_id


def local_logs(store: Store, text: str) -> list[LocalLog]:
    """Return the logs of a job, or of all jobs of an experiment.

    Args:
        store: The home's own store.
        text: The id of an experiment or a job, the beginning of one, or `last`.

    Returns:
        One log for each job that has printed anything; where a result has no log of its lines, as one that
        `prony exec` wrote, each file that it printed to. Of a job at a target, what was read of it so far.

    Raises:
        NotFoundError: No experiment or no job has this id.
    """
    experiment_id, job_id = resolve_reference(store, text)
    jobs = [job.id for job in store.jobs(experiment_id)]
    if job_id is not None and job_id not in jobs:
        raise NotFoundError(f"no job {job_id!r}", hint=f"`prony show {experiment_id}` shows its jobs", code="no_result")
    found: list[LocalLog] = []
    for one in jobs if job_id is None else [job_id]:
        logs = _logs_of(experiment_id, one, store.home.result_folder(experiment_id, one) / "logs")
        found += logs or _logs_there(store, experiment_id, one)
    return found


def _logs_of(experiment_id: str, job_id: str, folder: Path) -> list[LocalLog]:
    if (folder / JOB_LOG).is_file():
        return [LocalLog(experiment_id, job_id, folder / JOB_LOG)]
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    return [LocalLog(experiment_id, job_id, path, path.relative_to(folder).as_posix()) for path in files]


def _logs_there(store: Store, experiment_id: str, job_id: str) -> list[LocalLog]:
    path = PlacedLogs(Placements(store.home)).find(experiment_id, job_id)
    return [LocalLog(experiment_id, job_id, path)] if path is not None else []


def read_local_log(
    store: Store, log: LocalLog, wanted: LogFilter, *, follow: bool, sleep: Callable[[float], None]
) -> Iterator[bytes]:
    """Yield a log piece by piece; `follow`: until its experiment has ended."""
    if log.source:
        if wanted.source not in ("", log.source):
            return
        wanted = LogFilter(wanted.search)
    offset = 0
    while True:
        is_over = not follow or not _is_running(store, log.experiment_id)
        piece = read_piece(log.path, offset, wanted, is_over=is_over)
        if piece.text:
            yield piece.text
        elif piece.ended:
            return
        else:
            sleep(LOOK_S)
        offset = piece.next_offset


def is_running(store: Store, text: str) -> bool:
    """Does the experiment still run that is meant, or whose job is meant?"""
    experiment_id, _ = resolve_reference(store, text)
    return _is_running(store, experiment_id)


def _is_running(store: Store, experiment_id: str) -> bool:
    return store.experiment(experiment_id).state in (ExperimentState.PENDING, ExperimentState.RUNNING)
