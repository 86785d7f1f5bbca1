"""Run model jobs and write their result folders: the hermetic runner.

It needs no server, no database and no more network than the jobs name.

Several jobs that belong together take turns, one repetition a round, so that whatever happens to the machine happens
to all of them alike.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from prony import __version__
from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.instruments.counters import oom_kills
from prony.kinds.model.runner.check_outputs import Checker
from prony.kinds.model.runner.job_run import JobRun, repetition_of
from prony.kinds.model.schema import ModelWorkload
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Failure, ModelFacts, Repetition, Result, ResultState
from prony.ports import plugins
from prony.ports.models import FetchOptions, ModelFiles
from prony.runner.card_lock import CARD_IS_HELD, hold_card
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.engines import check_engine_version, interpreter
from prony.runner.folder import ResultFolder
from prony.runner.host import EngineAnswer, EngineHost, Watch
from prony.runner.models import fetch
from prony.runner.observer import Observer, open_probes
from prony.runner.pagecache import arrange, resident_share
from prony.runner.turns import Op, count_repetitions, next_step, shuffle_round
from prony.runner.watch_gpu import add_gpu_canaries


class Runner:
    """Runs jobs together. `out` holds one folder for each job, named by its id."""

    def __init__(self, around: RunContext) -> None:
        self.around = around
        self._stack = ExitStack()
        self._starting: dict[tuple[str, str], EngineHost] = {}
        self._hosts: dict[tuple[str, str], EngineHost] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="prony-"))
        self.checker = Checker(self._scratch, self._reference_host, around.stop_asked)

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            with self._stack:
                self._start_engines(jobs)
                self.environment = self.around.environment()
                self.probes = open_probes()
                begun = [self._begin(job, folder) for job, folder in zip(jobs, folders, strict=True)]
                courses = [course for job, folder in begun if (course := self._prepare(job, folder))]
                self._take_turns(courses)
                for course in courses:
                    self._finish(course)
                for probe in self.probes:
                    probe.close()
                return [folder.result for _, folder in begun]
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _start_engines(self, jobs: Sequence[Job]) -> None:
        """Let every engine import itself while this process gets ready; what is wrong with one is told by its jobs."""
        for name, version in dict.fromkeys(
            (job.work(ModelWorkload).engine, job.work(ModelWorkload).engine_version) for job in jobs
        ):
            with suppress(PronyError):
                python = interpreter(name, self.around.engines, version)
                if (name, python) in self._starting:
                    continue
                self._starting[name, python] = self._start_engine(name, python, alone=False)
        import polars  # noqa: F401 - needed when a folder is finished; now it costs no time of its own

    def _start_engine(self, name: str, python: str, *, alone: bool = True) -> EngineHost:
        log = self._scratch / f"{name}-{len(self._starting) + len(self._hosts)}.log"
        host = EngineHost(name, python, log, alone=alone)
        self._stack.callback(host.close)
        return host

    def _begin(self, job: Job, path: Path) -> tuple[Job, ResultFolder]:
        folder = ResultFolder.begin(path, job, prony_version=__version__, started_at=self.around.clock.now())
        return job, folder

    def _prepare(self, job: Job, folder: ResultFolder) -> JobRun | None:
        """Bring engine and model together; what is wrong with them is this job's failure and no other's."""
        self._say("prepare", job, message=f"{job.work(ModelWorkload).model} for {job.work(ModelWorkload).engine}")
        try:
            with self.around.interruptible():  # a server that is silent, a lock that is held, a model that is built
                python, files, facts = self._gather(job)
        except Stopped:
            self._give_up(job, folder, Failure(code="cancelled", message="stopped before it began", whose="prony"))
            return None
        except PronyError as exc:
            self._give_up(job, folder, failure_of(exc, phase="prepare"))
            return None
        folder.update(model=facts)
        checksums = self.environment.checksums | {"model": facts.sha256}
        folder.write_environment(self.environment.model_copy(update={"checksums": checksums}))
        self._say("started", job, total=count_repetitions(job.measure))
        return JobRun(job, folder, files, python, threads=job.work(ModelWorkload).threads or self._cpus())

    def _gather(self, job: Job) -> tuple[str, ModelFiles, ModelFacts]:
        """Return the interpreter with the engine in it, and the model's files."""
        self._heed_stop()
        name = job.work(ModelWorkload).engine
        engine = plugins.load_plugin(plugins.ENGINES, name)
        python = interpreter(name, self.around.engines, job.work(ModelWorkload).engine_version)
        host = self._host(name, python)
        check_engine_version(name, job.work(ModelWorkload).engine_version, host.hello["version"])
        options = FetchOptions(
            cache=self.around.cache,
            formats=engine.formats,
            checksum=job.work(ModelWorkload).checksum,
            base=self.around.base,
            python=python,
            policy=self.around.policy,
        )
        return python, *fetch(job.work(ModelWorkload).model, options, self._fetching(job))

    def _heed_stop(self) -> None:
        if self.around.stop_asked():
            raise Stopped

    def _fetching(self, job: Job) -> Callable[[int, int | None], None]:
        def progress(done: int, total: int | None) -> None:
            self._heed_stop()
            self._say("prepare", job, done=done, total=total or 0, message=f"fetching {job.work(ModelWorkload).model}")

        return progress

    def _host(self, name: str, python: str) -> EngineHost:
        """Return the spawner of an engine, started when first needed and kept until the runner ends or it dies."""
        key = (name, python)
        if key not in self._hosts or not self._hosts[key].is_alive:
            host = self._starting.pop(key, None) or self._start_engine(name, python)
            self._hosts[key] = host.__enter__()
        return self._hosts[key]

    def _reference_host(self, name: str) -> EngineHost:
        return self._host(name, interpreter(name, self.around.engines))

    def _cpus(self) -> int:
        return max(1, int(self.environment.device.hardware.cpu.usable_cores or 1))

    def _take_turns(self, courses: Sequence[JobRun]) -> None:
        pending, round_number = list(courses), 0
        while pending and not self.around.stop_asked():
            seed = pending[0].job.seed
            for course in shuffle_round(pending, round_number=round_number, seed=seed):
                step = next_step(course.job.measure, course.repetitions, course.run_medians)
                if step is None:
                    pending.remove(course)
                elif not self.around.stop_asked():
                    self._repeat(course, step)
            round_number += 1

    def _repeat(self, course: JobRun, op: Op) -> None:
        job, index = course.job, len(course.repetitions)
        total = max(count_repetitions(job.measure), index + 1)
        self._say("repetition", job, done=index, total=total)
        observer, answer = Observer(self.probes, index), EngineAnswer()
        started_at, before = self.around.clock.now(), read_canary()
        waiting = partial(self._say, "prepare", job, message=CARD_IS_HELD)
        try:
            with hold_card(job.work(ModelWorkload).unit, self.around.stop_asked, waiting):
                repetition, answer = self._attempt(course, op, observer)
        except PronyError as exc:  # the engine did not start again, or the page cache cannot be arranged
            failure = failure_of(exc, phase="start")
            repetition = Repetition(index=index, kind=op, state="failed", started_at=started_at, failure=failure)
        canaries = add_gpu_canaries(answer.done, before, read_canary())
        course.record(repetition.model_copy(update=canaries), answer, observer)
        kept = course.repetitions[-1]
        if answer.done and op == "measure" and kept.state == "ok":
            # After it is on disk: computing a reference may take long, and nothing measured may be lost meanwhile.
            self.checker.check(course, answer.done, self._host_of(course))
            course.folder.save()
        self._say("repetition", job, done=index + 1, total=total, state=kept.state, message=_trouble(kept))

    def _attempt(self, course: JobRun, op: Op, observer: Observer) -> tuple[Repetition, EngineAnswer]:
        measure, index = course.job.measure, len(course.repetitions)
        host = self._fresh_host(course) if measure.isolation == "exec" else self._host_of(course)
        arrange(course.files.files, measure.page_cache)
        page_cache = resident_share(course.files.files)
        started_at = self.around.clock.now()
        outputs = self.checker.outputs(course) if op == "measure" and self.checker.wants_outputs(course) else None
        answer = host.perform(course.order(op, index=index, outputs=outputs), self._watch(course, observer))
        repetition = repetition_of(answer, observer, host, index=index, op=op, started_at=started_at)
        if answer.done and op == "measure" and repetition.state == "ok":
            course.learn(host, answer.done)
        return repetition.model_copy(update={"page_cache": page_cache}), answer

    def _host_of(self, course: JobRun) -> EngineHost:
        return self._host(course.job.work(ModelWorkload).engine, course.python)

    def _fresh_host(self, course: JobRun) -> EngineHost:
        """Return a spawner that has hosted nothing yet, for isolation by a whole new interpreter."""
        key = (course.job.work(ModelWorkload).engine, course.python)
        if key in self._hosts and self._hosts[key].has_hosted:
            self._hosts.pop(key).close()
        return self._host_of(course)

    def _watch(self, course: JobRun, observer: Observer) -> Watch:
        return Watch(
            timeout_ns=course.job.limits.timeout,
            memory_bytes=course.job.limits.memory,
            stop_asked=self.around.stop_asked,
            on_phase=lambda phase: self._enter(course, observer, phase),
            on_ready=observer.ready,
            on_measured=observer.note_measurement,
            on_tick=observer.tick,
            tick_s=observer.tick_s,
            oom_kills=oom_kills,
        )

    def _enter(self, course: JobRun, observer: Observer, phase: str) -> None:
        observer.phase(phase)
        self._say("phase", course.job, phase=phase)

    def _finish(self, course: JobRun) -> None:
        state = _state(course, stopped=self.around.stop_asked())
        if state is ResultState.FAILED:
            course.folder.update(failure=_last_failure(course.repetitions))
        course.folder.finish(state, self.around.clock.now(), course.telemetry)
        self._say("finished", course.job, state=state.value)

    def _give_up(self, job: Job, folder: ResultFolder, failure: Failure) -> None:
        state = ResultState.PARTIAL if failure.code == "cancelled" else ResultState.FAILED
        folder.write_environment(self.environment)
        folder.update(failure=failure)
        folder.finish(state, self.around.clock.now(), [])
        self._say("finished", job, state=state.value, message=failure.message)

    def _say(self, kind: str, job: Job, **details: str | int) -> None:
        self.around.emit(Event.read({"kind": kind, "job_id": job.id} | details))


def _state(course: JobRun, *, stopped: bool) -> ResultState:
    good = any(item.state == "ok" and item.kind == "measure" for item in course.repetitions)
    wanted_more = next_step(course.job.measure, course.repetitions, course.run_medians) is not None
    if stopped and wanted_more:
        return ResultState.PARTIAL
    return ResultState.COMPLETE if good else ResultState.FAILED


def _trouble(repetition: Repetition) -> str:
    """Return why a repetition is not clean, and so is made again; empty where it is."""
    if repetition.failure is not None:
        return f"{repetition.state}: {repetition.failure.message}"
    if repetition.contamination:
        return f"disturbed: {repetition.contamination[0].partition(': ')[2]}"
    return "not steady" if repetition.steady is False else ""


def _last_failure(repetitions: Sequence[Repetition]) -> Failure | None:
    failures = [item.failure for item in repetitions if item.failure is not None]
    return failures[-1] if failures else None
