"""One script's way through the runner: its folder, its words, and the executions so far."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from prony.errors import CapacityError, MeasurementError, PronyError
from prony.instruments.canary import Canary
from prony.kinds.script.runner import execution
from prony.kinds.script.runner.execution import Execution, ExecutionOutcome, ExecutionWatch
from prony.kinds.script.runner.node import ALONE, ScriptNode
from prony.kinds.script.runner.nodes import Kind, Nodes, nodes_of
from prony.kinds.script.runner.plan import ProcessPlace, plan_processes
from prony.kinds.script.runner.reading import Reading
from prony.kinds.script.runner.staging import ScriptStage, Served
from prony.kinds.script.runner.supervisor_process import SupervisorProcess
from prony.kinds.script.samples import EmittedValue, own_rows, series_of, told_frame
from prony.kinds.script.schema import ScriptSource, ScriptWorkload
from prony.model.clients import ClientTiming
from prony.model.device import Environment
from prony.model.event import Event
from prony.model.recipe import Measure
from prony.model.result import Phase, Repetition, ScriptFacts
from prony.ports.models import Progress
from prony.ports.probe import Probe
from prony.runner.context import RunContext, Stopped, failure_of
from prony.runner.folder import ResultFolder, TelemetryRow, write_frame
from prony.runner.observer import Observer
from prony.runner.turns import is_never_quiet, wants_replacement
from prony.runner.watch_machine import EarlierReadings, MachineWatch
from prony.stats.stopping import tight_enough

_GIVE_UP_AFTER = 2
_GLANCE_S = 2.0
_LEAST_FOR_INTERVAL = 6  # runs below which no 95 % interval of a median exists


@dataclass(frozen=True)
class SharedByJobs:
    """What all script jobs of a runner use: the folder of shims, the probes, the process that starts scripts, and
    readings of the machine and of its speed."""

    shims: Path
    probes: list[Probe]
    supervisor: SupervisorProcess
    readings: EarlierReadings
    canary: Canary


class ScriptJobRun:
    """One job. `telemetry` gathers what the probes read beside its executions."""

    def __init__(self, folder: ResultFolder, around: RunContext, *, scratch: Path, shared: SharedByJobs) -> None:
        self.folder, self.job = folder, folder.job
        self._around, self._scratch, self._shared = around, scratch, shared
        self._stage = ScriptStage(folder.job, around, scratch=scratch, shims=shared.shims)
        self._facts = ScriptFacts(command=())
        self._environment: Environment | None = None
        self._headlines: list[float] = []
        self._nodes: Nodes | None = None
        self._node = ALONE
        self._launch, self._launches = folder.job.work(ScriptWorkload).launch, True
        self.telemetry: list[TelemetryRow] = []

    @property
    def repetitions(self) -> tuple[Repetition, ...]:
        return self.folder.result.repetitions

    @property
    def planned_repetitions(self) -> int:
        return _warmups(self.job.measure) + _fewest(self.job.measure)

    def prepare(self, environment: Environment, progress: Callable[[ScriptSource], Progress]) -> None:
        """Bring together what the script needs, look at its launch; what is wrong is told before anything runs."""
        self._nodes = nodes_of(self.job, self._around)
        self._stage.prepare(progress)
        whole = environment.checksums | self._stage.checksums
        self._environment = environment.model_copy(update={"checksums": whole})
        self.folder.write_environment(self._environment)
        place = self._place("prepare")
        variables = self._stage.variables(place)
        argv = self._stage.argv(place, variables)
        part = self.job.part
        if self._nodes is None and self._launch.nodes > 1:
            self._launch = self._launch.on_one_machine
            self._stage.notes.append(f"all nodes ran on this machine, with {self._launch.processes} processes")
        plan = plan_processes(self._launch, argv, variables, place, ScriptNode(part.index, part.of) if part else ALONE)
        self._launches = not plan.note
        self._stage.notes += [plan.note] if plan.note else []
        program = shutil.which(argv[0], path=variables["PATH"])
        self._facts = ScriptFacts(
            command=tuple(argv), program=program or "", directory=self._stage.digest, launcher=plan.launcher,
            notes=tuple(self._stage.notes),
        )  # fmt: skip
        self.folder.update(script=self._facts)
        self.folder.save()
        if program is None and "/" not in argv[0]:
            raise CapacityError(
                f"program {argv[0]} not found on PATH",
                hint="install it, write its full path, or set PATH in workload.environment",
                code="no_script_program",
            )

    def finish(self) -> None:
        """Say what is known only when all executions are over."""
        self._stage.finish()
        if self._environment is not None and (images := self._stage.images):
            whole = self._environment.checksums | images
            self.folder.write_environment(self._environment.model_copy(update={"checksums": whole}))
        self.folder.update(script=self._facts.model_copy(update={"notes": tuple(self._stage.notes)}))

    def next_kind(self) -> Kind | None:
        """Return what kind of execution comes next, if one does."""
        done, measure = self.repetitions, self.job.measure
        failures = [one.failure for one in done if one.failure is not None]
        if any(failure.whose in ("input", "capacity", "prony") for failure in failures):
            return None
        if len(done) >= _GIVE_UP_AFTER and len(failures) == len(done):
            return None
        if sum(one.kind == "warmup" for one in done) < _warmups(measure):
            return "warmup"
        runs = [one for one in done if one.kind == "measure"]
        return None if is_pointless(measure, runs) or not self._wants_run(measure, runs) else "measure"

    def _wants_run(self, measure: Measure, runs: Sequence[Repetition]) -> bool:
        if measure.until is None:
            return len(runs) < measure.repeats or wants_replacement(measure.repeats, runs)
        if len(runs) >= measure.until.max_repeats:
            return False
        return len(self._headlines) < _fewest(measure) or not tight_enough(self._headlines, measure.until.ci)

    def agreed_kind(self) -> Kind | None:
        """The same, as all nodes do it: what the first one says. One that failed is the end of it for all."""
        kind = self.next_kind()
        if self._nodes is None:
            return kind
        if any(one.state != "ok" for one in self.repetitions):
            return None
        kind, self._node = self._nodes.agree(len(self.repetitions), kind, launches=self._launches)
        return kind

    def execute(self, kind: Kind) -> Repetition:
        """Carry out one whole execution and keep what it told."""
        index = len(self.repetitions)
        started_at = self._around.clock.now()
        place = self._place(f"run-{index:04d}")
        place.emit_folder.touch()
        reading = Reading(self.job.work(ScriptWorkload).metrics)
        observer = Observer(
            self._shared.probes, index, MachineWatch(blind=self._stage.blind, earlier=self._shared.readings)
        )
        before = self._shared.canary.read_before()
        try:
            outcome = self._execute_staged(place, reading, observer)
        finally:
            self._stage.clear()
            shutil.rmtree(self._scratch / place.begin, ignore_errors=True)  # never a folder of the user's own
        after = self._shared.canary.read_after()
        rows = [*reading.rows, *_own(outcome, reading)]
        part = self.job.part
        write_frame(self.folder.requests_part(index), told_frame(index, kind, rows, part.index if part else None))
        repetition = Repetition(
            index=index, kind=kind, started_at=started_at, failure=outcome.failure,
            state="ok" if outcome.failure is None else "cancelled" if outcome.failure.code == "cancelled" else "failed",
            phases={"measure": _phase(outcome, len(reading.rows))},
            noise=observer.noise, use=observer.use, energy_j=observer.energy_j, vram_peak_mib=observer.vram_peak_mib,
            contamination=observer.contamination if kind == "measure" else (),
            refused=reading.refusals(), ends=tuple(outcome.ends), strays=outcome.strays,
            empty_start_ms=None if outcome.empty_ns is None else outcome.empty_ns / 1e6,
            timing=self._timing(index, outcome), canary_before=before, canary_after=after,
        )  # fmt: skip
        self.telemetry += observer.rows
        self.folder.add(repetition)
        self._learn(repetition, rows)
        return repetition

    def _place(self, begin: str) -> ProcessPlace:
        copied = self._scratch / begin
        copied.mkdir(exist_ok=True)
        work = self.job.work(ScriptWorkload)
        folder = copied if work.copy_files or work.directory is None else Path(work.directory)
        return ProcessPlace(folder=folder, logs=self.folder.path / "logs", scratch=self._scratch, begin=begin)

    def _execute_staged(self, place: ProcessPlace, reading: Reading, observer: Observer) -> ExecutionOutcome:
        """Execute it with all that it needs around it; what its server told is told with what it told itself."""
        try:
            self._stage.set_up(place)
            with self._stage.serving(place) as served:
                outcome = self._execute(place, reading, observer, served)
        except PronyError as exc:
            return ExecutionOutcome(failure=failure_of(exc, phase="start"))
        except Stopped:
            return ExecutionOutcome(failure=execution.script_cancelled())
        for tail in served.tails:
            tail.follow(is_last=True)
        reading.rows += served.reading.rows
        reading.refused |= served.reading.refused
        return outcome

    def _execute(self, place: ProcessPlace, reading: Reading, observer: Observer, served: Served) -> ExecutionOutcome:
        variables = self._stage.variables(place)
        node, hand_over = self._by_mpirun(place)
        plan = plan_processes(self._launch, self._stage.argv(place, variables), variables, place, node)
        plan = replace(plan, clear=self._stage.clearing)
        tails = [reading.follow_emitted(place.emit_folder), *(reading.follow_stream(stream) for stream in plan.streams)]
        glance = self._glance(reading, place)

        def tick(pid: int) -> None:
            observer.tick(pid)
            hand_over()
            glance()

        watch = ExecutionWatch(self.job.limits, self._around.stop_asked, tick, served.trouble)
        observer.ready()
        outcome = Execution(plan, [*tails, *served.tails], watch, self._shared.supervisor).run()
        observer.note_measurement({"event": "measured", "cpu_ns": outcome.cpu_ns})
        return outcome

    def _by_mpirun(self, place: ProcessPlace) -> tuple[ScriptNode, Callable[[], None]]:
        """Return this node as mpirun wants it, and what tells the others while it runs."""
        node, index = self._node, len(self.repetitions)
        if self._nodes is None or self._launch.kind != "mpirun" or not node.launches:
            return node, lambda: None
        if node.index == 0:
            return node, self._nodes.hands_over(index, place.orders)
        return replace(node, daemon=self._nodes.hears_daemon(index)), lambda: None

    def _timing(self, index: int, outcome: ExecutionOutcome) -> ClientTiming | None:
        """Return how this node's clock stood. Where it failed it waits for nobody: the others may never end."""
        if self._nodes is None:
            return None
        try:
            return self._nodes.gang.timing(index) if outcome.failure is None else self._nodes.gang.latest_timing()
        except MeasurementError:  # another node has not ended in its time: it will tell that itself
            return self._nodes.gang.latest_timing()

    def _glance(self, reading: Reading, place: ProcessPlace) -> Callable[[], None]:
        """Return what tells whoever watches, now and then, what the script told last."""
        told, next_s = "", time.monotonic() + _GLANCE_S

        def glance() -> None:
            nonlocal told, next_s
            if time.monotonic() < next_s:
                return
            next_s = time.monotonic() + _GLANCE_S
            latest = reading.latest(place.emit_folder)
            if latest and latest != told:
                told = latest
                self._around.emit(Event(kind="phase", job_id=self.job.id, phase=latest))

        return glance

    def _learn(self, repetition: Repetition, rows: list[EmittedValue]) -> None:
        """Remember the run's headline, by which `until` decides."""
        if self.job.measure.until is None or repetition.kind != "measure" or repetition.state != "ok":
            return
        series = series_of(told_frame(repetition.index, "measure", rows), self.job.work(ScriptWorkload))
        self._headlines += [*series[0].runs.values()] if series else []


def is_pointless(measure: Measure, runs: Sequence[Repetition]) -> bool:
    """Would another execution be disturbed too, and tell nothing else? What a script computes is good on a busy machine
    as well, but where it told nothing, its times are all there is."""
    return not any(phase.count for one in runs for phase in one.phases.values()) and is_never_quiet(
        _fewest(measure), runs
    )


def _warmups(measure: Measure) -> int:
    return 0 if measure.warmup == "auto" else measure.warmup


def _fewest(measure: Measure) -> int:
    """Return how many runs there must be before anything else is asked."""
    return max(measure.repeats, _LEAST_FOR_INTERVAL) if measure.until else measure.repeats


def _own(outcome: ExecutionOutcome, reading: Reading) -> list[EmittedValue]:
    if outcome.failure is not None or not outcome.end_ns:
        return []
    return own_rows((outcome.begin_ns, outcome.end_ns), outcome.cpu_ns, {row.name for row in reading.rows})


def _phase(outcome: ExecutionOutcome, count: int) -> Phase:
    return Phase(
        begin_ns=outcome.begin_ns, end_ns=outcome.end_ns, cpu_ns=outcome.cpu_ns, count=count,
        rss_peak_kib=outcome.rss_peak_kib,
    )  # fmt: skip
