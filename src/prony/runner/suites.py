"""Run jobs that are suites of tests, each repetition in a fresh process, and write their result folders."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.instruments.counters import oom_kills
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Effective, Failure, Noise, Phase, Repetition, Result, ResultState
from prony.runner.card_lock import CARD_IS_HELD, hold_card
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.engines import interpreter
from prony.runner.folder import ResultFolder, TelemetryRow, begin_folders
from prony.runner.host import EngineAnswer, EngineHost, Watch
from prony.runner.observer import Observer, open_probes
from prony.runner.turns import count_repetitions, next_step, shuffle_round
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
                self.probes = open_probes()
                begun = begin_folders(jobs, folders, self.environment, self.around.clock)
                courses = [course for folder in begun if (course := self._prepare(folder)) is not None]
                self._take_turns(courses)
                for course in courses:
                    self._finish(course)
                for probe in self.probes:
                    probe.close()
                return [folder.result for folder in begun]
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _prepare(self, folder: ResultFolder) -> SuiteJob | None:
        """Bring together what a job needs; what is wrong with it is this job's failure and no other's."""
        job = folder.job
        self._say("prepare", job, message=job.workload.subject)
        try:
            with self.around.interruptible():
                made = self._make_job(folder, self)
        except Stopped:
            self._give_up(folder, Failure(code="cancelled", message="stopped before it began", whose="prony"))
            return None
        except PronyError as exc:
            self._give_up(folder, failure_of(exc, phase="prepare"))
            return None
        self._say("started", job, total=count_repetitions(job.measure))
        return made

    def _give_up(self, folder: ResultFolder, failure: Failure) -> None:
        state = ResultState.PARTIAL if failure.code == "cancelled" else ResultState.FAILED
        folder.update(failure=failure)
        folder.finish(state, self.around.clock.now(), [])
        self._say("finished", folder.job, state=state.value, message=failure.message)

    def host(self, engine: str) -> EngineHost:
        """Return the process that hosts an engine, started when it is first needed or when the one before has ended."""
        python = interpreter(engine, self.around.engines)
        found = self._hosts.get((engine, python))
        if found is None or not found.is_alive:
            log = self.scratch / f"{engine}-{len(self._hosts)}.log"
            found = self._stack.enter_context(EngineHost(engine, python, log))
            self._hosts[engine, python] = found
        return found

    def _take_turns(self, courses: Sequence[SuiteJob]) -> None:
        pending, round_number = list(courses), 0
        while pending and not self.around.stop_asked():
            for course in shuffle_round(pending, round_number=round_number, seed=pending[0].job.seed):
                if next_step(course.job.measure, course.repetitions, course.headlines) != "measure":
                    pending.remove(course)
                elif not self.around.stop_asked():
                    self._repeat(course)
            round_number += 1

    def _repeat(self, course: SuiteJob) -> None:
        job, index = course.job, len(course.repetitions)
        total = max(count_repetitions(job.measure), index + 1)
        self._say("repetition", job, done=index, total=total)
        observer, answer, host = Observer(self.probes, index), EngineAnswer(), None
        started_at, before = self.around.clock.now(), read_canary()
        order, waiting = course.order(), partial(self._say, "prepare", job, message=CARD_IS_HELD)
        try:
            host = self.host(course.engine)
            with hold_card(order.unit, self.around.stop_asked, waiting):
                answer = host.perform(order, self.watch(course.job, observer))
            known = _describe_repetition(answer, observer)
        except PronyError as exc:  # what hosts it did not start again
            known = {"state": "failed", "failure": failure_of(exc, phase="start")}
        canaries = add_gpu_canaries(answer.done, before, read_canary())
        repetition = Repetition.read({"index": index, "started_at": started_at} | known | canaries)
        course.record(repetition, answer, observer, host)
        self._say(
            "repetition", job, done=index + 1, total=total, state=repetition.state, message=_trouble(repetition)
        )  # fmt: skip

    def watch(self, job: Job, observer: Observer) -> Watch:
        """Return the limits of one order, and what hears of its phases."""

        def enter(phase: str) -> None:
            observer.phase(phase)
            self._say("phase", job, phase=phase)

        return Watch(
            timeout_ns=job.limits.timeout, memory_bytes=job.limits.memory,
            stop_asked=self.around.stop_asked, on_phase=enter, on_ready=observer.ready,
            on_measured=observer.note_measurement, on_tick=observer.tick, tick_s=observer.tick_s, oom_kills=oom_kills,
        )  # fmt: skip

    def _finish(self, course: SuiteJob) -> None:
        course.score(lambda text: self._say("prepare", course.job, message=text))
        good = any(one.state == "ok" for one in course.repetitions)
        wants_more = next_step(course.job.measure, course.repetitions, course.headlines) == "measure"
        stopped = self.around.stop_asked() and wants_more
        state = ResultState.PARTIAL if stopped else ResultState.COMPLETE if good else ResultState.FAILED
        if state is ResultState.FAILED:
            failures = [one.failure for one in course.repetitions if one.failure is not None]
            course.folder.update(failure=failures[-1] if failures else None)
        course.folder.finish(state, self.around.clock.now(), course.telemetry)
        self._say("finished", course.job, state=state.value)

    def progress(self, job: Job) -> Callable[[int, int | None], None]:
        """Return what tells how far the fetching of a model is."""

        def tell(done: int, total: int | None) -> None:
            if self.around.stop_asked():
                raise Stopped
            self._say("prepare", job, done=done, total=total or 0, message=f"fetching {job.workload.subject}")

        return tell

    def _say(self, kind: str, job: Job, **details: str | int) -> None:
        self.around.emit(Event.read({"kind": kind, "job_id": job.id} | details))


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


def _trouble(repetition: Repetition) -> str:
    """Return why a repetition is not clean, and so is made again; empty where it is."""
    if repetition.failure is not None:
        return f"{repetition.state}: {repetition.failure.message}"
    return f"disturbed: {repetition.contamination[0].partition(': ')[2]}" if repetition.contamination else ""


# Makes what runs a job of its folder; it may ask the runner for the process of an engine.
MakeJob = Callable[[ResultFolder, SuiteRunner], SuiteJob]
