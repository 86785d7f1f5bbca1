"""Published peaks of GPUs: what a reading is held against, and where each figure comes from.

Dense figures, without sparsity. A figure that nobody has looked up again is marked so: a reading above it makes its
result suspect and not void, because the figure may be what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_READ = "the accelerator tables of Machine Learning Engineering (github.com/stas00/ml-engineering), August 2026"
_UNCHECKED = "general knowledge, not verified"


@dataclass(frozen=True)
class Peak:
    """One published figure; `is_verified` says that its source was read."""

    value: float
    source: str
    is_verified: bool


@dataclass(frozen=True)
class _Card:
    """Peaks of one card in TFLOP/s, of its memory in GB/s."""

    pattern: str
    memory: float
    products: Mapping[str, float]
    is_verified: bool = True


def _products(fp32: float, tf32: float | None, bf16: float, fp8: float | None, int8: float | None) -> dict[str, float]:
    known = {"fp32": fp32, "tf32": tf32, "bf16": bf16, "fp16": bf16, "fp8": fp8, "int8": int8}
    return {name: value for name, value in known.items() if value is not None}


# The first whose pattern is found in the card's name.
_CARDS: tuple[_Card, ...] = (
    _Card(r"\bH200\b(?! NVL)", 4800, _products(67, 494, 989, 1979, 1979)),
    _Card(r"\bH100 PCIe", 2000, _products(51, 378, 756, 1513, 1513)),
    _Card(r"\bH100 (80GB HBM3|SXM)", 3350, _products(67, 494, 989, 1979, 1979)),
    _Card(r"\bB200\b", 8000, _products(80, 1125, 2250, 4500, 4500)),
    _Card(r"\bA100.SXM.*80GB", 2000, _products(19.5, 156, 312, None, 624)),
    _Card(r"\bL40S\b", 864, _products(91.6, 183, 362, 733, 733)),
    _Card(r"\bMI300X\b", 5300, _products(163, 654, 1307, 2610, 2600)),
    _Card(r"\bMI325X\b", 6000, _products(163, 654, 1307, 2610, 2600)),
    _Card(r"\bT4\b", 320, {"fp32": 8.1, "fp16": 65, "int8": 130}, is_verified=False),
    _Card(r"\bV100.SXM", 900, {"fp32": 15.7, "fp16": 125}, is_verified=False),
    _Card(r"\bA10\b", 600, _products(31.2, 62.5, 125, None, 250), is_verified=False),
    _Card(r"\bL4\b", 300, _products(30.3, 60, 121, 242, 242), is_verified=False),
    _Card(r"RTX 4090$", 1008, _products(82.6, 82.6, 165, 330, 661), is_verified=False),
    _Card(r"RTX 5090$", 1792, _products(104.8, 105, 210, 419, 838), is_verified=False),
)
_MEMORY_METRICS = ("copy_gb_s", "triad_gb_s", "read_gb_s", "write_gb_s")
_PRODUCT = re.compile(r"gemm_([a-z0-9]+)_t(fl)?ops")


def find_peak(device: str, metric: str) -> Peak | None:
    """Return the published peak of a metric on a device, by the device's name; None where no figure is known.

    A part of a card (MIG) has a part of its peak, and none is given.
    """
    card = next((one for one in _CARDS if re.search(one.pattern, device)), None)
    if card is None or "MIG" in device:
        return None
    product = _PRODUCT.fullmatch(metric)
    value = card.products.get(product.group(1)) if product else card.memory if metric in _MEMORY_METRICS else None
    source = _READ if card.is_verified else _UNCHECKED
    return None if value is None else Peak(value, source, card.is_verified)
