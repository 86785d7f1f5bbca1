"""Job files in, result folders out, events on standard output: the body of `prony exec`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from prony.errors import InputError, NotFoundError
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import ResultState
from prony.ports.clock import SystemClock
from prony.ports.models import policy_of
from prony.run.child.spawner import die_with_parent
from prony.run.environment import look_around
from prony.run.jobs import run_jobs
from prony.run.runner import Stopped, Surroundings
from prony.store.home import home


def run_files(files: Sequence[Path], out: Path, *, calibration_id: str | None, parent: int | None) -> int:
    """Run the jobs; return 0 where each has its numbers, 1 where one failed or was stopped.

    `parent` is the process with which this one ends, if there is one.
    """
    stop = _Stop()
    if parent is not None:
        die_with_parent(signal.SIGTERM, parent)  # a polite end: what was measured is kept
    jobs = [_job(file) for file in files]
    folders = [out] if len(jobs) == 1 else [out / job.id for job in jobs]
    base = Path.cwd()
    here = home().create()
    around = Surroundings(
        cache=here.cache,
        engines=here.engines,
        base=base,
        clock=SystemClock(),
        environment=lambda: look_around(base, here.root, calibration_id),
        emit=_emit,
        stop_asked=lambda: stop.asked,
        interruptible=stop.interrupting,
        policy=policy_of(os.environ),
    )
    results = run_jobs(jobs, folders, around)
    return 0 if all(result.state is ResultState.COMPLETE for result in results) else 1


class _Stop:
    """Remembers that SIGINT or SIGTERM came; the runner looks at it between steps."""

    def __init__(self) -> None:
        self.asked = False
        self._interrupts = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True
        if self._interrupts:
            self._interrupts = False  # once: whoever cleans up on the way out is not disturbed again
            raise Stopped

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise Stopped the moment that the signal comes, for as long as the block runs."""
        self._interrupts = True
        try:
            yield
        finally:
            self._interrupts = False


def _job(file: Path) -> Job:
    try:
        return Job.read_json(file.read_bytes())
    except FileNotFoundError as exc:
        raise NotFoundError(f"no job file at {file}", hint="give the path of a job.json") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        told = f"{where}: {first['msg']}" if where else first["msg"]
        raise InputError(f"{file}: {told}", hint="is this a job.json?", code="bad_job") from exc


def _emit(event: Event) -> None:
    line = event.model_dump_json(exclude_defaults=True).encode() + b"\n"
    try:
        os.write(1, line)
    except OSError:  # nobody listens, or what listens is full; the work goes on and the folder tells
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
