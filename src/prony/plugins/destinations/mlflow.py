"""Destination for MLflow, by its REST API: an experiment for each recipe, a run for each job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

from prony.model.experiment import Experiment
from prony.model.result import ResultState
from prony.plugins.destinations.web_api import WebApi, check_destination_url
from prony.ports.destination import ExportedJob

T = TypeVar("T")
_JOB_TAG = "prony.job"
# What one request of `log-batch` may hold.
_MOST_METRICS, _MOST_OTHERS = 500, 100
_LONGEST_TAG, _LONGEST_PARAM = 4000, 6000
_NOT_FOUND, _EXISTS = frozenset({404}), frozenset({400})
_PROXIED = "mlflow-artifacts:"


class Mlflow:
    """Recipes become experiments, jobs become runs. A job that was sent before keeps its run."""

    def __init__(self, url: str) -> None:
        self._url = check_destination_url(url, "MLflow")

    def send(self, experiment: Experiment, jobs: Iterable[ExportedJob]) -> str:
        with WebApi(self._url, "MLflow", key_scheme="Bearer") as api:
            place = _MlflowExperiment(api, experiment.name)
            for job in jobs:
                place.send(experiment, job)
            return f"{api.base}/#/experiments/{place.id}"


class _MlflowExperiment:
    def __init__(self, api: WebApi, name: str) -> None:
        self._api = api
        self.id = self._find(name) or self._create(name)

    def _find(self, name: str) -> str | None:
        path = "api/2.0/mlflow/experiments/get-by-name"
        found = self._api.ask("GET", path, params={"experiment_name": name}, expected=_NOT_FOUND)
        return None if found.status_code == 404 else str(found.json()["experiment"]["experiment_id"])

    def _create(self, name: str) -> str:
        found = self._api.ask("POST", "api/2.0/mlflow/experiments/create", json={"name": name}, expected=_EXISTS)
        if found.status_code == 400:  # another server was quicker
            return self._find(name) or ""
        return str(found.json()["experiment_id"])

    def send(self, experiment: Experiment, job: ExportedJob) -> None:
        """Make the run of a job what its result says."""
        run = self._run_of(job)
        run_id = run["info"]["run_id"]
        for body in _batches(experiment, job):
            self._api.ask("POST", "api/2.0/mlflow/runs/log-batch", json={"run_id": run_id, **body})
        self._keep_log(run["info"]["artifact_uri"], job)
        result = job.entry.result
        status = "FINISHED" if result.state is ResultState.COMPLETE else "FAILED"
        ended = {"run_id": run_id, "status": status, "end_time": _ms(result.ended_at or result.started_at)}
        self._api.ask("POST", "api/2.0/mlflow/runs/update", json=ended)

    def _run_of(self, job: ExportedJob) -> dict[str, Any]:
        found = self._search(job.entry.job.id)
        if found is not None:
            return found
        body = {
            "experiment_id": self.id,
            "run_name": job.entry.job.title,
            "start_time": _ms(job.entry.result.started_at),
            "tags": [{"key": _JOB_TAG, "value": job.entry.job.id}],
        }
        made: dict[str, Any] = self._api.ask("POST", "api/2.0/mlflow/runs/create", json=body).json()["run"]
        return made

    def _search(self, job_id: str) -> dict[str, Any] | None:
        asked = {"experiment_ids": [self.id], "filter": f"tags.`{_JOB_TAG}` = '{job_id}'", "max_results": 1}
        found = self._api.ask("POST", "api/2.0/mlflow/runs/search", json=asked).json().get("runs", [])
        return found[0] if found else None

    def _keep_log(self, artifacts: str, job: ExportedJob) -> None:
        """Keep the log as an artifact, where MLflow takes artifacts itself: other stores are not reached by it."""
        if job.log and artifacts.startswith(_PROXIED):
            path = quote(artifacts.removeprefix(_PROXIED).strip("/"))
            self._api.ask(
                "PUT", f"api/2.0/mlflow-artifacts/artifacts/{path}/job.log", content=job.log.encode(),
                headers={"Content-Type": "text/plain; charset=utf-8"},
            )  # fmt: skip


def _batches(experiment: Experiment, job: ExportedJob) -> Iterator[dict[str, Any]]:
    """Yield what is logged, in pieces that MLflow takes."""
    for metrics in _cut(list(_metrics(job)), _MOST_METRICS):
        yield {"metrics": metrics}
    params = {**job.entry.job.cell, "kind": job.entry.job.workload.kind, "device": job.entry.environment.device.name}
    for some in _cut([_pair(key, value, _LONGEST_PARAM) for key, value in params.items()], _MOST_OTHERS):
        yield {"params": some}
    for some in _cut([_pair(key, value, _LONGEST_TAG) for key, value in _tags(experiment, job)], _MOST_OTHERS):
        yield {"tags": some}


def _metrics(job: ExportedJob) -> Iterator[dict[str, Any]]:
    """Yield every number, with the ends of its interval under names of their own."""
    at = _ms(job.entry.result.ended_at or job.entry.result.started_at)
    for key, estimate in job.estimates.items():
        for name, value in ((key, estimate.value), (f"{key}.low", estimate.low), (f"{key}.high", estimate.high)):
            if value is not None:
                yield {"key": name, "value": value, "timestamp": at, "step": 0}


def _tags(experiment: Experiment, job: ExportedJob) -> Iterator[tuple[str, object]]:
    entry = job.entry
    yield "prony.experiment", experiment.id
    yield "prony.state", entry.result.state.value
    yield "prony.verdict", entry.summary.verdict.grade.value
    yield "prony.reasons", "; ".join(reason.text for reason in entry.summary.verdict.reasons)
    if entry.result.failure is not None:
        yield "prony.failure", f"{entry.result.failure.code}: {entry.result.failure.message}"
    if entry.job.git is not None:
        yield "mlflow.source.git.commit", entry.job.git.commit
    for name, value in {**entry.environment.labels, **entry.job.labels}.items():
        yield f"prony.label.{name}", value


def _pair(key: str, value: object, longest: int) -> dict[str, str]:
    return {"key": key, "value": str(value)[:longest]}


def _cut(things: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for begin in range(0, len(things), most):
        yield things[begin : begin + most]


def _ms(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)
