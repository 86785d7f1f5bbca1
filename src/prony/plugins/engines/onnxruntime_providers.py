"""Execution providers of ONNX Runtime: compute units, options, and the share of nodes that each one ran."""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.errors import InputError

Scalar = str | int | float | bool
PROVIDER_PREFIX = "provider."
# Configuration entries that ONNX Runtime takes by name; it ignores the ones that it does not know.
_ENTRY_PREFIXES = ("session.", "optimization.", "mlas.", "memory.", "ep.")
_LEVELS = {
    "disable": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT",
    "all": "ORT_ENABLE_ALL",
}
_MODES = {"sequential": "ORT_SEQUENTIAL", "parallel": "ORT_PARALLEL"}
_PLAIN: dict[str, type] = {
    "inter_op_num_threads": int,
    "enable_mem_pattern": bool,
    "enable_mem_reuse": bool,
    "enable_cpu_mem_arena": bool,
    "use_deterministic_compute": bool,
}
_KNOWN = ("graph_optimization_level", "execution_mode", *_PLAIN)


def apply_options(vendor: Any, session_options: Any, options: Mapping[str, Scalar]) -> dict[str, str]:
    """Set every option on the session and return the provider's, without their prefix."""
    provider: dict[str, str] = {}
    for key, value in options.items():
        if key.startswith(PROVIDER_PREFIX):
            provider[key.removeprefix(PROVIDER_PREFIX)] = _text(value)
        elif key.startswith(_ENTRY_PREFIXES):
            session_options.add_session_config_entry(key, _text(value))
        elif key == "graph_optimization_level":
            session_options.graph_optimization_level = _chosen(vendor.GraphOptimizationLevel, _LEVELS, key, value)
        elif key == "execution_mode":
            session_options.execution_mode = _chosen(vendor.ExecutionMode, _MODES, key, value)
        else:
            _set_plain(session_options, key, value)
    return provider


def _set_plain(session_options: Any, key: str, value: Scalar) -> None:
    if key not in _PLAIN:
        near = difflib.get_close_matches(key, _KNOWN, n=1)
        known = f"{', '.join(_KNOWN)}, and names that start with {', '.join((*_ENTRY_PREFIXES, PROVIDER_PREFIX))}"
        raise InputError(
            f"onnxruntime has no option {key!r}", hint=f"did you mean {near[0]}?" if near else f"known: {known}"
        )
    if not isinstance(value, _PLAIN[key]):
        raise InputError(
            f"option {key} takes {_PLAIN[key].__name__}, not {value!r}", hint=f"correct workload.options.{key}"
        )
    setattr(session_options, key, value)


def _chosen(enumeration: Any, names: Mapping[str, str], key: str, value: Scalar) -> Any:
    if value not in names:
        raise InputError(f"option {key} has the unknown value {value!r}", hint=f"use one of {', '.join(names)}")
    return getattr(enumeration, names[str(value)])


def _text(value: Scalar) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def coverage(path: Path) -> dict[str, float]:
    """Return the share of the executed nodes by provider; empty where no node ran."""
    events: list[dict[str, Any]] = json.loads(path.read_text())
    nodes = {_identity(event): event["args"]["provider"] for event in events if _is_node(event)}
    counts = Counter(nodes.values())
    return {provider: count / len(nodes) for provider, count in counts.most_common()}


def _is_node(event: Mapping[str, Any]) -> bool:
    args = event.get("args", {})
    if event.get("cat") != "Node" or not args.get("provider"):
        return False
    # Copies between host and device belong to no part of the model.
    return not str(args.get("op_name", "")).startswith("Memcpy")


