"""Run jobs with the runner of their kind, each into its result folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.errors import InputError, PronyError
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Failure, Result
from prony.ports.workload import kind_of
from prony.runner.context import RunContext, failure_of
from prony.runner.folder import decline, mark_writing
from prony.runner.paths import check_paths


def run_jobs(jobs: Sequence[Job], folders: Sequence[Path], around: RunContext) -> list[Result]:
    """Run jobs that belong together, each into its folder: the one given, or all inside the same one.

    One that names a path which is not allowed here fails before anything of it is read.
    """
    if len({job.workload.kind for job in jobs}) > 1:
        raise InputError(
            "jobs of different kinds cannot run alternately",
            hint="write one recipe for each kind, and run them one after the other",
        )
    with mark_writing(folders[0] if len(folders) == 1 else folders[0].parent):
        refusals = [_refusal(job, around) for job in jobs]
        declined = {
            job.id: _decline(job, folder, around, failure)
            for job, folder, failure in zip(jobs, folders, refusals, strict=True)
            if failure is not None
        }
        pairs = [(job, folder) for job, folder in zip(jobs, folders, strict=True) if job.id not in declined]
        run = kind_of(jobs[0].workload).run.run
        ran = run([job for job, _ in pairs], [folder for _, folder in pairs], around) if pairs else []
        results = declined | {result.job_id: result for result in ran}
        return [results[job.id] for job in jobs]


def _refusal(job: Job, around: RunContext) -> Failure | None:
    try:
        check_paths(job, around.policy, around.base)
    except PronyError as exc:
        return failure_of(exc, phase="prepare")
    return None


def _decline(job: Job, folder: Path, around: RunContext, failure: Failure) -> Result:
    result = decline(folder, job, around.environment(), failure, around.clock.now())
    around.emit(Event(kind="finished", job_id=job.id, state=result.state.value, message=failure.message))
    return result
