"""Jobs in, result folders out: the hermetic runner. It needs no server, no database and no more network than the
jobs name.

Several jobs that belong together take turns, one repetition a round, so that whatever happens to the machine happens
to all of them alike.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from prony import __version__
from prony.errors import PronyError, whose_move
from prony.measure.counters import HostCounters
from prony.model.device import Environment
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Failure, ModelFacts, OutputCheck, Repetition, Result, ResultState
from prony.ports import plugins
from prony.ports.clock import Clock
from prony.ports.models import FetchOptions, ModelFiles
from prony.run import reference
from prony.run.child.wire import Message
from prony.run.course import Course, effective, repetition_of
from prony.run.engines import interpreter
from prony.run.folder import ResultFolder
from prony.run.host import EngineHost, Watch
from prony.run.models import fetch
from prony.run.observer import Observer, open_probes
from prony.run.pagecache import arrange, resident_share
from prony.run.rounds import next_step, planned, shuffled


@dataclass(frozen=True)
class Surroundings:
    """What the runner may use: where models are cached, where engines live, what relative paths are relative to."""

    cache: Path
    engines: Path
    base: Path
    clock: Clock
    environment: Callable[[], Environment]
    emit: Callable[[Event], None]
    stop_asked: Callable[[], bool]


class Runner:
    """Runs jobs together. `out` holds one folder for each job, named by its id."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self._stack = ExitStack()
        self._starting: dict[tuple[str, str], EngineHost] = {}
        self._hosts: dict[tuple[str, str], EngineHost] = {}
        self._references: dict[tuple[str, ...], tuple[Message, Path] | str] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="prony-"))

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            with self._stack:
                self._start_engines(jobs)
                self.environment = self.around.environment()
                self.probes = open_probes()
                begun = [self._begin(job, folder) for job, folder in zip(jobs, folders, strict=True)]
                courses = [course for job, folder in begun if (course := self._prepared(job, folder))]
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
        for name in dict.fromkeys(job.workload.engine for job in jobs):
            with suppress(PronyError):
                python = interpreter(name, self.around.engines)
                self._starting[name, python] = self._started(name, python)
        import polars  # noqa: F401 - needed when a folder is finished; now it costs no time of its own

    def _started(self, name: str, python: str) -> EngineHost:
        host = EngineHost(name, python, self._scratch / f"{name}-{len(self._starting) + len(self._hosts)}.log")
        self._stack.callback(host.close)
        return host

    def _begin(self, job: Job, path: Path) -> tuple[Job, ResultFolder]:
        folder = ResultFolder.begin(path, job, prony_version=__version__, started_at=self.around.clock.now())
        folder.write_environment(self.environment)
        return job, folder

    def _prepared(self, job: Job, folder: ResultFolder) -> Course | None:
        """Bring engine and model together; what is wrong with them is this job's failure and no other's."""
        self._say("prepare", job, message=f"{job.workload.model} for {job.workload.engine}")
        try:
            python, files, facts = self._gathered(job)
        except _Stopped:
            self._give_up(job, folder, Failure(code="cancelled", message="stopped before it began", whose="prony"))
            return None
        except PronyError as exc:
            failure = Failure.read(exc.to_dict() | {"phase": "prepare", "whose": whose_move(exc)})
            self._give_up(job, folder, failure)
            return None
        folder.update(model=facts)
        checksums = self.environment.checksums | {"model": facts.sha256}
        folder.write_environment(self.environment.model_copy(update={"checksums": checksums}))
        folder.save()
        self._say("started", job, total=planned(job.measure))
        return Course(job, folder, files, python, threads=job.workload.threads or self._cpus())

    def _gathered(self, job: Job) -> tuple[str, ModelFiles, ModelFacts]:
        """Return the interpreter with the engine in it, and the model's files."""
        self._heed_stop()
        name = job.workload.engine
        engine = plugins.load(plugins.ENGINES, name)
        python = interpreter(name, self.around.engines)
        self._host(name, python)
        options = FetchOptions(
            cache=self.around.cache,
            formats=engine.formats,
            checksum=job.workload.checksum,
            base=self.around.base,
            python=python,
        )
        return python, *fetch(job.workload, options, self._fetching(job))

    def _heed_stop(self) -> None:
        if self.around.stop_asked():
            raise _Stopped

    def _fetching(self, job: Job) -> Callable[[int, int | None], None]:
        def progress(done: int, total: int | None) -> None:
            self._heed_stop()
            self._say("prepare", job, done=done, total=total or 0, message=f"fetching {job.workload.model}")

        return progress

    def _host(self, name: str, python: str) -> EngineHost:
        """Return the spawner of an engine, started when first needed and kept until the runner ends or it dies."""
        key = (name, python)
        if key not in self._hosts or not self._hosts[key].is_alive:
            host = self._starting.pop(key, None) or self._started(name, python)
            self._hosts[key] = host.__enter__()
        return self._hosts[key]

    def _cpus(self) -> int:
        cpu = self.environment.device.hardware.cpu
        return max(1, int(min(cpu.allowed_cores, cpu.quota_cores or cpu.allowed_cores)))

    def _take_turns(self, courses: Sequence[Course]) -> None:
        pending, round_number = list(courses), 0
        while pending and not self.around.stop_asked():
            seed = pending[0].job.seed
            for course in shuffled(pending, round_number=round_number, seed=seed):
                step = next_step(course.job.measure, course.repetitions, course.run_medians)
                if step is None:
                    pending.remove(course)
                elif not self.around.stop_asked():
                    self._repeat(course, step)
            round_number += 1

    def _repeat(self, course: Course, op: str) -> None:
        job, index = course.job, len(course.repetitions)
        done_runs = index + 1
        self._say("repetition", job, done=index, total=max(planned(job.measure), done_runs))
        host = self._fresh_host(course) if job.measure.isolation == "exec" else self._host_of(course)
        arrange(course.files.files, job.measure.page_cache)
        page_cache = resident_share(course.files.files)
        started_at = self.around.clock.now()
        outputs = (
            self._outputs(course) if op == "measure" and job.measure.check and not course.folder.result.check else None
        )
        observer = Observer(self.probes, index)
        answer = host.perform(course.order(op, index=index, outputs=outputs), self._watch(course, observer))
        repetition = repetition_of(answer, observer, host, index=index, op=op, started_at=started_at)
        if answer.done and op == "measure" and repetition.state == "ok":
            course.learn(host, answer.done)
            self._check(course, answer.done, host)
        course.record(repetition.model_copy(update={"page_cache": page_cache}), answer, observer)
        self._say("repetition", job, done=done_runs, total=max(planned(job.measure), done_runs), state=repetition.state)

    def _host_of(self, course: Course) -> EngineHost:
        return self._host(course.job.workload.engine, course.python)

    def _fresh_host(self, course: Course) -> EngineHost:
        """Return a spawner that has hosted nothing yet, for isolation by a whole new interpreter."""
        key = (course.job.workload.engine, course.python)
        if key in self._hosts:
            self._hosts.pop(key).close()
        return self._host_of(course)

    def _outputs(self, course: Course) -> Path:
        return self._scratch / f"{course.job.id}.npz"

    def _watch(self, course: Course, observer: Observer) -> Watch:
        return Watch(
            timeout_ns=course.job.limits.timeout,
            memory_bytes=course.job.limits.memory,
            stop_asked=self.around.stop_asked,
            on_phase=lambda phase: self._say("phase", course.job, phase=phase),
            on_ready=observer.ready,
            on_measured=observer.measured,
            on_tick=observer.tick,
            oom_kills=lambda: HostCounters.read().oom_kills,
        )

    def _check(self, course: Course, done: Message, host: EngineHost) -> None:
        """Compare the answers once for each job, outside every timed process."""
        if course.folder.result.check is not None:
            return
        course.folder.update(check=self._judged(course, done))
        if course.job.workload.unit != "cpu":
            self._ask_coverage(course, host)

    def _judged(self, course: Course, done: Message) -> OutputCheck:
        workload, path = course.job.workload, course.files.path
        if not course.job.measure.check:
            return reference.unchecked(done, "not asked for")
        engine = reference.reference_engine(path)
        if engine is None:
            return reference.unchecked(done, f"no reference engine reads {path.suffix}")
        if reference.is_reference(workload.engine, workload.unit, workload.precision, path):
            return reference.own_check(done, engine)
        found = self._reference(course, engine)
        if isinstance(found, str):
            return reference.unchecked(done, f"not compared: {found}")
        return reference.compared(done, found[0], engine, self._outputs(course), found[1])

    def _reference(self, course: Course, engine: str) -> tuple[Message, Path] | str:
        """Return the reference's answer and its outputs, or why there is none; computed once for jobs that share it."""
        workload = course.job.workload
        sha256 = course.folder.result.model.sha256 if course.folder.result.model else ""
        key = (engine, sha256, str(workload.batch_size), workload.inputs.model_dump_json())
        if key not in self._references:
            self._references[key] = self._compute_reference(course, engine)
        return self._references[key]

    def _compute_reference(self, course: Course, engine: str) -> tuple[Message, Path] | str:
        outputs = self._scratch / f"reference-{len(self._references)}.npz"
        order = reference.reference_order(course.order("outputs", index=0), outputs)
        try:
            host = self._host(engine, interpreter(engine, self.around.engines))
        except PronyError as exc:
            return exc.message
        answer = host.perform(order, Watch(timeout_ns=course.job.limits.timeout, stop_asked=self.around.stop_asked))
        if answer.done is None:
            return f"{engine} could not compute it: {answer.failure.message if answer.failure else 'no answer'}"
        return answer.done, outputs

    def _ask_coverage(self, course: Course, host: EngineHost) -> None:
        """Have the engine tell which nodes ran where, in a child of its own because that slows it down."""
        order = replace(course.order("outputs", index=0), samples="", profile=True)
        answer = host.perform(order, Watch(timeout_ns=course.job.limits.timeout, stop_asked=self.around.stop_asked))
        if answer.done is not None and course.folder.result.effective is not None:
            coverage = effective(host, answer.done["effect"]).provider_coverage
            known = course.folder.result.effective
            course.folder.update(effective=known.model_copy(update={"provider_coverage": coverage}))

    def _finish(self, course: Course) -> None:
        state = _state(course, stopped=self.around.stop_asked())
        if state is ResultState.FAILED:
            course.folder.update(failure=_last_failure(course.repetitions))
        course.folder.finish(state, self.around.clock.now(), course.telemetry)
        self._say("finished", course.job, state=state.value)

    def _give_up(self, job: Job, folder: ResultFolder, failure: Failure) -> None:
        state = ResultState.PARTIAL if failure.code == "cancelled" else ResultState.FAILED
        folder.update(failure=failure)
        folder.finish(state, self.around.clock.now(), [])
        self._say("finished", job, state=state.value, message=failure.message)

    def _say(self, kind: str, job: Job, **details: str | int) -> None:
        self.around.emit(Event.read({"kind": kind, "job_id": job.id} | details))


class _Stopped(Exception):  # noqa: N818 - not an error: somebody asked
    """Somebody asked the runner to stop while it was fetching."""


def _state(course: Course, *, stopped: bool) -> ResultState:
    good = any(item.state == "ok" and item.kind == "measure" for item in course.repetitions)
    wanted_more = next_step(course.job.measure, course.repetitions, course.run_medians) is not None
    if stopped and wanted_more:
        return ResultState.PARTIAL
    return ResultState.COMPLETE if good else ResultState.FAILED


def _last_failure(repetitions: Sequence[Repetition]) -> Failure | None:
    failures = [item.failure for item in repetitions if item.failure is not None]
    return failures[-1] if failures else None


def run_jobs(jobs: Sequence[Job], folders: Sequence[Path], around: Surroundings) -> list[Result]:
    """Run jobs that belong together, each into its folder."""
    return Runner(around).run(jobs, folders)
