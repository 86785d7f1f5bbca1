"""Run script jobs, each run a fresh execution, and write their result folders."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from prony.errors import PronyError
from prony.instruments.canary import Canary
from prony.kinds.script.runner.nodes import Kind
from prony.kinds.script.runner.script_job_run import ScriptJobRun, SharedByJobs
from prony.kinds.script.runner.supervisor_process import SupervisorProcess
from prony.kinds.script.samples import told_frame
from prony.kinds.script.schema import ScriptWorkload
from prony.model.job import Job
from prony.model.result import Result
from prony.ports.probe import Probe
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.folder import ResultFolder, begin_folders
from prony.runner.observer import use_probes
from prony.runner.script_folders import offer
from prony.runner.turns import run_in_turns, why_made_again
from prony.runner.watch_machine import EarlierReadings, MachineReading


class ScriptRunner:
    """Runs jobs that execute scripts."""

    def __init__(self, around: RunContext) -> None:
        self.around = around
        self._scratch = Path(tempfile.mkdtemp(prefix="prony-script-"))
        self._probes: list[Probe] = []
        self._supervisor = SupervisorProcess()
        self._readings = EarlierReadings()
        self._canary = Canary()

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            self._supervisor.begin()
            self._readings.add(MachineReading.read())
            self.environment = self.around.environment()
            self._shims = offer(self._scratch / "python")
            begun = begin_folders(jobs, folders, self.environment, self.around.clock)
            told_frame(0, "measure", ())  # loads what writes the first run now, and not between that one and the second
            with use_probes() as self._probes:
                run_in_turns(begun, self._prepare, self._again, self._finish, self.around.stop_asked)
            return [folder.result for folder in begun]
        finally:
            self._supervisor.close()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _prepare(self, folder: ResultFolder) -> ScriptJobRun | None:
        """Bring together what a job needs; what is wrong with it is this job's failure and no other's."""
        job = folder.job
        self.around.say("prepare", job, message=job.work(ScriptWorkload).subject)
        scratch = self._scratch / job.id
        scratch.mkdir()
        shared = SharedByJobs(self._shims, self._probes, self._supervisor, self._readings, self._canary)
        course = ScriptJobRun(folder, self.around, scratch=scratch, shared=shared)

        def prepare() -> ScriptJobRun:
            course.prepare(self.environment, lambda one: self.around.tell_fetching(job, one.name or str(one.path)))
            return course

        if self.around.prepare_job(folder, prepare) is None:
            return None
        self.around.say("started", job, total=course.planned_repetitions)
        return course

    def _again(self, course: ScriptJobRun) -> bool:
        """Make one more execution where one is wanted; return whether another may be."""
        kind = self._agree_next(course)
        if kind is None or self.around.stop_asked():
            return False
        index = len(course.repetitions)
        total = max(course.planned_repetitions, index + 1)
        self.around.say("repetition", course.job, done=index, total=total)
        kept = course.execute(kind)
        trouble = why_made_again(kept)
        self.around.say("repetition", course.job, done=index + 1, total=total, state=kept.state, message=trouble)
        return True

    def _agree_next(self, course: ScriptJobRun) -> Kind | None:
        """Ask what comes next; nodes that do not come together are the job's failure."""
        try:
            return course.agreed_kind()
        except Stopped:
            return None
        except PronyError as exc:
            course.folder.update(failure=failure_of(exc, phase="start"))
            return None

    def _finish(self, course: ScriptJobRun) -> None:
        apart = course.folder.result.failure is not None
        good = not apart and any(one.state == "ok" and one.kind == "measure" for one in course.repetitions)
        good = good and not (course.job.part and any(one.state == "failed" for one in course.repetitions))
        stopped = any(one.state == "cancelled" for one in course.repetitions)
        stopped = stopped or (self.around.stop_asked() and course.next_kind() is not None)
        course.finish()
        self.around.end_job(course.folder, course.telemetry, is_good=good, is_stopped=stopped)
