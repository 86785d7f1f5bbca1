"""Nouns as a server would send them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prony.model.agent import Agent, AgentState
from prony.model.experiment import Experiment, ExperimentState
from prony.model.queue import ExperimentView, JobState, QueuedJob
from prony.recipe import loads

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RECIPE = """
name: small
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
matrix: {workload.engine: [onnxruntime, openvino]}
"""


def view(identity: str = "e1", state: str = "running", **counts: int) -> ExperimentView:
    experiment = Experiment(
        id=identity,
        name="small",
        recipe=loads(RECIPE, name="small.yaml").recipe,
        recipe_text=RECIPE,
        state=ExperimentState(state),
        created_at=AT,
        job_count=2,
    )
    return ExperimentView(experiment=experiment, counts={JobState(key): value for key, value in counts.items()})


def job(identity: str = "e1-001", state: str = "waiting", **more: Any) -> QueuedJob:
    known = {"experiment_id": "e1", "title": "engine=onnxruntime", "priority": 0, "attempt": 1, "created_at": AT}
    return QueuedJob.model_validate({"id": identity, "state": state} | known | more)


def agent(identity: str = "a1", name: str = "lab-1", state: str = "active", **more: Any) -> Agent:
    known = {"device_key": "k", "incarnation": "i", "created_at": AT, "seen_at": AT}
    return Agent.model_validate({"id": identity, "name": name, "state": AgentState(state)} | known | more)


def snapshot(experiment: ExperimentView, *jobs: QueuedJob) -> str:
    inside = ",".join(one.model_dump_json() for one in jobs)
    return f'{{"experiment":{experiment.model_dump_json()},"jobs":[{inside}]}}'


def page(*items: Any, following: str | None = None) -> dict[str, Any]:
    return {"items": [item.model_dump(mode="json") for item in items], "next": following}
