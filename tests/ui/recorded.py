"""Results of a benchmark as a runner writes them, with numbers that are known: what browsers are shown in tests.

The folders are whole, and what is said of them is what Prony's own analysis says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from prony.instruments.samples import SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.kinds.model.schema import ModelWorkload
from prony.kinds.model.summary import summarise
from prony.model.device import Cpu, Device, Environment, Hardware, Software, State
from prony.model.experiment import Experiment, ExperimentState
from prony.model.job import Job
from prony.model.recipe import Matrix, Measure, Recipe
from prony.model.result import Effective, InputFacts, ModelFacts, Noise, Phase, Repetition, Result, ResultState
from prony.store.store import Store

BEGIN = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
_SAMPLES, _WARMUPS = 40, 40
_MS = 1_000_000


@dataclass(frozen=True)
class Kind:
    """What is measured: its name, the sizes of its batches, of which version the engine is; and on which machine,
    which costs so much an hour."""

    name: str = "nightly"
    batches: tuple[int, ...] = (1,)
    engine_version: str = "1.20.0"
    kernel: str = "6.1.0"
    device: str = "bench-1"
    per_hour: float | None = None


NIGHTLY = Kind()


def record(store: Store, place: int, medians_ms: Sequence[float], kind: Kind = NIGHTLY) -> str:
    """Record one experiment, `place` days after the beginning, with a median for each of its jobs; return its id."""
    at = BEGIN + timedelta(days=place)
    experiment_id = f"{kind.name}{place:03d}"
    recipe = Recipe(
        name=kind.name, workload=_workload(1), measure=Measure(runs=_SAMPLES, repeats=8),
        matrix=Matrix.model_validate({"workload.batch_size": list(kind.batches)} if len(kind.batches) > 1 else {}),
    )  # fmt: skip
    made = Experiment(
        id=experiment_id, name=kind.name, recipe=recipe, created_at=at, ended_at=at + timedelta(minutes=2),
        state=ExperimentState.COMPLETE, job_count=len(kind.batches), recipe_text=f"name: {kind.name}\n",
    )  # fmt: skip
    jobs = [_job(made, number, size) for number, size in enumerate(kind.batches, 1)]
    store.save_experiment(made, jobs)
    for job, median_ms in zip(jobs, medians_ms, strict=True):
        _write(store, job, at, median_ms, kind)
    return experiment_id


def _workload(batch_size: int) -> ModelWorkload:
    return ModelWorkload(kind="model", model="zoo:tiny", engine="onnxruntime", threads=1, batch_size=batch_size)


def _job(made: Experiment, number: int, batch_size: int) -> Job:
    cell = {"workload.batch_size": batch_size} if made.job_count > 1 else {}
    return Job(
        id=f"{made.id}-{number:03d}", experiment_id=made.id, name=made.name, cell=cell, seed=number,
        workload=_workload(batch_size), measure=made.recipe.measure,
    )  # fmt: skip


def _write(store: Store, job: Job, at: datetime, median_ms: float, kind: Kind) -> None:
    folder = store.home.result_folder(job.experiment_id, job.id)
    (folder / "logs").mkdir(parents=True)
    runs = [_Run.made(index, median_ms, job.seed) for index in range(job.measure.repeats or 8)]
    result, environment = _result(job, at, kind, runs), _environment(at, kind)
    for name, noun in (("job.json", job), ("result.json", result), ("environment.json", environment)):
        (folder / name).write_text(noun.model_dump_json(indent=2))
    samples = sample_frame([block for run in runs for block in run.blocks])
    samples.write_parquet(folder / SAMPLES)
    readings = [
        (run.index, run.begin_ns + step * 10 * _MS, "host", {"cpu_busy_s_total": run.index * 2.0 + step * 0.009})
        for run in runs
        for step in range(40)
    ]
    telemetry_frame(readings).write_parquet(folder / TELEMETRY)
    store.record_result(folder, summarise(job, result, samples, environment=environment))


@dataclass(frozen=True)
class _Run:
    """One fresh process: how long it loaded, warmed up and inferred, on a clock that begins anew for none."""

    index: int
    begin_ns: int
    load_ns: int
    first_ns: int
    warmup_ns: tuple[int, ...]
    measure_ns: tuple[int, ...]

    @classmethod
    def made(cls, index: int, median_ms: float, seed: int) -> _Run:
        chance = np.random.default_rng([seed, index, round(median_ms * 1e6)])
        own = median_ms * (1 + chance.normal(0, 0.006))

        def drawn(count: int) -> tuple[int, ...]:
            return tuple(int(value) for value in own * _MS * np.exp(chance.normal(0, 0.03, count)))

        return cls(
            index=index, begin_ns=(index + 1) * 2_000 * _MS, load_ns=int(14 * _MS * (1 + chance.normal(0, 0.02))),
            first_ns=int(own * 3 * _MS), warmup_ns=drawn(_WARMUPS), measure_ns=drawn(_SAMPLES),
        )  # fmt: skip

    @property
    def blocks(self) -> list[tuple[int, str, list[int], list[int]]]:
        blocks, at = [], self.begin_ns
        for phase, lasted in self._phases:
            begins = [at + sum(lasted[:place]) for place in range(len(lasted))]
            ends = [begin + length for begin, length in zip(begins, lasted, strict=True)]
            blocks.append((self.index, phase, begins, ends))
            at = ends[-1] + _MS
        return blocks

    @property
    def repetition(self) -> Repetition:
        phases = {
            phase: Phase(
                begin_ns=begins[0], end_ns=ends[-1], cpu_ns=ends[-1] - begins[0], count=len(begins),
                rss_peak_kib=63_000, rss_anon_kib=27_000, rss_file_kib=36_000,
            )
            for _, phase, begins, ends in self.blocks
        }  # fmt: skip
        quiet = Noise(
            foreign_cpu=0.0, steal=0.0, pressure_cpu=0.0, pressure_memory=0.0, pressure_io=0.0, quota_throttled_ms=0.0,
            swapped_pages=0, window_s=1.0, cpu_resolution=0.01,
        )  # fmt: skip
        return Repetition(
            index=self.index, started_at=BEGIN, baseline_rss_kib=54_000, phases=phases, warm=True, steady=True,
            stopped_by="runs", noise=quiet,
        )  # fmt: skip

    @property
    def _phases(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        return (
            ("load", (self.load_ns,)), ("first", (self.first_ns,)), ("warmup", self.warmup_ns),
            ("measure", self.measure_ns),
        )  # fmt: skip


def _result(job: Job, at: datetime, kind: Kind, runs: Sequence[_Run]) -> Result:
    return Result(
        prony_version="0.1.0", job_id=job.id, experiment_id=job.experiment_id, state=ResultState.COMPLETE,
        started_at=at, ended_at=at + timedelta(minutes=1), repetitions=tuple(run.repetition for run in runs),
        model=ModelFacts(
            source="zoo:tiny", path="/models/tiny.onnx", format="onnx", sha256="8e24f525" * 8, size_bytes=2827,
            files=("tiny.onnx",),
        ),
        inputs=(
            InputFacts(
                name="x", dtype="float32", shape=(job.work(ModelWorkload).batch_size, 16), shape_source="batch_size",
                values_source="seeded", sha256="9b1edce2" * 8,
            ),
        ),
        effective=Effective(
            engine="onnxruntime", engine_version=kind.engine_version, python="3.11.7", device="CPUExecutionProvider",
            precision="fp32", threads=1,
        ),
    )  # fmt: skip


def _environment(at: datetime, kind: Kind) -> Environment:
    hardware = Hardware(cpu=Cpu(architecture="aarch64", logical_cores=8, allowed_cores=8), memory_mib=16_384)
    software = Software(os="linux", kernel=kind.kernel, python="3.11.7", prony="0.1.0")
    device = Device(
        name=kind.device, hardware_id=f"hw-{kind.device}", software_id=f"sw-{kind.kernel}", hardware=hardware,
        software=software,
    )  # fmt: skip
    labels = {} if kind.per_hour is None else {"cost_per_hour": str(kind.per_hour)}
    return Environment(device=device, state=State(taken_at=at), clock={"resolution_ns": 1}, labels=labels)


def history_ms(count: int, *, change: int, size: float = 0.08) -> list[float]:
    """Return the medians of a benchmark that got slower from one result on."""
    values = 2.5 * (1 + np.random.default_rng(1).normal(0, 0.008, count))
    values[change:] *= 1 + size
    return [float(value) for value in values]
