"""Translate capability requirements into facts that a device must have: nobody else is given the job."""

from __future__ import annotations

from prony.compat.ruckus.experiment_spec import (
    CapabilityRequirements,
    GpuRequirements,
    ModelRequirements,
    SystemRequirements,
)
from prony.recipe.dialects.translated_document import Draft
from prony.recipe.positions import Keys

_PLACE = "capability_requirements"
# From the rarest on: a card that has one has those after it.
_RARE_FIRST = ("fp8", "bf16", "tf32", "int8", "fp16", "fp64", "fp32")
# The compute capability from which a card has tensor cores of a generation.
_GENERATIONS = {"none": None, "1st_gen": "7.0", "2nd_gen": "7.5", "3rd_gen": "8.0", "4th_gen": "8.9"}
_FRAMEWORKS = {
    "pytorch": "package.torch", "transformers": "package.transformers", "vllm": "service.vllm",
    "onnx": "engine.onnxruntime",
}  # fmt: skip
# What every device has here, and what one more fact tells.
_ALWAYS = frozenset(("memory_monitoring", "model_loading", "tokenization"))
_MONITORED = ("gpu_utilization", "gpu_memory", "gpu_temperature", "gpu_power", "power", "energy", "memory_bandwidth")


def place_job(draft: Draft, found: CapabilityRequirements) -> None:
    """Set `place.where` and `limits.timeout`."""
    where: dict[str, object] = {}
    if found.gpu_requirements is not None:
        where |= _gpu_facts(draft, found.gpu_requirements)
    if found.system_requirements is not None:
        where |= _system_facts(found.system_requirements)
    if found.model_requirements is not None:
        where = _model_facts(draft, found.model_requirements, where)
    where |= _capability_facts(found)
    for name in found.optional_metrics:
        draft.note((_PLACE, "optional_metrics"), f"{name} is measured if possible, and not required")
    if where:
        draft.set("place.where", where, (_PLACE,))
    draft.set("limits.timeout", f"{max(1, round(found.timeout_seconds))}s", (_PLACE, "timeout_seconds"))


def _gpu_facts(draft: Draft, wanted: GpuRequirements) -> dict[str, object]:
    place: Keys = (_PLACE, "gpu_requirements")
    found: dict[str, object] = {"gpu.count": f">={wanted.min_gpu_count}"}
    if wanted.min_memory_mb:
        found["gpu.memory_gib"] = f">={_gib(wanted.min_memory_mb / 1024)}"
    if wanted.required_vendors:
        found["gpu.vendor"] = list(wanted.required_vendors)
    formats = sorted(set(wanted.required_precision_types), key=_RARE_FIRST.index)
    if formats:
        found["gpu.precision"] = formats[0]
    if len(formats) > 1:
        said = f"only {formats[0]} is required: a card that has it also has {', '.join(formats[1:])}"
        draft.note((*place, "required_precision_types"), said)
    least = _GENERATIONS[wanted.min_tensor_core_generation or ("1st_gen" if wanted.tensor_cores_required else "none")]
    if least is not None:
        found["gpu.compute_capability"] = f">={least}"
    return found


def _system_facts(wanted: SystemRequirements) -> dict[str, object]:
    found: dict[str, object] = {}
    if wanted.min_total_memory_gb:
        found["memory_gib"] = f">={_gib(wanted.min_total_memory_gb)}"
    if wanted.required_os_types:
        found["os"] = [one.lower() for one in wanted.required_os_types]
    if wanted.required_cpu_architectures:
        found["arch"] = list(wanted.required_cpu_architectures)
    if wanted.min_cpu_cores is not None:
        found["cpu.cores"] = f">={wanted.min_cpu_cores}"
    return found


def _model_facts(draft: Draft, wanted: ModelRequirements, where: dict[str, object]) -> dict[str, object]:
    place: Keys = (_PLACE, "model_requirements")
    found = dict(where)
    for name in wanted.required_frameworks:
        found[_FRAMEWORKS.get(name, f"label.{name}")] = "*"
    if wanted.min_gpu_memory_gb:
        known = float(str(found.get("gpu.memory_gib", ">=0")).removeprefix(">="))
        found["gpu.memory_gib"] = f">={_gib(max(known, wanted.min_gpu_memory_gb))}"
    if wanted.model_architectures:
        draft.note(
            (*place, "model_architectures"),
            "is not checked in advance: the framework reports it when it loads the model",
        )
    return found


def _capability_facts(found: CapabilityRequirements) -> dict[str, object]:
    """Return what the named capabilities and metrics need; one that nobody knows is a label that an owner gives."""
    where: dict[str, object] = {}
    for name in found.required_capabilities:
        if name == "gpu_monitoring":
            where |= {"gpu.count": ">=1", "probe": "nvidia"} if found.gpu_requirements is None else {"probe": "nvidia"}
        elif name not in _ALWAYS:
            where[f"label.{name}"] = "*"
    if any(name.startswith(_MONITORED) for name in found.required_metrics):
        where["probe"] = "nvidia"
    return where


def _gib(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
