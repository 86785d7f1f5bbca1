"""Compute units of ONNX Runtime: names, options and abilities of its execution providers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    _coreml("coreml", "ALL", "whatever Core ML chooses"),
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
    return known or [ProviderUnit(derived_name(provider), provider, f"{provider} of ONNX Runtime")]


def derived_name(provider: str) -> str:
    """Return a unit's name for a provider that is not in the table: `FooBarExecutionProvider` is `foobar`."""
    return re.sub(r"[^a-z0-9]+", "-", provider.removesuffix("ExecutionProvider").lower()).strip("-")
