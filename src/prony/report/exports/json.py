"""Write an experiment as JSON: every number with its unit, interval, count, method and verdict."""

from __future__ import annotations

import json
import math
from typing import Any

from prony.model.estimate import Estimate, Summary, Verdict, verdict_on
from prony.model.experiment_data import AnalysedExperiment, Entry, ExperimentData
from prony.model.metric import METRICS, key_of
from prony.ports.workload import shown_kind
from prony.report.findings import findings
from prony.report.method_sentences import decision_sentences

# Raised when a key changes its meaning or goes away; new keys may appear at any time.
VERSION = 1


def render(data: ExperimentData) -> str:
    """Return the document; what is not a finite number is null, because JSON has no other word for it."""
    analysis = AnalysedExperiment.of(data)
    document = {
        "kind": "prony.report",
        "version": VERSION,
        "experiment": _experiment(data),
        "findings": findings(data),
        "gates": [one.model_dump(mode="json") for one in data.gates],
        "sweep": None if data.sweep is None else data.sweep.model_dump(mode="json"),
        "comparison": None if analysis.comparison is None else analysis.comparison.model_dump(mode="json"),
        "histories": [one.model_dump(mode="json") for one in analysis.histories],
        "matrix": None if analysis.matrix is None else analysis.matrix.model_dump(mode="json"),
        "worths": {job: [one.model_dump(mode="json") for one in worths] for job, worths in analysis.worths.items()},
        "methods": decision_sentences(analysis),
        "jobs": [_job(entry) for entry in data.entries],
        "calibration": _calibration(data),
    }
    return json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _experiment(data: ExperimentData) -> dict[str, Any]:
    return data.experiment.model_dump(mode="json", exclude={"recipe_text", "base"})


def _job(entry: Entry) -> dict[str, Any]:
    result, summary = entry.result, entry.summary
    shown = shown_kind(entry.job.workload.kind).report
    told = summary.model_dump(
        mode="json",
        include={
            "title",
            "cell",
            "outlier_count",
            "used",
            "steady_from",
            "excluded",
            "runs",
            "counts",
            "sensitivity",
            "metrics",
            "headline",
        },
    )
    return told | {
        "job_id": entry.job.id,
        "workload": entry.job.workload.model_dump(mode="json"),
        "state": str(result.state),
        "verdict": summary.verdict.model_dump(mode="json"),
        "ended_early": entry.ended_early,
        "placement": None if result.placement is None else result.placement.model_dump(mode="json"),
        "estimates": {key: _number(one, verdict_on(summary, key)) for key, one in summary.estimates.items()},
        "missing": [one.model_dump(mode="json") | {"unit": _unit(summary, one.metric)} for one in summary.missing],
        "outliers": [one.model_dump(mode="json") | {"unit": _unit(summary, one.metric)} for one in summary.outliers],
        "spread": {
            key: one.model_dump(mode="json") | {"unit": _unit(summary, key)} for key, one in summary.spread.items()
        },
        "result": result.model_dump(mode="json", exclude={"job_id", "experiment_id", "state"}),
        "sections": [one.model_dump(mode="json") for one in shown.sections(entry)],
        "curves": [one.model_dump(mode="json") for one in shown.curves(entry)],
        "environment": entry.environment.model_dump(mode="json"),
    }


def _number(estimate: Estimate, verdict: Verdict) -> dict[str, Any]:
    return estimate.model_dump(mode="json") | {"verdict": str(verdict.grade)}


def _unit(summary: Summary, key: str) -> str | None:
    name = key_of(key).metric
    metric = summary.metrics.get(name) or METRICS.get(name)
    return None if metric is None else metric.unit


def _calibration(data: ExperimentData) -> dict[str, Any] | None:
    return None if data.calibration is None else data.calibration.model_dump(mode="json")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
