from __future__ import annotations

from pathlib import Path

import pytest

from prony.model.experiment_data import ExperimentData
from report import experiments


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    """Two engines by two batch sizes; the last job is suspect."""
    return experiments.data(tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="session")
def partial(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    """One good job, one failed, one never run."""
    return experiments.partial_experiment(tmp_path_factory.mktemp("partial"))


@pytest.fixture
def empty() -> ExperimentData:
    return experiments.empty_experiment()


HOSTILE = "<script>alert(1)</script>\"'&|`=cmd()$x^2$ [a](b) \x00\x1b[31m\n| https://evil.example"


@pytest.fixture
def hostile(tmp_path: Path) -> ExperimentData:
    """Every text that a stranger could have chosen holds markup, a formula, a link and control characters."""
    made = experiments.partial_experiment(tmp_path)
    entries = []
    for entry in made.entries:
        job = entry.job.model_copy(update={"cell": {"workload.engine": HOSTILE, "labels.=x": f"=1+1{HOSTILE}"}})
        reasons = tuple(one.model_copy(update={"text": HOSTILE}) for one in entry.summary.verdict.reasons)
        verdict = entry.summary.verdict.model_copy(update={"reasons": reasons})
        summary = entry.summary.model_copy(update={"title": f"=1+1{HOSTILE}", "verdict": verdict})
        result = entry.result
        if result.failure is not None:
            result = result.model_copy(update={"failure": result.failure.model_copy(update={"message": HOSTILE})})
        if result.effective is not None:
            result = result.model_copy(update={"effective": result.effective.model_copy(update={"device": HOSTILE})})
        device = entry.environment.device.model_copy(update={"name": f"@{HOSTILE}"})
        environment = entry.environment.model_copy(update={"device": device})
        entries.append(
            entry.model_copy(update={"job": job, "summary": summary, "result": result, "environment": environment})
        )
    recipe = made.experiment.recipe.model_copy(update={"description": HOSTILE})
    update = {"name": HOSTILE, "recipe_text": f"````\n{HOSTILE}", "recipe": recipe}
    experiment = made.experiment.model_copy(update=update)
    return made.model_copy(update={"entries": tuple(entries), "experiment": experiment})
