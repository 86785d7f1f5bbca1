"""Run language models in the runner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.model.job import Job
from prony.model.result import Result
from prony.ports.workload import Run
from prony.runner.context import RunContext


class LlmRun(Run):
    """Jobs to result folders."""

    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        from prony.kinds.llm.runner.runner import LlmMaker
        from prony.runner.suites import SuiteRunner

        return SuiteRunner(context, LlmMaker(context)).run(jobs, folders)


PART = LlmRun()
