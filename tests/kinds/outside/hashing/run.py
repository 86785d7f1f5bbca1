"""Hash, and write down when each run began and ended."""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

from prony import __version__
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Phase, Repetition, Result, ResultState
from prony.ports.workload import Run
from prony.runner.context import RunContext
from prony.runner.folder import ResultFolder

from .schema import HashingWorkload


class HashingRun(Run):
    """Jobs to result folders."""

    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        return [_run(job, folder, context) for job, folder in zip(jobs, folders, strict=True)]


def _run(job: Job, path: Path, context: RunContext) -> Result:
    work = job.work(HashingWorkload)
    folder = ResultFolder.begin(path, job, prony_version=__version__, started_at=context.clock.now())
    folder.write_environment(context.environment())
    data = bytes(work.size)
    for index in range(job.measure.repeats):
        started_at, begin_ns, cpu_ns = context.clock.now(), time.monotonic_ns(), time.process_time_ns()
        hashlib.new(work.algorithm, data).digest()
        end_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns() - cpu_ns
        phase = Phase(begin_ns=begin_ns, end_ns=end_ns, cpu_ns=cpu_ns, count=1)
        with folder.part(index).open("wb") as file:
            for stamp in (begin_ns, end_ns):
                array("q", [stamp]).tofile(file)
        folder.add(Repetition(index=index, started_at=started_at, phases={"measure": phase}))
        total = job.measure.repeats
        context.emit(Event(kind="repetition", job_id=job.id, done=index + 1, total=total, state="ok"))
    folder.finish(ResultState.COMPLETE, context.clock.now(), [])
    context.emit(Event(kind="finished", job_id=job.id, state=ResultState.COMPLETE.value))
    return folder.result


PART = HashingRun()
