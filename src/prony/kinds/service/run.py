"""Run loads in the runner, and merge what several agents brought."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.model.job import Job
from prony.model.result import Result
from prony.ports.workload import Merged, Run
from prony.runner.context import RunContext
from prony.runner.parts import PartFolder


class ServiceRun(Run):
    """Jobs to result folders."""

    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        from prony.kinds.service.runner.runner import ServiceRunner

        return ServiceRunner(context).run(jobs, folders)

    def merge_parts(self, parts: Sequence[PartFolder], job: Job) -> Merged:
        from prony.kinds.service.merge import merge_load

        return Merged(*merge_load(parts, job))


PART = ServiceRun()
