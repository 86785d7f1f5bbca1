"""Represent the floats that numpy lacks (bfloat16, float8) as bits, and convert bfloat16 to float32 and back."""

from __future__ import annotations

import numpy as np

from prony.ports.engine import Array

# The unsigned type that carries the bits of each type that numpy lacks.
CARRIERS: dict[str, str] = {
    "bfloat16": "uint16",
    "float8e4m3fn": "uint8",
    "float8e4m3fnuz": "uint8",
    "float8e5m2": "uint8",
    "float8e5m2fnuz": "uint8",
}
# The bits of 0.25 and of 2.0: what lies between, with either sign, is finite and ordinary in every such type.
FLOAT8_BITS: dict[str, tuple[int, int]] = {
    "float8e4m3fn": (0x28, 0x40),
    "float8e4m3fnuz": (0x30, 0x48),
    "float8e5m2": (0x34, 0x40),
    "float8e5m2fnuz": (0x38, 0x44),
}


def to_bfloat16(values: Array) -> Array:
    """Return the bfloat16 bits of float32 values, rounded to the nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return np.asarray(rounded >> 16).astype(np.uint16).reshape(np.shape(values))


def from_bfloat16(bits: Array) -> Array:
    """Return the float32 values of bfloat16 bits; exact."""
    wide = np.ascontiguousarray(bits).view(np.uint16).astype(np.uint32) << 16
    return wide.view(np.float32).reshape(np.shape(bits))
