"""Run scripts in the runner, and merge what several agents brought."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prony.model.job import Job
from prony.model.result import Failure, Result
from prony.ports.workload import Merged, Run
from prony.runner.context import RunContext
from prony.runner.parts import PartFolder


class ScriptRun(Run):
    """Jobs to result folders."""

    def run(self, jobs: Sequence[Job], folders: Sequence[Path], context: RunContext) -> list[Result]:
        from prony.kinds.script.runner.runner import ScriptRunner

        return ScriptRunner(context).run(jobs, folders)

    def merge_parts(self, parts: Sequence[PartFolder], job: Job) -> Merged:
        from prony.kinds.script.runner.merge_nodes import merged_script, script_facts

        return Merged(*merged_script(parts, job), {"script": script_facts(parts)})

    def first_failure(self, parts: Sequence[PartFolder]) -> Failure | None:
        from prony.kinds.script.runner.merge_nodes import first_to_fail

        return first_to_fail(parts)


PART = ScriptRun()
