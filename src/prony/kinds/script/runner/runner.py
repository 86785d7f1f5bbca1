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
from prony.kinds.script.schema import ScriptSource, ScriptWorkload
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Failure, Repetition, Result, ResultState
from prony.ports.models import Progress
from prony.ports.probe import Probe
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.folder import ResultFolder, begin_folders
from prony.runner.observer import open_probes
from prony.runner.script_folders import offer
from prony.runner.turns import shuffle_round
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
            self._probes = open_probes()
            self._shims = offer(self._scratch / "python")
            begun = begin_folders(jobs, folders, self.environment, self.around.clock)
            courses = [course for folder in begun if (course := self._prepare(folder)) is not None]
            self._take_turns(courses)
            for course in courses:
                self._finish(course)
            for probe in self._probes:
                probe.close()
            return [folder.result for folder in begun]
        finally:
            self._supervisor.close()
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _prepare(self, folder: ResultFolder) -> ScriptJobRun | None:
        """Bring together what a job needs; what is wrong with it is this job's failure and no other's."""
        job = folder.job
        self._say("prepare", job, message=job.work(ScriptWorkload).subject)
        scratch = self._scratch / job.id
        scratch.mkdir()
        shared = SharedByJobs(self._shims, self._probes, self._supervisor, self._readings, self._canary)
        course = ScriptJobRun(folder, self.around, scratch=scratch, shared=shared)
        try:
            with self.around.interruptible():
                course.prepare(self.environment, lambda source: self._fetching(job, source))
        except Stopped:
            self._give_up(folder, Failure(code="cancelled", message="stopped before it began", whose="prony"))
            return None
        except PronyError as exc:
            self._give_up(folder, failure_of(exc, phase="prepare"))
            return None
        self._say("started", job, total=course.planned_repetitions)
        return course

    def _fetching(self, job: Job, source: ScriptSource) -> Progress:
        def progress(done: int, total: int | None) -> None:
            if self.around.stop_asked():
                raise Stopped
            self._say("prepare", job, done=done, total=total or 0, message=f"fetching {source.name or source.path}")

        return progress

    def _take_turns(self, courses: Sequence[ScriptJobRun]) -> None:
        told_frame(0, "measure", ())  # loads what writes the first run now, and not between that one and the second
        pending, round_number = list(courses), 0
        while pending and not self.around.stop_asked():
            for course in shuffle_round(pending, round_number=round_number, seed=pending[0].job.seed):
                kind = self._agree_next(course)
                if kind is None:
                    pending.remove(course)
                elif not self.around.stop_asked():
                    index = len(course.repetitions)
                    total = max(course.planned_repetitions, index + 1)
                    self._say("repetition", course.job, done=index, total=total)
                    kept = course.execute(kind)
                    trouble = _trouble(kept)
                    self._say("repetition", course.job, done=index + 1, total=total, state=kept.state, message=trouble)
            round_number += 1

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
        apart = course.folder.result.failure
        good = apart is None and any(one.state == "ok" and one.kind == "measure" for one in course.repetitions)
        good = good and not (course.job.part and any(one.state == "failed" for one in course.repetitions))
        stopped = any(one.state == "cancelled" for one in course.repetitions)
        stopped = stopped or (self.around.stop_asked() and course.next_kind() is not None)
        state = ResultState.PARTIAL if stopped else ResultState.COMPLETE if good else ResultState.FAILED
        if state is ResultState.FAILED and apart is None:
            failures = [one.failure for one in course.repetitions if one.failure is not None]
            course.folder.update(failure=failures[-1] if failures else None)
        course.finish()
        course.folder.finish(state, self.around.clock.now(), course.telemetry)
        self._say("finished", course.job, state=state.value)

    def _give_up(self, folder: ResultFolder, failure: Failure) -> None:
        state = ResultState.PARTIAL if failure.code == "cancelled" else ResultState.FAILED
        folder.update(failure=failure)
        folder.finish(state, self.around.clock.now(), [])
        self._say("finished", folder.job, state=state.value, message=failure.message)

    def _say(self, kind: str, job: Job, **details: str | int) -> None:
        self.around.emit(Event.read({"kind": kind, "job_id": job.id} | details))


def _trouble(repetition: Repetition) -> str:
    if repetition.failure is not None:
        return f"{repetition.state}: {repetition.failure.message}"
    if repetition.refused:
        first = repetition.refused[0]
        return f"refused: {first.name} {first.reason}"
    return f"disturbed: {repetition.contamination[0].partition(': ')[2]}" if repetition.contamination else ""
