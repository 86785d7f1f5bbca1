"""Run hardware tests, each repetition in a fresh process, and write their result folders."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from prony.errors import PronyError
from prony.instruments.canary import read_canary
from prony.instruments.counters import oom_kills
from prony.kinds.hardware.readings import headline_metric, reading_frame
from prony.kinds.hardware.schema import HardwareWorkload
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Effective, Failure, Noise, Phase, Repetition, Result, ResultState
from prony.runner.card_lock import CARD_IS_HELD, hold_card
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext, failure_of
from prony.runner.engines import interpreter
from prony.runner.folder import ResultFolder, TelemetryRow, begin_folders, write_frame
from prony.runner.host import EngineAnswer, EngineHost, Watch
from prony.runner.observer import Observer, open_probes
from prony.runner.turns import count_repetitions, next_step, shuffle_round
from prony.runner.watch_gpu import add_gpu_canaries

_GIVEN = {"library", "shapes", "layers", "precisions", "threads", "path", "seed"}
# By test and library: the engine whose process runs it, and the suite. The null engine is a bare Python with numpy.
_PLAIN, _TORCH = "null", "torch"
_SUITES = {
    ("cpu-memory", "numpy"): (_PLAIN, "prony.kinds.hardware.child.memory:MemorySuite"),
    ("cpu-memory", "torch"): (_TORCH, "prony.kinds.hardware.child.memory:MemorySuite"),
    ("cpu-gemm", "numpy"): (_PLAIN, "prony.kinds.hardware.child.numpy_gemm:NumpyGemmSuite"),
    ("cpu-gemm", "torch"): (_TORCH, "prony.kinds.hardware.child.torch_gemm:TorchGemmSuite"),
    ("disk", ""): (_PLAIN, "prony.kinds.hardware.child.disk:DiskSuite"),
    ("gpu-memory", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuMemorySuite"),
    ("gpu-gemm", ""): (_TORCH, "prony.kinds.hardware.child.torch_gemm:TorchGemmSuite"),
    ("gpu-transfer", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuTransferSuite"),
    ("gpu-launch", ""): (_TORCH, "prony.kinds.hardware.child.gpu:GpuLaunchSuite"),
    ("gpu-collective", ""): (_TORCH, "prony.kinds.hardware.child.collective:GpuCollectiveSuite"),
}


@dataclass
class HardwareJobRun:
    """One job's way through the runner."""

    folder: ResultFolder
    host: EngineHost
    suite: str
    telemetry: list[TelemetryRow] = field(default_factory=list)
    headlines: list[float] = field(default_factory=list)

    @property
    def job(self) -> Job:
        return self.folder.job

    @property
    def repetitions(self) -> tuple[Repetition, ...]:
        return self.folder.result.repetitions

    def order(self) -> ChildOrder:
        work, measure = self.job.work(HardwareWorkload), self.job.measure
        options = work.model_dump(mode="json", include=_GIVEN)
        unit = work.unit if work.is_of_gpu else "cpu"
        options |= {"unit": unit, "size": work.size, "time_ns": work.time}
        warmup = None if measure.warmup == "auto" else int(measure.warmup)
        return ChildOrder(
            op="tests", suite=self.suite, unit=unit, options=options, warmup=warmup, max_time_ns=work.time
        )  # fmt: skip

    def record(self, repetition: Repetition, answer: EngineAnswer, observer: Observer) -> None:
        """Keep one repetition with its readings."""
        self.telemetry += observer.rows
        if answer.done is not None and repetition.state == "ok":
            readings = answer.done["readings"]
            write_frame(self.folder.requests_part(repetition.index), reading_frame(repetition.index, readings))
            self.headlines += self._headline(readings) if repetition.is_clean else []
            if self.folder.result.effective is None:
                self.folder.update(effective=_effective(self.job, self.host, answer.done["facts"]))
        self.folder.add(repetition, answer.log)

    def _headline(self, readings: Sequence[Message]) -> list[float]:
        is_of_gpu = self.job.work(HardwareWorkload).is_of_gpu
        metric = headline_metric([one["metric"] for one in readings], is_of_gpu=is_of_gpu)
        return [max(median(one["values"]) for one in readings if one["metric"] == metric)] if metric else []


