"""One job's way through the runner: its model, its engine, its folder, and the repetitions so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from prony.instruments.samples import SAMPLE_PHASES
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.result import Effective, InputFacts, MachineUse, Noise, Phase, Repetition
from prony.ports.models import ModelFiles
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.folder import ResultFolder, TelemetryRow
from prony.runner.host import EngineAnswer, EngineHost
from prony.runner.observer import Observer
from prony.stats.steady import steady_from

# A counter of energy moves every 100 ms: so much longer than the window that is asked for, at its two ends.
_ENDS_NS = 400_000_000


@dataclass
class JobRun:
    job: Job
    folder: ResultFolder
    files: ModelFiles
    python: str
    threads: int
    telemetry: list[TelemetryRow] = field(default_factory=list)
    run_medians: list[float] = field(default_factory=list)

    @property
    def repetitions(self) -> tuple[Repetition, ...]:
        return self.folder.result.repetitions

    def order(self, op: str, *, index: int, outputs: Path | None = None) -> ChildOrder:
        measure = self.job.measure
        return replace(
            model_order(op, self.job.work(ModelWorkload), self.files, self.threads),
            runs=measure.least_runs,
            most_runs=measure.most_runs,
            warmup=None if measure.warmup == "auto" else int(measure.warmup),
            max_time_ns=measure.max_time,
            ci=measure.until.ci if measure.until else None,
            sustained_ns=measure.energy_window + _ENDS_NS,
            samples=str(self.folder.part(index)),
            outputs=str(outputs) if outputs else "",
        )

    def learn(self, host: EngineHost, done: Message) -> None:
        """Keep what the first good answer tells of inputs and of what is effective."""
        if self.folder.result.inputs:
            return
        inputs = tuple(InputFacts.read(item) for item in done["inputs"])
        self.folder.update(inputs=inputs, effective=effective(host, done["effect"]))

    def record(self, repetition: Repetition, answer: EngineAnswer, observer: Observer) -> None:
        self.telemetry += observer.rows
        if repetition.kind == "measure" and repetition.state == "ok":
            durations_ns = _durations_ns(self.folder.part(repetition.index), repetition)
            repetition = repetition.model_copy(update={"steady": steady_from(durations_ns) is not None})
            self.run_medians += [float(np.median(durations_ns))] if repetition.is_clean else []
        self.folder.add(repetition, answer.log)


def model_order(op: str, workload: ModelWorkload, files: ModelFiles, threads: int) -> ChildOrder:
    """Return the order to a child as far as the model alone decides it."""
    return ChildOrder(
        op=op,
        model=str(files.path),
        unit=workload.unit,
        threads=threads,
        precision=workload.precision,
        batch_size=workload.batch_size,
        options=dict(workload.options),
        axes=dict(workload.inputs.axes),
        shapes={name: list(shape) for name, shape in workload.inputs.shapes.items()},
        values={name: spec.model_dump() for name, spec in workload.inputs.values.items()},
        seed=workload.inputs.seed,
        inputs_at=workload.inputs.at,
        outputs_at=workload.outputs,
    )


def effective(host: EngineHost, effect: Message) -> Effective:
    return Effective(
        engine=host.name,
        engine_version=host.hello["version"],
        python=host.hello["python_version"],
        device=effect["device"],
        precision=effect["precision"],
        threads=effect["threads"],
        provider_coverage=effect["coverage"],
        details=effect["details"],
        outputs_at=effect.get("outputs_at"),
        gradients=effect.get("gradients"),
    )


def repetition_of(
    answer: EngineAnswer, observer: Observer, host: EngineHost, *, index: int, op: str, started_at: datetime
) -> Repetition:
    """Turn the child's own account, and what was seen beside it, into a repetition."""
    done = answer.done or {}
    cancelled = answer.failure is not None and answer.failure.code == "cancelled"
    stopped = bool(done.get("stopped")) and not done.get("counts", {}).get("measure")
    return Repetition.read(
        {
            "index": index,
            "kind": op,
            "state": "cancelled" if cancelled or stopped else "failed" if answer.failure else "ok",
            "started_at": started_at,
            "import_ns": host.hello["import_ns"] if host.alone else None,
            "baseline_rss_kib": done.get("baseline_kib"),
            "phases": {name: Phase.read(phase) for name, phase in done.get("phases", {}).items()},
            "warm": done.get("warm"),
            "stopped_by": "stop" if done.get("stopped") else done.get("stopped_by"),
            "noise": observer.noise if answer.done else Noise(),
            "use": observer.use if answer.done else MachineUse(),
            "energy_j": observer.energy_j,
            "vram_peak_mib": observer.vram_peak_mib,
            "gpu": observer.gpu.describe(done) if done else None,
            "contamination": (*observer.contamination, *_device_contamination(done, observer)),
            "failure": answer.failure,
        }
    )


def _device_contamination(done: Message, observer: Observer) -> tuple[str, ...]:
    """Return what disturbed the device while it was measured, as `code: sentence`."""
    again = done.get("device", {}).get("recompilations", 0)
    told = (f"recompiled: the model was compiled again {again} times during the measurement",) if again else ()
    return (*told, *observer.gpu.contamination(done)) if done else ()


def _durations_ns(part: Path, repetition: Repetition) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the measured samples; those of earlier phases come before them in the part."""
    counts = {name: phase.count for name, phase in repetition.phases.items()}
    before = sum(counts.get(name, 0) for name in SAMPLE_PHASES[: SAMPLE_PHASES.index("measure")])
    stamps = np.fromfile(part, dtype=np.int64)[2 * before :]
    count = counts["measure"]
    return stamps[count : 2 * count] - stamps[:count]
