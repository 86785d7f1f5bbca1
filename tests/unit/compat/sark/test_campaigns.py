"""A campaign as an experiment: its recipe, run again, makes the same combinations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from prony.app.fleet.submission import SubmissionPlan
from prony.compat.sark.face.campaigns import KIND, campaign_of, plan_campaign
from prony.errors import InputError
from prony.kinds.model.schema import ModelWorkload
from prony.recipe import loads
from prony.recipe.expand import expand

NOW = datetime(2026, 1, 2, tzinfo=UTC)
URL = "https://example.org/path/Tiny YOLO.v2.onnx?x=1"


def plan(*jobs: dict[str, Any], url: str = URL) -> SubmissionPlan:
    return plan_campaign(campaign_of({"model_url": url, "jobs": list(jobs)}, job_s=3600), "campaign-7", now=NOW)


def settings(made: SubmissionPlan) -> list[tuple[str, str, int | str]]:
    return [(job.work(ModelWorkload).engine, job.work(ModelWorkload).unit, job.measure.runs) for job in made.jobs]


def test_jobs_have_sarks_ids_and_the_experiment_the_campaigns() -> None:
    made = plan({}, {})
    assert made.experiment.id == "campaign-7"
    assert [job.id for job in made.jobs] == ["campaign-7-job-0", "campaign-7-job-1"]


@pytest.mark.parametrize(
    ("url", "name"),
    [(URL, "Tiny-YOLO.v2"), ("http://x/", "campaign"), ("http://x/.onnx", "campaign"), ("http://x/a/b", "b")],
)
def test_the_recipe_has_the_name_of_the_models_file(url: str, name: str) -> None:
    assert plan({}, url=url).experiment.name == name


def test_the_recipe_run_again_makes_each_combination_once() -> None:
    made = plan(
        {"compute_unit": "CPU (ONNX)"},
        {"compute_unit": "CPU (ONNX)"},
        {"compute_unit": "GPU (ONNX)", "num_inference_runs": 5},
        {"compute_unit": "GPU (CoreML)", "num_inference_runs": 5},
    )
    again = [
        (job.work(ModelWorkload).engine, job.work(ModelWorkload).unit, job.measure.runs)
        for job in expand(made.experiment.recipe, "x")
    ]
    assert sorted(again) == sorted(set(settings(made)))
    assert len(again) == 3


def test_the_recipes_text_is_the_recipe() -> None:
    made = plan({"compute_unit": "CPU (ONNX)"}, {"compute_unit": "DirectML (ONNX)"})
    assert loads(made.experiment.recipe_text, "yaml", "recipe.yaml").recipe == made.experiment.recipe


def test_only_workers_of_sark_fit_its_jobs() -> None:
    made = plan({"compute_unit": "GPU (ONNX)"}, {"worker_id": "worker-1"})
    wanted = [made.lots[job.id] for job in made.jobs]
    assert [lot.demand.kind for lot in wanted] == [KIND, KIND]
    assert [(lot.demand.engine, lot.agent_id) for lot in wanted] == [("GPU (ONNX)", None), (None, "worker-1")]


def test_jobs_that_wait_in_one_list_are_one_lot() -> None:
    made = plan({}, {"compute_unit": "GPU (ONNX)"}, {"num_inference_runs": 3}, {"worker_id": "w"}, {"worker_id": "w"})
    assert [made.lots[job.id].id[-1] for job in made.jobs] == ["0", "1", "0", "2", "2"]


def test_a_jobs_own_time_is_its_limit() -> None:
    made = plan({"timeout_seconds": 1.5}, {})
    assert [job.limits.timeout for job in made.jobs] == [1_500_000_000, 3600 * 10**9]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"worker_id": "../x"}, "Invalid worker_id in job 0"),
        ({"worker_id": 5}, "Invalid worker_id in job 0"),
        ({"timeout_seconds": 0}, "Invalid timeout_seconds in job 0"),
        ({"timeout_seconds": 1e-300}, "Invalid timeout_seconds in job 0"),
        ({"timeout_seconds": "1"}, "Invalid timeout_seconds in job 0"),
        ({"timeout_seconds": float("nan")}, "Invalid timeout_seconds in job 0"),
        ({"compute_unit": ["CPU (ONNX)"]}, "Invalid compute_unit in job 0"),
    ],
)
def test_what_is_wrong_with_a_job_is_named(job: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(job)


def test_combinations_that_nobody_asked_for_are_excluded_in_few_words() -> None:
    units = ("CPU (ONNX)", "GPU (ONNX)", "GPU (CoreML)")
    made = plan(*({"compute_unit": units[runs % 3], "num_inference_runs": runs} for runs in range(1, 31)))
    again = expand(made.experiment.recipe, "x")
    assert sorted(job.title for job in again) == sorted(job.title for job in made.jobs)
    # Of 2 engines x 3 units, those that are none; and of the others the runs that are another's.
    assert len(made.experiment.recipe.matrix.exclude) == 3 + 3 * 20


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([{}] * 5001, "5001 are more than the 5000 "),
        (
            [{"num_inference_runs": runs + 1} for runs in range(101)],
            "101 combinations of compute_unit, num_inference_runs and timeout_seconds are more than the 100 ",
        ),
        ([{"timeout_seconds": one + 1} for one in range(101)], "101 combinations of compute_unit, num_inference_runs"),
        (
            [{"worker_id": f"worker-{one}"} for one in range(1001)],
            "1001 combinations of compute_unit and worker_id are more than the 1000 ",
        ),
    ],
)
def test_a_campaign_has_a_largest_size_and_variety(jobs: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        plan(*jobs)
    assert caught.value.hint == "make several campaigns of it"


def test_a_campaign_may_be_as_large_as_that() -> None:
    made = plan(*({"num_inference_runs": n % 100 + 1, "worker_id": f"worker-{n % 1000}"} for n in range(5000)))
    assert len({job.id for job in made.jobs}) == 5000
    assert [job.measure.runs for job in made.jobs[98:102]] == [99, 100, 1, 2]
