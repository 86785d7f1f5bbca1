"""Jobs in, result folders out, by the runner of their kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.errors import InputError
from prony.model.job import Job
from prony.model.result import Result
from prony.run.folder import held
from prony.run.surroundings import Surroundings


def run_jobs(jobs: Sequence[Job], folders: Sequence[Path], around: Surroundings) -> list[Result]:
    """Run jobs that belong together, each into its folder: the one given, or all inside the same one."""
    kinds = {job.workload.kind for job in jobs}
    if len(kinds) > 1:
        raise InputError("jobs of different kinds cannot take turns", hint="give them to runners of their own")
    with held(folders[0] if len(folders) == 1 else folders[0].parent):
        if kinds == {"script"}:
            from prony.run.scripts.runner import ScriptRunner

            return ScriptRunner(around).run(jobs, folders)
        if kinds == {"service"}:
            from prony.run.service import ServiceRunner

            return ServiceRunner(around).run(jobs, folders)
        from prony.run.runner import Runner

        return Runner(around).run(jobs, folders)