def _identity(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return what tells one node from another: a node is run once for each inference, and many times in a loop."""
    return str(event["args"].get("node_index", "")), str(event["name"]).removesuffix("_kernel_time")


CPU = "CPUExecutionProvider"
# Not a unit of this machine: it sends the inputs to a service.
REMOTE = ("AzureExecutionProvider",)


@dataclass(frozen=True)
class ProviderUnit:
    """`tensors` is where inputs can be put beforehand; None where the provider takes them from the host."""

    name: str
    provider: str
    description: str
    seed_name: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    # Options that make a provider compute in another type than the file's.
    by_precision: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tensors: str | None = None


def _coreml(name: str, compute_units: str, description: str) -> ProviderUnit:
    options = {"MLComputeUnits": compute_units, "ModelFormat": "MLProgram"}
    return ProviderUnit(name, "CoreMLExecutionProvider", description, options=options)


# The seed's names are those of campaigns: one asks for "GPU (ONNX)" and means whichever maker's card is there.
KNOWN: tuple[ProviderUnit, ...] = (
    ProviderUnit("cpu", CPU, "CPU", "CPU (ONNX)"),
    ProviderUnit(
        "cuda",
        "CUDAExecutionProvider",
        "NVIDIA GPU through CUDA",
        "GPU (ONNX)",
        by_precision={"fp32": {"use_tf32": "0"}},
        tensors="cuda",
    ),
    ProviderUnit(
        "tensorrt",
        "TensorrtExecutionProvider",
        "NVIDIA GPU through TensorRT",
        by_precision={
            "fp16": {"trt_fp16_enable": "1"},
            "bf16": {"trt_bf16_enable": "1"},
            "int8": {"trt_int8_enable": "1"},
        },
        tensors="cuda",
    ),
    ProviderUnit("tensorrt-rtx", "NvTensorRTRTXExecutionProvider", "NVIDIA GPU through TensorRT for RTX"),
    ProviderUnit("directml", "DmlExecutionProvider", "GPU through DirectML", "DirectML (ONNX)"),
    _coreml("coreml", "ALL", "device chosen by Core ML"),
    _coreml("coreml-cpu", "CPUOnly", "CPU through Core ML"),
    _coreml("coreml-gpu", "CPUAndGPU", "GPU through Core ML"),
    _coreml("neural-engine", "CPUAndNeuralEngine", "Neural Engine through Core ML"),
    ProviderUnit("openvino", "OpenVINOExecutionProvider", "Intel devices through OpenVINO", "OpenVINO (ONNX)"),
    ProviderUnit("rocm", "ROCMExecutionProvider", "AMD GPU through ROCm", "GPU (ONNX)"),
    ProviderUnit(
        "migraphx",
        "MIGraphXExecutionProvider",
        "AMD GPU through MIGraphX",
        "GPU (ONNX)",
        by_precision={"fp16": {"migraphx_fp16_enable": "1"}, "int8": {"migraphx_int8_enable": "1"}},
    ),
    ProviderUnit("qnn", "QNNExecutionProvider", "Qualcomm NPU through QNN"),
    ProviderUnit("xnnpack", "XnnpackExecutionProvider", "CPU through XNNPACK"),
    ProviderUnit("acl", "ACLExecutionProvider", "CPU through the Arm Compute Library"),
    ProviderUnit("armnn", "ArmNNExecutionProvider", "Arm devices through Arm NN"),
    ProviderUnit("dnnl", "DnnlExecutionProvider", "CPU through oneDNN"),
    ProviderUnit("vitis", "VitisAIExecutionProvider", "AMD NPU through Vitis AI"),
    ProviderUnit("nnapi", "NnapiExecutionProvider", "Android devices through NNAPI"),
    ProviderUnit("cann", "CANNExecutionProvider", "Ascend NPU through CANN"),
    ProviderUnit("webgpu", "WebGpuExecutionProvider", "GPU through WebGPU"),
)


def units_of(provider: str) -> list[ProviderUnit]:
    """Return the units behind one provider; a provider that the table lacks is a unit by its own name."""
    if provider in REMOTE:
        return []
    known = [unit for unit in KNOWN if unit.provider == provider]
    return known or [ProviderUnit(_derived_name(provider), provider, f"{provider} of ONNX Runtime")]


def _derived_name(provider: str) -> str:
    """Return a unit's name for a provider that is not in the table: `FooBarExecutionProvider` is `foobar`."""
    return re.sub(r"[^a-z0-9]+", "-", provider.removesuffix("ExecutionProvider").lower()).strip("-")
