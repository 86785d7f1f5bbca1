"""Entries for comparisons, made by hand: one number a run, a machine and settings that may be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from prony.analyse.compare.compare import compare_entries
from prony.analyse.compare.matching import Side
from prony.analyse.estimates import EstimateSet, across_runs
from prony.kinds.model.schema import ModelWorkload
from prony.kinds.service.schema import ServiceWorkload
from prony.model.comparison import Comparison, Contrast, Terms
from prony.model.estimate import Estimate, Grade, Missing, Reason, Summary, Verdict
from prony.model.experiment_data import Entry
from prony.model.job import Job
from prony.model.load import Load
from prony.model.metric import metric_of
from prony.model.recipe import Measure
from prony.model.workload import Scalar

from ..jobs import AT, effective, environment, model_facts, result

P50 = "inference_ms.p50"
RATE = "throughput_per_s.p50"
VALID = Verdict(grade=Grade.VALID)
VOID = Verdict(
    grade=Grade.VOID,
    reasons=(Reason(code="contaminated", text="Other programs took 90 % of the CPU.", grade=Grade.VOID),),
)


def noisy(level: float, count: int, *, cv: float = 0.01, seed: int = 0) -> list[float]:
    return [float(value) for value in level * np.exp(np.random.default_rng(seed).normal(0, cv, count))]


def alike(sides: Sequence[Side], count: int = 200) -> dict[str, list[dict[str, float]]]:
    """Return so many other results of each job that lie as near to each other as can be."""
    jobs = [one for side in sides for one in side.entries]
    return {one.job.id: [{key: values[0] for key, values in one.summary.runs.items()}] * count for one in jobs}


def entry(
    runs: Mapping[str, Sequence[float]],
    *,
    experiment: str = "e1",
    number: int = 1,
    cell: Mapping[str, Scalar] | None = None,
    counts: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    verdict: Verdict = VALID,
    missing: tuple[Missing, ...] = (),
    hours: float = 0.0,
    **workload: Any,
) -> Entry:
    """Return one job with these runs; `workload` changes its settings, `kind` makes it a load."""
    found = EstimateSet()
    for key, values in runs.items():
        known = np.array(values, dtype=np.float64)
        found |= EstimateSet.one(key, across_runs(known, metric_of(key).unit, "runs"), list(values))
    for key, by_run in (counts or {}).items():
        failed, total = (sum(column) for column in zip(*by_run, strict=True))
        share = Estimate(value=failed / total, unit="1", count=total, level="sample", method="share")
        found |= EstimateSet({key: share}, counts={key: (failed, total)}, run_counts={key: tuple(by_run)})
    job = Job(
        id=f"{experiment}-{number:03d}", experiment_id=experiment, name="mlp", cell=dict(cell or {}),
        workload=_workload(workload, cell or {}), measure=Measure(), load=Load(),
    )  # fmt: skip
    told = result([], job_id=job.id, experiment_id=experiment, started_at=AT + timedelta(hours=hours),
                  ended_at=AT + timedelta(hours=hours + 1))  # fmt: skip
    summary = Summary(
        job_id=job.id, title=job.title, cell=job.cell, estimates=found.estimates, runs=found.runs, counts=found.counts,
        run_counts=found.run_counts,
        missing=missing, used=tuple(range(max((len(values) for values in runs.values()), default=0))), verdict=verdict,
    )  # fmt: skip
    if job.workload.kind == "service":
        told = told.model_copy(update={"model": None, "effective": None})
    return Entry(job=job, result=told, summary=summary, environment=environment({}), folder=Path())


def _workload(changes: Mapping[str, Any], cell: Mapping[str, Scalar]) -> ModelWorkload | ServiceWorkload:
    inside = {path.removeprefix("workload."): value for path, value in cell.items() if path.startswith("workload.")}
    if changes.get("kind") == "service":
        return ServiceWorkload(
            **({"kind": "service", "endpoint": "http://x", "driver": "http"} | inside | dict(changes))
        )
    return ModelWorkload(**({"kind": "model", "model": "zoo:mlp", "engine": "onnxruntime"} | inside | dict(changes)))


def side(name: str, *entries: Entry) -> Side:
    return Side(name, entries)


def changed(
    one: Entry, *, precision: str = "", sha256: str = "", hardware_id: str = "", kernel: str = "", **timed: str
) -> Entry:
    """Return the entry with something else behind it; `timed` is what its engine says of its times."""
    told = one.result
    if precision:
        told = told.model_copy(update={"effective": effective(precision)})
    if timed:
        told = told.model_copy(update={"effective": effective("fp32").model_copy(update=timed)})
    if sha256:
        told = told.model_copy(update={"model": model_facts({}).model_copy(update={"sha256": sha256})})
    device = one.environment.device
    if hardware_id:
        device = device.model_copy(update={"hardware_id": hardware_id})
    if kernel:
        device = device.model_copy(update={"software": device.software.model_copy(update={"kernel": kernel})})
    place = one.environment.model_copy(update={"device": device})
    return one.model_copy(update={"result": told, "environment": place})


def compare_metric(before: list[float], after: list[float], key: str = P50, **terms: object) -> Contrast:
    """Compare results whose history tells that they lie near to each other by themselves."""
    sides = [side("A", entry({key: before})), side("B", entry({key: after}, experiment="e2"))]
    found = compare_entries(sides, Terms.model_validate({"metrics": (key,), **terms}), earlier=alike(sides))
    (match,) = found.matches
    (contrast,) = match.contrasts
    return contrast


def many_headlines(count: int, *, runs: int, noise: float, factor: float, seed: int) -> Comparison:
    """Compare two experiments of so many jobs with one headline each; the middle one is changed by the factor."""
    rng = np.random.default_rng((seed, count))
    before, after = 10 * np.exp(rng.normal(0, noise, (2, count, runs)))
    after[count // 2] *= factor
    sides = [
        side(name, *(entry({P50: row.tolist()}, experiment=name, number=n, cell={"workload.threads": n})
                     for n, row in enumerate(values, start=1)))
        for name, values in (("A", before), ("B", after))
    ]  # fmt: skip
    return compare_entries(sides, Terms())
