"""Run jobs that are suites of tests, each repetition in a fresh process, and write their result folders."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.model.event import Event, Live
from prony.model.job import Job
from prony.model.result import Effective, Failure, Noise, Phase, Repetition, Result
from prony.runner.card_lock import CARD_IS_HELD, hold_card
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext, failure_of
from prony.runner.engines import interpreter
from prony.runner.folder import ResultFolder, TelemetryRow, begin_folders
from prony.runner.host import EngineAnswer, EngineHost, Watch
from prony.runner.observer import Observer, use_probes, watch_order
from prony.runner.turns import count_repetitions, next_step, run_in_turns, why_made_again
from prony.runner.watch_gpu import add_gpu_canaries


@dataclass
class SuiteJob(ABC):
    """One job's way through the runner; a kind of workload says what is ordered and what is kept."""

    folder: ResultFolder
    engine: str
    suite: str
    telemetry: list[TelemetryRow] = field(default_factory=list)
    headlines: list[float] = field(default_factory=list)

    @property
    def job(self) -> Job:
        return self.folder.job

    @property
    def repetitions(self) -> tuple[Repetition, ...]:
        return self.folder.result.repetitions

    @abstractmethod
    def order(self) -> ChildOrder:
        """Return what the child is to do in one repetition."""

    @abstractmethod
    def keep(self, repetition: Repetition, readings: Sequence[Message]) -> list[float]:
        """Write the samples of one repetition; return its headline, or nothing where it has none."""

    @abstractmethod
    def effective(self, host: EngineHost, facts: Message) -> Effective:
        """Return what was used, as the child told it."""

    def read_live(self) -> Live | None:
        """Return how the repetition that runs goes just now; None where there is no news."""
        return None

    def score(self, say: Callable[[str], None]) -> None:
        """Let a scorer of the user's own look at what was kept, when all repetitions are over."""
        del say

    def record(self, repetition: Repetition, answer: EngineAnswer, observer: Observer, host: EngineHost | None) -> None:
        """Keep one repetition with its readings."""
        self.telemetry += observer.rows
        if answer.done is not None and repetition.state == "ok" and host is not None:
            headline = self.keep(repetition, answer.done["readings"])
            self.headlines += headline if repetition.is_clean else []
            if self.folder.result.effective is None:
                self.folder.update(effective=self.effective(host, answer.done["facts"]))
        self.folder.add(repetition, answer.log)


class SuiteRunner:
    """Runs jobs together: one repetition of each in turn, so that what happens to the machine happens to all alike."""

    def __init__(self, around: RunContext, make_job: MakeJob) -> None:
        """`make_job` brings what a job needs beside its engine; what is wrong with it is that job's failure."""
        self.around = around
        self._make_job = make_job
        self._stack = ExitStack()
        self._hosts: dict[tuple[str, str], EngineHost] = {}
        self.scratch = Path(tempfile.mkdtemp(prefix="prony-suite-"))

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            with self._stack:
                self.environment = self.around.environment()
                self.probes = self._stack.enter_context(use_probes())
                begun = begin_folders(jobs, folders, self.environment, self.around.clock)
                run_in_turns(begun, self._prepare, self._again, self._finish, self.around.stop_asked)
                return [folder.result for folder in begun]
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _prepare(self, folder: ResultFolder) -> SuiteJob | None:
        """Bring together what a job needs."""
        job = folder.job
        self.around.say("prepare", job, message=job.workload.subject)
        made = self.around.prepare_job(folder, lambda: self._make_job(folder, self))
        if made is not None:
            self.around.say("started", job, total=count_repetitions(job.measure))
        return made

    def host(self, engine: str) -> EngineHost:
        """Return the process that hosts an engine, started when it is first needed or when the one before has ended."""
        python = interpreter(engine, self.around.engines)
        found = self._hosts.get((engine, python))
        if found is None or not found.is_alive:
            log = self.scratch / f"{engine}-{len(self._hosts)}.log"
            found = self._stack.enter_context(EngineHost(engine, python, log))
            self._hosts[engine, python] = found
        return found

    def _again(self, course: SuiteJob) -> bool:
        """Make one more repetition where one is wanted; return whether another may be."""
        if next_step(course.job.measure, course.repetitions, course.headlines) != "measure":
            return False
        self._repeat(course)
        return True

    def _repeat(self, course: SuiteJob) -> None:
        job, index = course.job, len(course.repetitions)
        total = max(count_repetitions(job.measure), index + 1)
        self.around.say("repetition", job, done=index, total=total)
        observer, answer, host = Observer(self.probes, index), EngineAnswer(), None
        started_at, before = self.around.clock.now(), read_canary()
        order, waiting = course.order(), partial(self.around.say, "prepare", job, message=CARD_IS_HELD)
        try:
            host = self.host(course.engine)
            with hold_card(order.unit, self.around.stop_asked, waiting):
                answer = host.perform(order, self._watch(course, observer))
            known = _describe_repetition(answer, observer)
        except PronyError as exc:  # what hosts it did not start again
            known = {"state": "failed", "failure": failure_of(exc, phase="start")}
        canaries = add_gpu_canaries(answer.done, before, read_canary())
        repetition = Repetition.read({"index": index, "started_at": started_at} | known | canaries)
        course.record(repetition, answer, observer, host)
        trouble = why_made_again(repetition)
        self.around.say("repetition", job, done=index + 1, total=total, state=repetition.state, message=trouble)

    def _watch(self, course: SuiteJob, observer: Observer) -> Watch:
        """Return what watches one order, and tells how it goes."""
        watch = watch_order(course.job, observer, self.around)

        def tick(pid: int) -> None:
            observer.tick(pid)
            if (live := course.read_live()) is not None:
                self.around.emit(Event(kind="load", job_id=course.job.id, live=live))

        return replace(watch, on_tick=tick)

    def _finish(self, course: SuiteJob) -> None:
        course.score(lambda text: self.around.say("prepare", course.job, message=text))
        good = any(one.state == "ok" for one in course.repetitions)
        wants_more = next_step(course.job.measure, course.repetitions, course.headlines) == "measure"
        stopped = self.around.stop_asked() and wants_more
        self.around.end_job(course.folder, course.telemetry, is_good=good, is_stopped=stopped)


def _describe_repetition(answer: EngineAnswer, observer: Observer) -> dict[str, Any]:
    """Turn the child's own account, and what was seen beside it, into what a repetition keeps."""
    done = answer.done or {}
    is_cancelled = answer.failure is not None and answer.failure.code == "cancelled"
    is_stopped = bool(done.get("stopped"))
    failure: Failure | None = answer.failure
    return {
        "state": "cancelled" if is_cancelled or is_stopped else "failed" if failure else "ok",
        "baseline_rss_kib": done.get("baseline_kib"),
        "phases": {name: Phase.read(phase) for name, phase in done.get("phases", {}).items()},
        "warm": done.get("warm"), "noise": observer.noise if done else Noise(), "energy_j": observer.energy_j,
        "vram_peak_mib": observer.vram_peak_mib, "gpu": observer.gpu.describe(done) if done else None,
        "contamination": (*observer.contamination, *(observer.gpu.contamination(done) if done else ())),
        "failure": failure,
    }  # fmt: skip


# Makes what runs a job of its folder; it may ask the runner for the process of an engine.
MakeJob = Callable[[ResultFolder, SuiteRunner], SuiteJob]
