"""An ExperimentSpec of RUCKUS as a person wrote it, with the number of runs that its jobs had."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

from pydantic import Field

from prony.model.base import Noun

Text = Annotated[str, Field(min_length=1)]
Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8"]
Generation = Literal["1st_gen", "2nd_gen", "3rd_gen", "4th_gen", "none"]
TaskType = Literal[
    "llm_generation", "gpu_benchmark", "memory_benchmark", "compute_benchmark", "summarization",
    "wikipedia_summarization",
]  # fmt: skip


class Message(Noun):
    role: Literal["system", "user", "assistant"] = Field(description="who wrote the message")
    content: Text = Field(description="text of the message")


class PromptTemplate(Noun):
    messages: Annotated[tuple[Message, ...], Field(min_length=1)] = Field(description="messages to the model")
    extra_body: dict[str, Any] | None = Field(default=None, description="more fields of the request")


class LlmParams(Noun):
    prompt_template: PromptTemplate = Field(description="messages, the last one of the user")


class GpuParams(Noun):
    test_memory_bandwidth: bool = Field(default=True, description="measure the memory")
    test_compute_flops: bool = Field(default=True, description="measure matrix products")
    test_tensor_cores: bool = Field(default=False, description="measure products in the formats of tensor cores")
    max_memory_usage_percent: float = Field(default=80, ge=10, le=95, description="largest share of the card's memory")
    benchmark_duration_seconds: float = Field(default=30, ge=5, le=300, description="length of the test")


class MemoryParams(Noun):
    test_sizes_mb: Annotated[tuple[int, ...], Field(min_length=1)] = Field(default=(64, 256, 1024), description="sizes")
    test_patterns: tuple[Text, ...] = Field(
        default=("sequential", "random"), description="order in which memory is read and written"
    )
    iterations_per_size: int = Field(default=10, ge=1, le=100, description="repetitions of each size")


class ComputeParams(Noun):
    precision_types: Annotated[tuple[Precision, ...], Field(min_length=1)] = Field(
        default=("fp32", "fp16"), description="formats"
    )
    matrix_sizes: Annotated[tuple[int, ...], Field(min_length=1)] = Field(
        default=(1024, 2048, 4096), description="squares"
    )
    include_tensor_ops: bool = Field(default=True, description="let tensor cores compute")


class SummarizationParams(Noun):
    prompt_template: str | None = Field(
        default=None, min_length=1, description="the prompt; {article} is replaced by the text"
    )
    max_articles: int | None = Field(default=None, ge=1, description="use only the first N")
    max_tokens: int | None = Field(default=None, ge=1, description="most tokens of a summary")
    data_path: str | None = Field(default=None, min_length=1, description="a file of articles and summaries")


class TaskSpec(Noun):
    name: Text = Field(description="name of the task")
    type: TaskType = Field(description="kind of task")
    description: str | None = Field(default=None, description="description for people")
    params: dict[str, Any] | None = Field(default=None, description="settings of this type of task")


class FrameworkSpec(Noun):
    name: Literal["pytorch", "transformers", "vllm", "tensorrt", "onnx", "triton", "unknown"] = Field(
        description="what runs the model"
    )
    params: dict[str, Any] | None = Field(
        default=None, description="max_tokens, temperature, endpoint (a server that runs already), arguments"
    )


class MetricsSpec(Noun):
    metrics: dict[str, Any] = Field(description="the kind of each metric, by its name")


class GpuRequirements(Noun):
    min_gpu_count: int = Field(default=1, ge=1, description="fewest GPUs")
    min_memory_mb: float | None = Field(default=None, ge=0, description="memory of each GPU")
    required_vendors: tuple[Literal["nvidia", "amd", "intel", "apple", "unknown"], ...] = ()
    required_precision_types: tuple[Precision, ...] = ()
    tensor_cores_required: bool = False
    min_tensor_core_generation: Generation | None = None


class ModelRequirements(Noun):
    required_frameworks: tuple[Text, ...] = ()
    model_architectures: tuple[Text, ...] = ()
    min_gpu_memory_gb: float | None = Field(default=None, ge=0, description="memory of a GPU")
    tokenization_required: bool = True
    streaming_support: bool = False


class SystemRequirements(Noun):
    min_total_memory_gb: float | None = Field(default=None, ge=0, description="memory of the machine")
    required_os_types: tuple[Literal["Linux", "Windows", "Darwin", "Unknown"], ...] = ()
    required_cpu_architectures: tuple[Text, ...] = ()
    min_cpu_cores: int | None = Field(default=None, ge=1, description="fewest physical cores")


class CapabilityRequirements(Noun):
    required_capabilities: tuple[Text, ...] = ()
    required_metrics: tuple[Text, ...] = ()
    optional_metrics: tuple[Text, ...] = ()
    gpu_requirements: GpuRequirements | None = None
    model_requirements: ModelRequirements | None = None
    system_requirements: SystemRequirements | None = None
    timeout_seconds: float = Field(default=3600, gt=0, description="time limit of a job")


class ExperimentSpec(Noun):
    """`runs_per_job` stood in the request for a job there; here it may stand in the spec."""

    name: Text = Field(description="name of the experiment")
    description: str | None = Field(default=None, description="description for people")
    model: Text = Field(description="a name on Hugging Face, or a folder", examples=["HuggingFaceTB/SmolLM2-135M"])
    task: TaskSpec = Field(description="the task")
    framework: FrameworkSpec = Field(description="what runs the model")
    metrics: MetricsSpec = Field(description="what is measured")
    capability_requirements: CapabilityRequirements | None = Field(
        default=None, description="what a device must have to run it"
    )
    runs_per_job: int | None = Field(default=None, ge=1, le=100, description="number of runs, 1 to 100")
    id: str | None = Field(default=None, description="made from the name; a value here is ignored")
    created_at: str | None = None
    updated_at: str | None = None


def spec_id(name: str) -> str:
    """Return the id that RUCKUS gives an experiment of this name."""
    return f"exp_{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:6]}"
