"""Translate an ExperimentSpec of RUCKUS into the recipe of what it asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from prony.compat.ruckus.experiment_spec import (
    ComputeParams,
    ExperimentSpec,
    GpuParams,
    LlmParams,
    MemoryParams,
    SummarizationParams,
    spec_id,
)
from prony.compat.ruckus.requirements import place_job
from prony.recipe.dialects.translated_document import Draft, Translation, read_strictly
from prony.recipe.positions import Keys, Parsed

_HINTS = {"runs": "write runs_per_job", "capabilities": "write capability_requirements"}
_ONCE = "it runs once; with more runs numbers have intervals (runs_per_job, up to 100)"
_PARAMS: Keys = ("task", "params")
_TENSOR = ["bf16", "fp16", "fp8", "int8"]
# What a request takes, by the name that a framework's parameter has.
_ANSWER_TOKENS = ("max_tokens", "max_new_tokens")


class RuckusDialect:
    """Experiments of RUCKUS."""

    title: ClassVar[str] = "a RUCKUS experiment"
    keeps_folder_name: ClassVar[bool] = False

    def fits(self, document: Mapping[str, Any]) -> bool:
        return {"task", "framework"} <= document.keys() and bool({"model", "metrics"} & document.keys())

    def translate(self, parsed: Parsed) -> Translation:
        found = read_strictly(ExperimentSpec, parsed, _HINTS, self.title)
        draft = Draft(parsed)
        draft.set("name", re.sub(r"[^A-Za-z0-9._-]+", "-", found.name).strip("-._")[:100] or "experiment", ("name",))
        if found.description:
            draft.set("description", " ".join(found.description.split()), ("description",))
        draft.set("labels", {"ruckus_id": spec_id(found.name), "task": found.task.name}, ("task", "name"))
        _TASKS[found.task.type](draft, found)
        section = "load" if draft.document.get("workload", {}).get("kind") == "service" else "measure"
        draft.set(f"{section}.repeats", found.runs_per_job or 1, ("runs_per_job",) if found.runs_per_job else ())
        if (found.runs_per_job or 1) == 1:
            draft.note((), _ONCE)
        if found.capability_requirements is not None:
            place_job(draft, found.capability_requirements)
        else:
            draft.note((), "no capability_requirements: any device that can run it may run it")
        return draft.translation()


def _generate(draft: Draft, spec: ExperimentSpec) -> None:
    params = draft.read(LlmParams, spec.task.params or {}, _PARAMS)
    if params is None:
        return
    template, place = params.prompt_template, (*_PARAMS, "prompt_template", "messages")
    users = [one.content for one in template.messages if one.role == "user"]
    if not users:
        draft.refuse(place, "there is no message with the role user, so there is no prompt")
        return
    if len(template.messages) - len(users) > 1 or len(users) > 1:
        draft.note(place, "earlier messages are put before the user's last one, as one text")
    system = [one.content for one in template.messages if one.role == "system"]
    prompts: dict[str, Any] = {"texts": ["\n\n".join(users)]}
    if system:
        prompts["system"] = "\n\n".join(system)
    draft.set("workload.task", "texts", place)
    if _is_hosted(spec):
        _host(draft, spec, prompts)
        draft.set("workload.passes", 1)
        if template.extra_body:
            draft.note((*_PARAMS, "prompt_template", "extra_body"), "is not passed on: it is for a server")
        return
    _serve(draft, spec, prompts, template.extra_body or {})
    draft.set("load", {"closed": {"concurrency": 1}, "requests": 1, "warmup": "none"})


def _summarize(draft: Draft, spec: ExperimentSpec) -> None:
    params = draft.read(SummarizationParams, spec.task.params or {}, _PARAMS)
    if params is None:
        return
    names = {"prompt": params.prompt_template, "articles": params.max_articles, "file": params.data_path}
    prompts: dict[str, Any] = {name: value for name, value in names.items() if value is not None}
    if params.max_tokens is not None:
        prompts["output_tokens"] = str(params.max_tokens)
    draft.set("workload.task", "summarize", ("task", "type"))
    if params.data_path is None:
        draft.note(("task", "type"), "the articles are Prony's own 36, not Wikipedia's; data_path names others")
    if _is_hosted(spec):
        _host(draft, spec, prompts)
        return
    _serve(draft, spec, prompts, {})
    load = {"closed": {"concurrency": 1}, "warmup": "none", "requests": params.max_articles or 36}
    draft.set("load", load, ("task", "type"))


def _is_hosted(spec: ExperimentSpec) -> bool:
    """Is the model hosted by an engine, because the framework is one and no server is named?"""
    return spec.framework.name == "transformers" and "endpoint" not in (spec.framework.params or {})


def _host(draft: Draft, spec: ExperimentSpec, prompts: dict[str, Any]) -> None:
    """Say which engine answers, in a process of its own."""
    params = dict(spec.framework.params or {})
    tokens = next((params.pop(name) for name in _ANSWER_TOKENS if name in params), None)
    if tokens is not None:
        prompts.setdefault("output_tokens", str(tokens))
    if params.pop("temperature", 0):
        draft.note(("framework", "params", "temperature"), "is ignored: an engine answers greedily")
    draft.set("workload.kind", "llm", ("task", "type"))
    draft.set("workload.engine", "transformers", ("framework", "name"))
    draft.set("workload.model", spec.model, ("model",))
    if _wants_gpu(spec):
        draft.set("workload.unit", "cuda", ("capability_requirements",))
    draft.set("workload.prompts", prompts, _PARAMS)
    for name in params:
        draft.note(("framework", "params", name), "is not passed on: write a recipe of kind llm with options")


def _serve(draft: Draft, spec: ExperimentSpec, prompts: dict[str, Any], extra: dict[str, Any]) -> None:
    """Say which server answers: one that runs already, or one that is started."""
    params = dict(spec.framework.params or {})
    place: Keys = ("framework", "params")
    endpoint = params.pop("endpoint", None)
    tokens = next((params.pop(name) for name in _ANSWER_TOKENS if name in params), None)
    if tokens is not None:
        prompts.setdefault("output_tokens", str(tokens))  # what the task says goes first
    options: dict[str, Any] = {"temperature": params.pop("temperature")} if "temperature" in params else {}
    options |= {"extra": extra} if extra else {}
    draft.set("workload.kind", "service", ("task", "type"))
    draft.set("workload.driver", "openai-chat", ("framework", "name"))
    draft.set("workload.prompts", prompts, _PARAMS)
    if endpoint is not None:
        draft.set("workload.endpoint", endpoint, (*place, "endpoint"))
        options["model"] = spec.model
    elif spec.framework.name == "vllm":
        draft.set("workload.service", "vllm", ("framework", "name"))
        draft.set("workload.settings", {"model": spec.model}, ("model",))
    else:
        draft.refuse(
            ("framework", "name"), f"{spec.framework.name} is not a server that Prony can start for a spec",
            "write vllm, or framework.params.endpoint: the URL of a server that runs already",
        )  # fmt: skip
    if options:
        draft.set("workload.options", options, place)
    for name in params:
        draft.note((*place, name), "is not passed on: write a recipe of kind service with settings.arguments")


def _measure_gpu(draft: Draft, spec: ExperimentSpec) -> None:
    params = draft.read(GpuParams, spec.task.params or {}, _PARAMS)
    if params is None:
        return
    tests = ["gpu-memory"] * params.test_memory_bandwidth
    tests += ["gpu-gemm"] * (params.test_compute_flops or params.test_tensor_cores)
    if not tests:
        draft.refuse(_PARAMS, "every test is turned off: set test_memory_bandwidth or test_compute_flops to true")
        return
    _hardware(draft, spec, tests)
    if params.test_tensor_cores and not params.test_compute_flops:
        draft.set("workload.precisions", _TENSOR, (*_PARAMS, "test_tensor_cores"))
    draft.note(_PARAMS, "is ignored: Prony sets the duration and the memory of a test (`prony docs hardware`)")


def _measure_memory(draft: Draft, spec: ExperimentSpec) -> None:
    params = draft.read(MemoryParams, spec.task.params or {}, _PARAMS)
    if params is None:
        return
    _hardware(draft, spec, ["gpu-memory" if _wants_gpu(spec) else "cpu-memory"])
    sizes = [f"{size}MiB" for size in params.test_sizes_mb]
    draft.set("matrix", {"workload.size": sizes}, (*_PARAMS, "test_sizes_mb"))
    if "random" in params.test_patterns:
        draft.note((*_PARAMS, "test_patterns"), "memory is read and written in order; there is no random pattern")


def _measure_products(draft: Draft, spec: ExperimentSpec) -> None:
    params = draft.read(ComputeParams, spec.task.params or {}, _PARAMS)
    if params is None:
        return
    _hardware(draft, spec, ["gpu-gemm" if _wants_gpu(spec) else "cpu-gemm"])
    draft.set("workload.shapes", "model", (*_PARAMS, "matrix_sizes"))
    draft.set("workload.layers", [f"{n}x{n}x{n}" for n in params.matrix_sizes], (*_PARAMS, "matrix_sizes"))
    draft.set("workload.precisions", list(params.precision_types), (*_PARAMS, "precision_types"))
    if not _wants_gpu(spec) and set(params.precision_types) - {"fp32", "fp64"}:
        draft.set("workload.library", "torch", (*_PARAMS, "precision_types"))


def _hardware(draft: Draft, spec: ExperimentSpec, tests: list[str]) -> None:
    draft.set("workload.kind", "hardware", ("task", "type"))
    draft.set("workload.test", tests[0], ("task", "type"))
    if len(tests) > 1:
        draft.set("matrix", {"workload.test": tests}, _PARAMS)
    draft.note(("model",), f"{spec.model} is not run: the hardware itself is measured")
    draft.note(("framework", "name"), "is ignored: Prony's own tests measure the hardware")


def _wants_gpu(spec: ExperimentSpec) -> bool:
    wanted = spec.capability_requirements
    return wanted is not None and wanted.gpu_requirements is not None


_TASKS: dict[str, Callable[[Draft, ExperimentSpec], None]] = {
    "llm_generation": _generate,
    "summarization": _summarize,
    "wikipedia_summarization": _summarize,
    "gpu_benchmark": _measure_gpu,
    "memory_benchmark": _measure_memory,
    "compute_benchmark": _measure_products,
}
