"""Describe the software that can change a measurement: system, interpreter, drivers and kernel variables."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import prony
from prony.instruments import kernel
from prony.model.device import Hardware, Software

# Distributions whose version changes what runs or how fast: numpy, the engines, and what they are built on.
PACKAGES = (
    "numpy", "onnx", "onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "openvino",
    "ai-edge-litert", "tflite-runtime", "tensorflow", "torch", "triton", "coremltools", "tensorrt", "jax", "jaxlib",
    "transformers", "llama-cpp-python", "vllm", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cublas-cu12",
    "nvidia-cublas",
)  # fmt: skip

# Variables that change which kernels run or on how many threads, by the start of their name.
VARIABLES = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_", "ORT_", "OV_", "GGML_", "TF_",
    "XNNPACK_", "ONEDNN_", "DNNL_", "TORCH_", "PYTORCH_", "CUDA_", "CUBLAS_", "NVIDIA_TF32_", "HIP_", "ROCR_", "HSA_",
    "LD_PRELOAD", "MALLOC_", "GLIBC_TUNABLES",
)  # fmt: skip
# Terraform shares a prefix with TensorFlow, and its variables hold credentials: none of those may be kept.
_SECRET = ("TF_VAR_", "TF_TOKEN_", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "_KEY")


def read_software(hardware: Hardware, microcode: str | None, root: Path = kernel.ROOT) -> Software:
    """Return what runs here; `hardware` tells the GPUs' drivers."""
    drivers = {f"{gpu.driver} {gpu.runtime or ''}".strip() for gpu in hardware.gpus if gpu.driver}
    return Software(
        os=platform.system().lower(),
        os_version=os_version(root),
        kernel=platform.release(),
        libc=_libc(),
        microcode=microcode,
        mitigations=mitigations(root),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        prony=prony.__version__,
        gpu_driver="; ".join(sorted(drivers)) or None,
        packages={name: found for name in PACKAGES if (found := _version(name))},
        environment=kernel_variables(os.environ),
    )


def os_version(root: Path = kernel.ROOT) -> str | None:
    """Return the system's full name and version."""
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    if sys.platform == "win32":
        return f"Windows {platform.win32_ver()[1]}"
    release = (
        kernel.first((kernel.read_text(root / "etc/os-release"), kernel.read_text(root / "usr/lib/os-release"))) or ""
    )
    fields = dict(line.split("=", 1) for line in release.splitlines() if "=" in line)
    return kernel.first(fields.get(key, "").strip("\"'") for key in ("PRETTY_NAME", "NAME"))


def mitigations(root: Path = kernel.ROOT) -> dict[str, str]:
    """Return what the kernel does about each flaw of the CPU that concerns it."""
    files = kernel.folders(root / "sys/devices/system/cpu/vulnerabilities", "*")
    told = {file.name: kernel.read_text(file) for file in files}
    return {name: words for name, words in told.items() if words and words != "Not affected"}


def kernel_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that change kernels, by name; nothing that smells of a secret."""
    chosen = {name: value for name, value in environment.items() if name.startswith(VARIABLES)}
    return {name: chosen[name] for name in sorted(chosen) if not any(word in name for word in _SECRET)}


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return "musl" if kernel.folders(Path("/lib"), "ld-musl-*") else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
