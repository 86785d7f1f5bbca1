"""Run model jobs and write their result folders: the hermetic runner.

It needs no server, no database and no more network than the jobs name.

Several jobs that belong together take turns, one repetition a round, so that whatever happens to the machine happens
to all of them alike.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.kinds.model.runner.check_outputs import Checker
from prony.kinds.model.runner.job_run import JobRun, repetition_of
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.result import ModelFacts, Repetition, Result
from prony.ports import plugins
from prony.ports.models import FetchOptions, ModelFiles
from prony.runner.card_lock import CARD_IS_HELD, hold_card
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.engines import check_engine_version, interpreter
from prony.runner.folder import ResultFolder, begin_folders
from prony.runner.host import EngineAnswer, EngineHost
from prony.runner.models import fetch
from prony.runner.observer import Observer, use_probes, watch_order
from prony.runner.pagecache import arrange, resident_share
from prony.runner.turns import Op, count_repetitions, next_step, run_in_turns, why_made_again
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
                self.probes = self._stack.enter_context(use_probes())
                begun = begin_folders(jobs, folders, self.environment, self.around.clock)
                run_in_turns(begun, self._prepare, self._again, self._finish, self.around.stop_asked)
                return [folder.result for folder in begun]
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

    def _prepare(self, folder: ResultFolder) -> JobRun | None:
        """Bring engine and model together."""
        job, work = folder.job, folder.job.work(ModelWorkload)
        self.around.say("prepare", job, message=f"{work.model} for {work.engine}")
        gathered = self.around.prepare_job(folder, lambda: self._gather(job))
        if gathered is None:
            return None
        python, files, facts = gathered
        folder.update(model=facts)
        checksums = self.environment.checksums | {"model": facts.sha256}
        folder.write_environment(self.environment.model_copy(update={"checksums": checksums}))
        self.around.say("started", job, total=count_repetitions(job.measure))
        return JobRun(job, folder, files, python, threads=work.threads or self._cpus())

    def _gather(self, job: Job) -> tuple[str, ModelFiles, ModelFacts]:
        """Return the interpreter with the engine in it, and the model's files."""
        if self.around.stop_asked():
            raise Stopped
        work = job.work(ModelWorkload)
        engine = plugins.load_plugin(plugins.ENGINES, work.engine)
        python = interpreter(work.engine, self.around.engines, work.engine_version)
        host = self._host(work.engine, python)
        check_engine_version(work.engine, work.engine_version, host.hello["version"])
        options = FetchOptions(
            cache=self.around.cache,
            formats=engine.formats,
            checksum=work.checksum,
            base=self.around.base,
            python=python,
            policy=self.around.policy,
        )
        return python, *fetch(
            job.work(ModelWorkload).model, options, self.around.tell_fetching(job, job.work(ModelWorkload).model)
        )

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

    def _again(self, course: JobRun) -> bool:
        """Make one more repetition where one is wanted; return whether another may be."""
        step = next_step(course.job.measure, course.repetitions, course.run_medians)
        if step is not None:
            self._repeat(course, step)
        return step is not None

    def _repeat(self, course: JobRun, op: Op) -> None:
        job, index = course.job, len(course.repetitions)
        total = max(count_repetitions(job.measure), index + 1)
        self.around.say("repetition", job, done=index, total=total)
        observer, answer = Observer(self.probes, index), EngineAnswer()
        started_at, before = self.around.clock.now(), read_canary()
        waiting = partial(self.around.say, "prepare", job, message=CARD_IS_HELD)
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
        self.around.say("repetition", job, done=index + 1, total=total, state=kept.state, message=why_made_again(kept))

    def _attempt(self, course: JobRun, op: Op, observer: Observer) -> tuple[Repetition, EngineAnswer]:
        measure, index = course.job.measure, len(course.repetitions)
        host = self._fresh_host(course) if measure.isolation == "exec" else self._host_of(course)
        arrange(course.files.files, measure.page_cache)
        page_cache = resident_share(course.files.files)
        started_at = self.around.clock.now()
        outputs = self.checker.outputs(course) if op == "measure" and self.checker.wants_outputs(course) else None
        answer = host.perform(
            course.order(op, index=index, outputs=outputs), watch_order(course.job, observer, self.around)
        )
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

    def _finish(self, course: JobRun) -> None:
        good = any(item.state == "ok" and item.kind == "measure" for item in course.repetitions)
        wants_more = next_step(course.job.measure, course.repetitions, course.run_medians) is not None
        stopped = self.around.stop_asked() and wants_more
        self.around.end_job(course.folder, course.telemetry, is_good=good, is_stopped=stopped)
