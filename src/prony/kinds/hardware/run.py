"""Run hardware tests in the runner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.model.job import Job
from prony.model.result import Result
from prony.ports.workload import Run
from prony.runner.context import RunContext


class HardwareRun(Run):
    """Jobs to result folders."""

    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        from prony.kinds.hardware.runner.runner import hardware_runner

        return hardware_runner(context).run(jobs, folders)


PART = HardwareRun()
