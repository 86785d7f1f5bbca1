"""Ask AMD's, Intel's and Apple's own tools what GPUs there are.

Nobody who wrote this had such a card: it follows the vendors' documentation and has not been run on one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from prony.model.gpu_detection import GpuFields, LayerAnswer

AMD, INTEL, APPLE = "amdsmi", "xpu-smi", "system_profiler"
UNTRIED = "not tested: this check follows the vendor's documentation and was never run on such a GPU"
_PATIENCE_S = 30


def ask_other_vendors() -> list[LayerAnswer]:
    """Return what each tool that this system could have says."""
    return [ask_apple()] if sys.platform == "darwin" else [ask_amd(), ask_intel()]


def ask_amd() -> LayerAnswer:
    """Ask the package amdsmi, which comes with ROCm."""
    if find_spec("amdsmi") is None:
        return LayerAnswer(layer=AMD, state="absent", note="amdsmi (a package of ROCm) is not installed")
    try:
        library = import_module("amdsmi")
        return describe_amd(library)
    except (ImportError, OSError, KeyError) as exc:  # the wheel is there and the driver's library is not
        return LayerAnswer(layer=AMD, state="failed", note=f"amdsmi: {exc}")


def describe_amd(library: Any) -> LayerAnswer:
    """Return the cards of an amdsmi that can be imported."""
    try:
        library.amdsmi_init()
    except library.AmdSmiException as exc:
        return LayerAnswer(layer=AMD, state="failed", note=f"amdsmi: {exc}")
    try:
        cards = tuple(_amd_card(library, handle) for handle in library.amdsmi_get_processor_handles())
    except library.AmdSmiException as exc:
        return LayerAnswer(layer=AMD, state="failed", note=f"amdsmi: {exc}")
    finally:
        library.amdsmi_shut_down()
    return LayerAnswer(layer=AMD, state="asked", cards=cards, note=UNTRIED if cards else "it lists no GPU")


def _amd_card(library: Any, handle: Any) -> GpuFields:
    def ask(question: str, *more: Any) -> Any | None:
        call: Callable[..., Any] | None = getattr(library, f"amdsmi_get_{question}", None)
        try:
            return None if call is None else call(handle, *more)
        except library.AmdSmiException:  # its calls fail at times, and each card lacks some
            return None

    asic: Mapping[str, Any] = ask("gpu_asic_info") or {}
    memory: Mapping[str, Any] = ask("gpu_vram_info") or {}
    driver: Mapping[str, Any] = ask("gpu_driver_info") or {}
    cap: Mapping[str, Any] = ask("power_cap_info") or {}
    limit = cap.get("power_cap")
    return _drop_unknown({
        "name": asic.get("market_name"), "vendor": "amd", "uuid": ask("gpu_device_uuid"), "pci": ask("gpu_device_bdf"),
        "compute_capability": asic.get("target_graphics_version"), "multiprocessors": asic.get("num_compute_units"),
        "memory_mib": memory.get("vram_size"), "memory_bus_bits": memory.get("vram_bit_width"),
        "driver": driver.get("driver_version"),
        "power_limit_w": None if not isinstance(limit, int) else limit / 1e6 if limit > 10_000 else limit,
    })  # fmt: skip


def ask_intel() -> LayerAnswer:
    """Ask xpu-smi, Intel's program over Level Zero."""
    program = shutil.which(INTEL)
    if program is None:
        return LayerAnswer(layer=INTEL, state="absent", note="xpu-smi not found on PATH")
    try:
        done = subprocess.run(
            [program, "discovery", "-j"], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
        cards = parse_xpu_smi(done.stdout)
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as exc:
        return LayerAnswer(layer=INTEL, state="failed", note=f"xpu-smi discovery -j: {exc}")
    return LayerAnswer(layer=INTEL, state="asked", cards=cards, note=UNTRIED if cards else "it lists no GPU")


def parse_xpu_smi(text: str) -> tuple[GpuFields, ...]:
    """Return each card of what `xpu-smi discovery -j` prints."""
    listed = json.loads(text).get("device_list", [])
    return tuple(
        _drop_unknown(
            {
                "name": one.get("device_name"),
                "vendor": "intel",
                "uuid": one.get("uuid"),
                "pci": one.get("pci_bdf_address"),
                "driver": one.get("driver_version"),
            }
        )
        for one in listed
    )


def ask_apple() -> LayerAnswer:
    """Ask macOS. Its GPUs have neither a UUID nor memory of their own."""
    from prony.instruments.device.apple import read_hardware

    cards = tuple(
        _drop_unknown(
            {"name": gpu.name, "vendor": gpu.vendor, "memory_mib": gpu.memory_mib, "metal": gpu.compute_capability}
        )
        for gpu in read_hardware().gpus
    )
    return LayerAnswer(layer=APPLE, state="asked", cards=cards, note=UNTRIED if cards else "it lists no GPU")


def _drop_unknown(fields: Mapping[str, Any]) -> GpuFields:
    return {name: value for name, value in fields.items() if value is not None and value not in ("", "N/A")}
