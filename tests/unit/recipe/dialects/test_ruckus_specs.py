"""Experiments of RUCKUS as recipes: what each type of task becomes, who may run it, and what is told or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prony.dispatch.matching import demand_of, lacks
from prony.errors import RecipeError
from prony.model.agent import Fact
from prony.recipe import LoadedRecipe, load, loads

EXAMPLES = sorted((Path(__file__).parents[4] / "recipes" / "ruckus").glob("*.json"))
SERVER = {"endpoint": "http://127.0.0.1:8000", "max_tokens": 32, "temperature": 0}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
ASKED = {"prompt_template": {"messages": MESSAGES}}


def spec(kind: str = "llm_generation", params: Any = ASKED, **more: Any) -> dict[str, Any]:
    task = {"name": "a task", "type": kind, "params": params}
    framework = {"name": "transformers", "params": SERVER}
    metrics: dict[str, Any] = {"metrics": {}}
    return {"name": "An experiment", "model": "m", "task": task, "framework": framework, "metrics": metrics} | more


def read(document: dict[str, Any]) -> LoadedRecipe:
    return loads(json.dumps(document, indent=1), "json", "spec.json")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_read_as_a_spec(path: Path) -> None:
    found = load(path)
    assert found.dialect == "ruckus"
    assert found.jobs("x1")


def test_a_generation_asks_its_messages_of_a_server_that_runs() -> None:
    found = read(spec(runs_per_job=7))
    workload = found.recipe.workload.model_dump()
    assert workload["endpoint"] == "http://127.0.0.1:8000"
    assert (workload["driver"], workload["task"]) == ("openai-chat", "texts")
    assert workload["prompts"] == {"texts": ["Why?"], "system": "Be brief.", "output_tokens": "32"}
    assert workload["options"] == {"temperature": 0, "model": "m"}
    assert found.recipe.load.repeats == 7
    assert found.recipe.labels["ruckus_id"] == "exp_2bedc8"


def test_vllm_is_started_with_the_model() -> None:
    workload = read(spec(framework={"name": "vllm"})).recipe.workload.model_dump()
    assert (workload["service"], workload["settings"]) == ("vllm", {"model": "m"})


@pytest.mark.parametrize(
    ("kind", "params", "task", "prompts"),
    [
        ("summarization", {"max_articles": 5}, "summarize", {"articles": 5, "output_tokens": "40"}),
        ("llm_generation", ASKED, "texts", {"texts": ["Why?"], "system": "Be brief.", "output_tokens": "40"}),
    ],
)
def test_transformers_without_a_server_hosts_the_model(
    kind: str, params: Any, task: str, prompts: dict[str, Any]
) -> None:
    framework = {"name": "transformers", "params": {"max_tokens": 40, "temperature": 0.7}}
    found = read(spec(kind, params, framework=framework, runs_per_job=3))
    workload = found.recipe.workload.model_dump()
    assert (workload["kind"], workload["engine"], workload["model"]) == ("llm", "transformers", "m")
    assert (workload["task"], workload["prompts"]) == (task, prompts)
    assert found.recipe.measure.repeats == 3


def test_a_framework_that_is_no_server_is_refused_with_what_to_write() -> None:
    with pytest.raises(RecipeError) as told:
        read(spec(framework={"name": "tensorrt"}))
    assert "framework.params.endpoint" in told.value.hint


def test_summaries_are_the_task_that_scores_them() -> None:
    recipe = read(spec("wikipedia_summarization", {"max_articles": 5, "max_tokens": 40})).recipe
    workload = recipe.workload.model_dump()
    assert (workload["task"], recipe.load.requests) == ("summarize", 5)
    assert workload["prompts"] == {"articles": 5, "output_tokens": "40"}


@pytest.mark.parametrize(
    ("kind", "params", "tests"),
    [
        ("gpu_benchmark", {}, ["gpu-memory", "gpu-gemm"]),
        ("gpu_benchmark", {"test_memory_bandwidth": False}, ["gpu-gemm"]),
        ("memory_benchmark", {"test_sizes_mb": [64, 128]}, ["cpu-memory", "cpu-memory"]),
        ("compute_benchmark", {"precision_types": ["fp32"], "matrix_sizes": [512]}, ["cpu-gemm"]),
    ],
)
def test_benchmarks_are_tests_of_hardware(kind: str, params: dict[str, Any], tests: list[str]) -> None:
    jobs = read(spec(kind, params)).jobs("x1")
    assert [job.workload.model_dump()["test"] for job in jobs] == tests


def test_requirements_of_a_spec_are_facts_that_a_device_must_have() -> None:
    wanted = {
        "required_capabilities": ["gpu_monitoring", "memory_monitoring"],
        "gpu_requirements": {
            "min_gpu_count": 8, "min_memory_mb": 40960, "required_vendors": ["nvidia"],
            "required_precision_types": ["fp16", "fp8"], "min_tensor_core_generation": "4th_gen",
        },
        "model_requirements": {"required_frameworks": ["vllm"], "min_gpu_memory_gb": 60},
        "system_requirements": {"min_total_memory_gb": 64, "required_os_types": ["Linux"], "min_cpu_cores": 8},
        "timeout_seconds": 90,
    }  # fmt: skip
    found = read(spec(capability_requirements=wanted))
    assert found.recipe.place.where == {
        "gpu.count": ">=8", "gpu.memory_gib": ">=60", "gpu.vendor": ["nvidia"], "gpu.precision": "fp8",
        "gpu.compute_capability": ">=8.9", "memory_gib": ">=64", "os": ["linux"], "cpu.cores": ">=8",
        "service.vllm": "*", "probe": "nvidia",
    }  # fmt: skip
    assert found.recipe.limits.timeout == 90 * 10**9
    demand = demand_of(found.jobs("x1")[0], found.recipe.place)
    small: dict[str, Fact] = {
        "kinds": ("service",), "os": "linux", "cpu.cores": 8, "memory_gib": 64, "gpu.count": 0, "probe": ("host",),
    }  # fmt: skip
    lacking = {one.fact for one in lacks(demand, small)}
    assert {"gpu.count", "gpu.memory_gib", "service.vllm", "probe"} <= lacking
    assert not {"os", "cpu.cores", "memory_gib"} & lacking


def test_a_capability_that_nobody_knows_is_a_label_that_an_owner_gives() -> None:
    found = read(spec(capability_requirements={"required_capabilities": ["video_wall"]}))
    assert found.recipe.place.where == {"label.video_wall": "*"}


def test_more_than_100_runs_are_refused_with_their_line() -> None:
    with pytest.raises(RecipeError, match="runs_per_job"):
        read(spec(runs_per_job=100_000))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"runs": 3}, "write runs_per_job"),
        ({"task": {"name": "t", "type": "llm_generation", "params": {}}}, "prompt_template"),
        ({"task": {"name": "t", "type": "dancing", "params": {}}}, "task.type"),
    ],
)
def test_what_is_wrong_is_told_by_the_specs_own_words(change: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError) as told:
        read(spec() | change)
    assert said in f"{told.value.message} {told.value.hint}"