class HardwareRunner:
    """Runs jobs together: one repetition of each in turn, so that what happens to the machine happens to all alike."""

    def __init__(self, around: RunContext) -> None:
        self.around = around
        self._stack = ExitStack()
        self._hosts: dict[tuple[str, str], EngineHost] = {}
        self._scratch = Path(tempfile.mkdtemp(prefix="prony-hardware-"))

    def run(self, jobs: Sequence[Job], folders: Sequence[Path]) -> list[Result]:
        """Run every job to its end; return the results as they stand in the folders."""
        try:
            with self._stack:
                environment = self.around.environment()
                self.probes = open_probes()
                begun = begin_folders(jobs, folders, environment, self.around.clock)
                courses = [course for folder in begun if (course := self._prepare(folder)) is not None]
                self._take_turns(courses)
                for course in courses:
                    self._finish(course)
                for probe in self.probes:
                    probe.close()
                return [folder.result for folder in begun]
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _prepare(self, folder: ResultFolder) -> HardwareJobRun | None:
        """Start what hosts the test; what is wrong with it is this job's failure and no other's."""
        job = folder.job
        work = job.work(HardwareWorkload)
        engine, suite = _SUITES.get((work.test, work.library)) or _SUITES[work.test, ""]
        self._say("prepare", job, message=work.test)
        try:
            host = self._host(engine)
        except PronyError as exc:
            folder.update(failure=failure_of(exc, phase="prepare"))
            folder.finish(ResultState.FAILED, self.around.clock.now(), [])
            self._say("finished", job, state=ResultState.FAILED.value, message=exc.message)
            return None
        self._say("started", job, total=count_repetitions(job.measure))
        return HardwareJobRun(folder, host, suite)

    def _host(self, engine: str) -> EngineHost:
        """Return the process that hosts an engine, started when it is first needed or when the one before has ended."""
        python = interpreter(engine, self.around.engines)
        found = self._hosts.get((engine, python))
        if found is None or not found.is_alive:
            log = self._scratch / f"{engine}-{len(self._hosts)}.log"
            found = self._stack.enter_context(EngineHost(engine, python, log))
            self._hosts[engine, python] = found
        return found

    def _take_turns(self, courses: Sequence[HardwareJobRun]) -> None:
        pending, round_number = list(courses), 0
        while pending and not self.around.stop_asked():
            for course in shuffle_round(pending, round_number=round_number, seed=pending[0].job.seed):
                if next_step(course.job.measure, course.repetitions, course.headlines) != "measure":
                    pending.remove(course)
                elif not self.around.stop_asked():
                    self._repeat(course)
            round_number += 1

    def _repeat(self, course: HardwareJobRun) -> None:
        job, index = course.job, len(course.repetitions)
        total = max(count_repetitions(job.measure), index + 1)
        self._say("repetition", job, done=index, total=total)
        observer, answer = Observer(self.probes, index), EngineAnswer()
        started_at, before = self.around.clock.now(), read_canary()
        order, waiting = course.order(), partial(self._say, "prepare", job, message=CARD_IS_HELD)
        try:
            course.host = self._host(course.host.name)
            with hold_card(order.unit, self.around.stop_asked, waiting):
                answer = course.host.perform(order, self._watch(course, observer))
            known = _describe_repetition(answer, observer)
        except PronyError as exc:  # what hosts it did not start again
            known = {"state": "failed", "failure": failure_of(exc, phase="start")}
        canaries = add_gpu_canaries(answer.done, before, read_canary())
        repetition = Repetition.read({"index": index, "started_at": started_at} | known | canaries)
        course.record(repetition, answer, observer)
        self._say(
            "repetition", job, done=index + 1, total=total, state=repetition.state, message=_trouble(repetition)
        )  # fmt: skip

    def _watch(self, course: HardwareJobRun, observer: Observer) -> Watch:
        def enter(phase: str) -> None:
            observer.phase(phase)
            self._say("phase", course.job, phase=phase)

        return Watch(
            timeout_ns=course.job.limits.timeout, memory_bytes=course.job.limits.memory,
            stop_asked=self.around.stop_asked, on_phase=enter, on_ready=observer.ready,
            on_measured=observer.note_measurement, on_tick=observer.tick, tick_s=observer.tick_s, oom_kills=oom_kills,
        )  # fmt: skip

    def _finish(self, course: HardwareJobRun) -> None:
        good = any(one.state == "ok" for one in course.repetitions)
        wants_more = next_step(course.job.measure, course.repetitions, course.headlines) == "measure"
        stopped = self.around.stop_asked() and wants_more
        state = ResultState.PARTIAL if stopped else ResultState.COMPLETE if good else ResultState.FAILED
        if state is ResultState.FAILED:
            failures = [one.failure for one in course.repetitions if one.failure is not None]
            course.folder.update(failure=failures[-1] if failures else None)
        course.folder.finish(state, self.around.clock.now(), course.telemetry)
        self._say("finished", course.job, state=state.value)

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


def _effective(job: Job, host: EngineHost, facts: dict[str, str]) -> Effective:
    """Return what was used, as the child told it."""
    told = dict(facts)
    device, threads = told.pop("device"), told.pop("threads", None)
    return Effective(
        engine=job.work(HardwareWorkload).tool or "none", engine_version=told.pop("version", host.hello["version"]),
        python=host.hello["python_version"], device=device, precision="",
        threads=int(threads) if threads else None, details=told,
    )  # fmt: skip


def _trouble(repetition: Repetition) -> str:
    """Return why a repetition is not clean, and so is made again; empty where it is."""
    if repetition.failure is not None:
        return f"{repetition.state}: {repetition.failure.message}"
    return f"disturbed: {repetition.contamination[0].partition(': ')[2]}" if repetition.contamination else ""
