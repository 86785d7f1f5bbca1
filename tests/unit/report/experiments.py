"""Seeded dossiers for tests: real nouns, with real sample and telemetry files in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from prony.instruments.samples import SAMPLES, TELEMETRY, sample_frame, telemetry_frame
from prony.kinds.model.schema import ModelWorkload
from prony.model.calibration import Calibration
from prony.model.device import Condition, Cpu, Device, Environment, Hardware, Software, State
from prony.model.estimate import Estimate, Grade, Missing, Outlier, Reason, Spread, Summary, Verdict
from prony.model.experiment import Experiment, ExperimentState
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.git import Git
from prony.model.job import Job
from prony.model.recipe import Matrix, Recipe
from prony.model.result import (
    Effective,
    Failure,
    InputFacts,
    ModelFacts,
    Noise,
    OutputCheck,
    Phase,
    Repetition,
    Result,
    ResultState,
)
from prony.model.workload import Scalar
from prony.stats.beta import student_quantile

BEGAN_AT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
MODEL = "zoo:tiny-yolov2"
SHA256 = "9f2c" * 16
RECIPE_TEXT = """\
name: quickstart
workload: {kind: model, model: "zoo:tiny-yolov2", engine: onnxruntime}
matrix:
  workload.engine: [onnxruntime, openvino]
  workload.batch_size: [1, 4]
