"""Describe the devices that PyTorch sees, and multiply matrices on each in every number format."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from prony.plugins.engines.torch_calls import card_id

_SIZE = 256
# How far a product may be from the one in float64, of its largest value: a few steps of the format.
_TOLERANCES = {
    "fp64": 1e-12, "fp32": 1e-5, "tf32": 5e-3, "bf16": 5e-2, "fp16": 5e-3, "fp8": 0.2, "int8": 0.0,
}  # fmt: skip
# Below this error a product that should have been rounded to TF32 was not.
_FINER_THAN_TF32 = 2e-6

Product = Callable[[Any, Any, Any], Any]


def describe_devices(torch: Any) -> dict[str, Any]:
    """Return what this build says of itself and of each device."""
    cuda, hip = torch.version.cuda, getattr(torch.version, "hip", None)
    about = {
        "version": str(torch.__version__), "runtime": str(hip or cuda or ""),
        "built_for": " ".join(torch.cuda.get_arch_list()) if cuda else "",
    }  # fmt: skip
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        about["visible_devices"] = hidden
    return {"about": about, "cards": [_describe_cuda(torch, index) for index in range(_count(torch, "cuda"))]
            + [_describe_xpu(torch, index) for index in range(_count(torch, "xpu"))]}  # fmt: skip


def _count(torch: Any, kind: str) -> int:
    backend = getattr(torch, kind, None)
    return int(backend.device_count()) if backend is not None and backend.is_available() else 0


def _describe_cuda(torch: Any, index: int) -> dict[str, Any]:
    seen = torch.cuda.get_device_properties(index)
    bus = getattr(seen, "pci_bus_id", None)
    place = None if bus is None else f"{seen.pci_domain_id:08x}:{bus:02x}:{seen.pci_device_id:02x}.0"
    cache = getattr(seen, "L2_cache_size", None)
    known = {
        "device": f"cuda:{index}", "name": seen.name, "uuid": card_id(torch, index) or None, "pci": place,
        "compute_capability": f"{seen.major}.{seen.minor}", "multiprocessors": seen.multi_processor_count,
        "memory_mib": seen.total_memory // 2**20, "memory_bus_bits": getattr(seen, "memory_bus_width", None),
        "l2_mib": None if cache is None else cache // 2**20,
    }  # fmt: skip
    if getattr(torch.version, "hip", None):  # ROCm calls itself cuda, and its target is no compute capability
        known["compute_capability"] = getattr(seen, "gcnArchName", None)
    return {name: value for name, value in known.items() if value is not None}


def _describe_xpu(torch: Any, index: int) -> dict[str, Any]:
    seen = torch.xpu.get_device_properties(index)
    known = {
        "device": f"xpu:{index}", "name": seen.name, "memory_mib": seen.total_memory // 2**20,
        "driver": getattr(seen, "driver_version", None), "multiprocessors": getattr(seen, "gpu_eu_count", None),
    }  # fmt: skip
    return {name: value for name, value in known.items() if value is not None}


def try_products(torch: Any, device: str) -> list[dict[str, Any]]:
    """Multiply the same two matrices in each format and hold the product against float64: what the software reaches."""
    return [_try(torch, device, name, product) for name, product in _PRODUCTS.items()]


def _try(torch: Any, device: str, name: str, product: Product) -> dict[str, Any]:
    made = torch.Generator().manual_seed(1)
    left, right = (torch.randn(_SIZE, _SIZE, generator=made, dtype=torch.float64) for _ in range(2))
    if name == "int8":
        left, right = ((one * 20).round().clamp(-127, 127) for one in (left, right))
    true = left @ right
    try:
        found = product(torch, left.to(device, _carrier(torch, device)), right.to(device, _carrier(torch, device)))
        error = float((found.to("cpu", torch.float64) - true).abs().max() / true.abs().max())
    except (RuntimeError, TypeError, AttributeError, NotImplementedError) as exc:
        return {"format": name, "worked": False, "text": _first_line(exc)}
    if name == "tf32" and error < _FINER_THAN_TF32:
        return {"format": name, "worked": False, "text": f"computed in fp32: error {error:.1g}"}
    if not error <= _TOLERANCES[name]:
        return {"format": name, "worked": False, "text": f"wrong by {error:.2g} of the largest value"}
    return {"format": name, "worked": True, "text": f"error {error:.1g}"}


def _carrier(torch: Any, device: str) -> Any:
    # Metal has no float64 to carry the numbers there.
    return torch.float32 if device.startswith("mps") else torch.float64


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _cast_product(name: str) -> Product:
    return lambda torch, left, right: left.to(getattr(torch, name)) @ right.to(getattr(torch, name))


def _fp32_product(torch: Any, left: Any, right: Any) -> Any:
    return _product_with_tf32(torch, left, right, is_allowed=False)


def _tf32_product(torch: Any, left: Any, right: Any) -> Any:
    if left.device.type != "cuda":
        raise NotImplementedError("TF32 is a format of NVIDIA's tensor cores")
    return _product_with_tf32(torch, left, right, is_allowed=True)


def _product_with_tf32(torch: Any, left: Any, right: Any, *, is_allowed: bool) -> Any:
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    settings.allow_tf32 = is_allowed
    try:
        return left.to(torch.float32) @ right.to(torch.float32)
    finally:
        settings.allow_tf32 = before


def _int8_product(torch: Any, left: Any, right: Any) -> Any:
    return torch._int_mm(left.to(torch.int8), right.to(torch.int8))


def _fp8_product(torch: Any, left: Any, right: Any) -> Any:
    eight = torch.float8_e4m3fn
    one = torch.ones((), dtype=torch.float32, device=left.device)
    # The second matrix lies by columns, as the hardware wants it.
    columns = right.to(torch.float32).t().contiguous().to(eight).t()
    return torch._scaled_mm(
        left.to(torch.float32).to(eight), columns, scale_a=one, scale_b=one, out_dtype=torch.bfloat16
    )


_PRODUCTS: dict[str, Product] = {
    "fp64": _cast_product("float64"),
    "fp32": _fp32_product,
    "tf32": _tf32_product,
    "bf16": _cast_product("bfloat16"),
    "fp16": _cast_product("float16"),
    "fp8": _fp8_product,
    "int8": _int8_product,
}