"""
# Median inference in ms of one item, effective precision and load time in ms, by engine.
ENGINES: dict[str, tuple[float, str, float]] = {"onnxruntime": (38.0, "f32", 210.0), "openvino": (20.5, "f16", 520.0)}


def estimate(values: Sequence[float], unit: str, method: str = "median of runs") -> Estimate:
    """Return the median of one number a run, with a Student interval where there are enough runs."""
    middle = float(np.median(values))
    if len(values) < 3:
        return Estimate(value=middle, unit=unit, count=len(values), method=method)
    half = float(student_quantile(len(values) - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return Estimate(
        value=middle,
        unit=unit,
        low=middle - half,
        high=middle + half,
        confidence=0.95,
        count=len(values),
        method=method,
    )


def environment() -> Environment:
    cpu = Cpu(model="Neoverse-N1", vendor="ARM", architecture="aarch64", logical_cores=2, allowed_cores=2,
              flags=("asimd", "asimddp", "fphp"), caches={"L2": 1048576})  # fmt: skip
    conditions = (
        Condition(code="governor", title="CPU governor", status="unknown", value="not told by this machine"),
        Condition(code="load", title="Load", status="pass", value="0.12"),
        Condition(code="quota", title="Container CPU quota", status="warn", value="2 of 8 cores", hint="raise it"),
    )
    return Environment(
        device=Device(
            name="bench-1", hardware_id="hw-3fa2", software_id="sw-77c1",
            hardware=Hardware(cpu=cpu, memory_mib=7800, virtualization="kvm"),
            software=Software(os="Linux", os_version="Debian 12", kernel="6.1.0", python="3.11.9", prony="0.1.0",
                              packages={"onnxruntime": "1.31.1", "openvino": "2026.4.1", "numpy": "2.4.6"},
                              environment={"OMP_NUM_THREADS": "2"}),
        ),
        state=State(taken_at=BEGAN_AT, values={"load_1m": 0.12, "governor": None}, conditions=conditions),
        clock={"source": "monotonic", "resolution_ns": 1, "adjustable": False},
        git=Git(commit="4b825dc642cb6eb9a060e54bf8d69288fbee4904", branch="main", dirty=True),
        checksums={"model": SHA256},
        calibration_id="cal-1",
    )  # fmt: skip


def calibration() -> Calibration:
    def figure(value: float, unit: str, spread: float) -> Estimate:
        return Estimate(value=value, unit=unit, low=value - spread, high=value + spread, confidence=0.95, count=20,
                        method="median of processes")  # fmt: skip

    return Calibration(
        id="cal-1", hardware_id="hw-3fa2", software_id="sw-77c1", taken_at=BEGAN_AT - timedelta(days=1),
        figures={"harness_overhead_us": figure(0.61, "us", 0.03), "kernel_noise": figure(0.012, "1", 0.004),
                 "clock_cost_ns": figure(41, "ns", 1), "clock_resolution_ns": figure(1, "ns", 0)},
    )  # fmt: skip


class Maker:
    """Builds entries under `folder`; everything random comes from `seed`."""

    def __init__(self, folder: Path, *, seed: int = 7, repeats: int = 5, runs: int = 100) -> None:
        self.folder = folder
        self.rng = np.random.default_rng(seed)
        self.repeats = repeats
        self.runs = runs

    def entry(self, number: int, cell: dict[str, Scalar], *, grade: Grade = Grade.VALID) -> Entry:
        """Return one finished job with its files."""
        workload = ModelWorkload.model_validate(
            {"kind": "model", "model": MODEL, "engine": "onnxruntime"}
            | {path.removeprefix("workload."): value for path, value in cell.items()}
        )
        job = Job(id=f"job-{number}", experiment_id="exp-1", name="quickstart", cell=cell, workload=workload)
        folder = self.folder / job.id
        folder.mkdir(parents=True, exist_ok=True)
        base_ms, precision, load_ms = ENGINES[workload.engine]
        latencies = self._write_samples(folder, base_ms * workload.batch_size**0.93, load_ms)
        self._write_telemetry(folder)
        return Entry(
            job=job, result=self._result(job, precision, load_ms), summary=self._summary(job, latencies, grade),
            environment=environment(), folder=folder,
        )  # fmt: skip

    def _write_samples(self, folder: Path, base_ms: float, load_ms: float) -> dict[str, list[float]]:
        blocks: list[tuple[int, str, list[int], list[int]]] = []
        found: dict[str, list[float]] = {
            "load_ms": [],
            "first_inference_ms": [],
            "p50": [],
            "p90": [],
            "per_s": [],
            "slow": [],
            "slow_ms": [],
        }
        for repetition in range(self.repeats):
            begin = repetition * 10_000_000_000
            level = base_ms * self.rng.normal(1, 0.03)
            warm = level * self.rng.lognormal(0, 0.04, self.runs)
            slow = int(self.rng.integers(0, self.runs))
            warm[slow] *= 1.8
            found["slow"].append(slow)
            phases = {
                "load": [load_ms * self.rng.normal(1, 0.05)],
                "first": [level * 2.4],
                "warmup": list(level * (1 + 0.6 * np.exp(-np.arange(10) / 3.0))),
                "measure": list(warm),
            }
            for phase, values in phases.items():
                lengths = [round(value * 1e6) for value in values]
                ends = list(begin + np.cumsum(lengths))
                blocks.append(
                    (
                        repetition,
                        phase,
                        [int(e) - n for e, n in zip(ends, lengths, strict=True)],
                        [int(e) for e in ends],
                    )
                )
                begin = int(ends[-1]) + 1000
            found["load_ms"].append(phases["load"][0])
            found["first_inference_ms"].append(phases["first"][0])
            found["slow_ms"].append(float(warm[slow]))
            found["p50"].append(float(np.median(warm)))
            found["p90"].append(float(np.quantile(warm, 0.9)))
            found["per_s"].append(float(1000 * self.runs / warm.sum()))
        sample_frame(blocks).write_parquet(folder / SAMPLES)
        return found

    def _outliers(self, found: dict[str, list[float]]) -> tuple[Outlier, ...]:
        # One load, one first inference and ten of warm-up come before the measured samples.
        return tuple(
            Outlier(repetition=run, index=12 + int(place), metric="inference_ms", value=value, label="severe")
            for run, (place, value) in enumerate(zip(found["slow"], found["slow_ms"], strict=True))
        )

    def _write_telemetry(self, folder: Path) -> None:
        rows: list[tuple[int, int, str, dict[str, float]]] = []
        for repetition in range(self.repeats):
            for tick in range(40):
                at_ns = repetition * 10_000_000_000 + tick * 100_000_000
                readings = {
                    "cpu_busy_s_total": 0.19 * (repetition * 40 + tick) + float(self.rng.uniform(0, 0.01)),
                    "frequency_mean_mhz": float(self.rng.normal(3000, 8)),
                    "energy_package_uj_total": 1e6 * (repetition * 40 + tick) * 1.8,
                }
                rows.append((repetition, at_ns, "host", readings))
        telemetry_frame(rows).write_parquet(folder / TELEMETRY)

    def _result(self, job: Job, precision: str, load_ms: float) -> Result:
        exact = precision == "f32"
        return Result(
            prony_version="0.1.0", job_id=job.id, experiment_id=job.experiment_id, state=ResultState.COMPLETE,
            started_at=BEGAN_AT, ended_at=BEGAN_AT + timedelta(seconds=41),
            model=ModelFacts(source=MODEL, path="models/tiny-yolov2.onnx", format=".onnx", sha256=SHA256,
                             size_bytes=63_480_112, files=("tiny-yolov2.onnx",), parameters=15_867_885, opset=17,
                             weight_types={"float32": 38}),
            inputs=(InputFacts(name="image", dtype="float32", shape=(job.work(ModelWorkload).batch_size, 3, 416, 416),
                               shape_source="axis batch from batch_size, the rest fixed by the model",
                               values_source="uniform 0..1, seed 0", sha256="ab" * 32),),
            effective=Effective(engine=job.work(ModelWorkload).engine, engine_version="1.31.1",
                                python="/opt/env/bin/python", device="CPU", precision=precision, threads=2,
                                provider_coverage={"CPUExecutionProvider": 1.0}, details={"graph": "optimised"}),
            check=OutputCheck(finite=True, reference="onnxruntime float32", is_reference=exact, compared=not exact,
                              max_abs_error=None if exact else 0.011, max_error_of_range=None if exact else 0.0113,
                              cosine=None if exact else 0.99991, outputs=1),
            repetitions=tuple(self._repetition(index, load_ms) for index in range(self.repeats)),
        )  # fmt: skip

    def _repetition(self, index: int, load_ms: float) -> Repetition:
        begin = index * 10_000_000_000
        after = begin + round(load_ms * 1e6)
        phase = {"rss_peak_kib": 340_000, "rss_anon_kib": 250_000, "rss_file_kib": 61_000}
        phases = {
            "load": Phase(begin_ns=begin, end_ns=after, cpu_ns=200_000_000, count=1, **phase),
            "first": Phase(begin_ns=after, end_ns=after + 90_000_000, cpu_ns=170_000_000, count=1),
            "measure": Phase(begin_ns=after + 90_000_000, end_ns=after + 3_900_000_000, cpu_ns=7_500_000_000,
                             count=self.runs, **phase | {"rss_peak_kib": 352_000 + index, "rss_anon_kib": 271_000}),
        }  # fmt: skip
        return Repetition(
            index=index, started_at=BEGAN_AT + timedelta(seconds=8 * index), import_ns=151_000_000, page_cache=1.0,
            baseline_rss_kib=45_056, phases=phases, warm=True, stopped_by="runs",
            noise=Noise(foreign_cpu=0.012, steal=0.0, pressure_cpu=0.4),
        )  # fmt: skip

    def _summary(self, job: Job, found: dict[str, list[float]], grade: Grade) -> Summary:
        per_s = [value * job.work(ModelWorkload).batch_size for value in found["per_s"]]
        estimates = {
            "inference_ms.p50": estimate(found["p50"], "ms"),
            "inference_ms.p90": estimate(found["p90"], "ms"),
            "throughput_per_s.p50": estimate(per_s, "1/s"),
            "load_ms.p50": estimate(found["load_ms"], "ms"),
            "first_inference_ms.p50": estimate(found["first_inference_ms"], "ms"),
            "memory_mib.p50": estimate([(352_000 + i - 45_056) / 1024 for i in range(self.repeats)], "MiB"),
            "rss_baseline_mib.p50": estimate([44.0] * self.repeats, "MiB"),
        }
        reasons = () if grade is Grade.VALID else (
            Reason(code="foreign_cpu", text="Other programs used 9 % of the CPU while run 3 measured.", grade=grade),
        )  # fmt: skip
        return Summary(
            job_id=job.id, title=job.title, cell=job.cell, estimates=estimates,
            missing=(Missing(metric="inference_ms.p99", at_least=found["p90"][0], count=self.runs, needed=368),),
            outliers=self._outliers(found), outlier_count=self.repeats,
            spread={"inference_ms": Spread(within_sd=1.6, between_sd=1.1, icc=0.32)},
            steady_from=dict.fromkeys(range(self.repeats), 12), used=tuple(range(self.repeats)),
            verdict=Verdict(grade=grade, reasons=reasons),
        )  # fmt: skip


def failed_entry(maker: Maker, number: int, cell: dict[str, Scalar], *, code: str = "killed") -> Entry:
    """Return a job that has no number: its process was killed while loading."""
    made = maker.entry(number, cell)
    why = Failure(code=code, message="the engine's process was killed", hint="raise limits.memory", phase="load",
                  signal="SIGKILL", detail="resident memory reached the limit of 256MiB")  # fmt: skip
    repetition = made.result.repetitions[0].model_copy(update={"state": "failed", "failure": why, "phases": {}})
    result = made.result.model_copy(
        update={"state": ResultState.FAILED, "failure": why, "repetitions": (repetition,), "effective": None,
                "check": None, "inputs": ()}
    )  # fmt: skip
    reason = Reason(code="no_success", text="None of 1 repetitions gave a measurement.", grade=Grade.VOID)
    summary = Summary(job_id=made.job.id, title=made.job.title, cell=cell, used=(), excluded={0: "failed in load"},
                      verdict=Verdict(grade=Grade.VOID, reasons=(reason,)))  # fmt: skip
    (made.folder / SAMPLES).unlink()
    (made.folder / TELEMETRY).unlink()
    return made.model_copy(update={"result": result, "summary": summary})


def experiment(
    job_count: int, *, state: ExperimentState = ExperimentState.COMPLETE, name: str = "quickstart"
) -> Experiment:
    recipe = Recipe(
        name=name, description="Two engines, two batch sizes.",
        workload=ModelWorkload(kind="model", model=MODEL, engine="onnxruntime"),
        matrix=Matrix.model_validate({"workload.engine": ["onnxruntime", "openvino"]}),
    )  # fmt: skip
    return Experiment(
        id="exp-1", name=name, recipe=recipe, recipe_text=RECIPE_TEXT, state=state, created_at=BEGAN_AT,
        ended_at=BEGAN_AT + timedelta(minutes=3), job_count=job_count,
    )  # fmt: skip


def data(folder: Path, *, batches: Sequence[int] = (1, 4), repeats: int = 5, runs: int = 100) -> ExperimentData:
    """Return two engines by some batch sizes; the last job is suspect."""
    maker = Maker(folder, repeats=repeats, runs=runs)
    cells: list[dict[str, Scalar]] = [
        {"workload.engine": engine, "workload.batch_size": batch} for batch in batches for engine in ENGINES
    ]
    grades = [Grade.VALID] * (len(cells) - 1) + [Grade.SUSPECT]
    entries = tuple(
        maker.entry(n, cell, grade=grade) for n, (cell, grade) in enumerate(zip(cells, grades, strict=True))
    )
    return ExperimentData(experiment=experiment(len(cells)), entries=entries, calibration=calibration())


def partial_experiment(folder: Path) -> ExperimentData:
    """Return one good job, one that failed, one that was never run; and no calibration."""
    maker = Maker(folder)
    entries = (
        maker.entry(0, {"workload.engine": "onnxruntime"}),
        failed_entry(maker, 1, {"workload.engine": "openvino"}),
    )
    return ExperimentData(experiment=experiment(3, state=ExperimentState.PARTIAL), entries=entries)


def empty_experiment() -> ExperimentData:
    return ExperimentData(experiment=experiment(0), entries=())
