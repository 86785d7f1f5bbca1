"""Convert an engine's outputs to plain arrays by name."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from prony.ports.engine import Array
from prony.runner.child.bits import CARRIERS, from_bfloat16


def flatten_output(name: str, value: Any) -> dict[str, Array]:
    """Return one output as arrays: a list becomes one each, a list of dictionaries a table with sorted columns."""
    if isinstance(value, Mapping):
        return {f"{name}[{key}]": plain(item) for key, item in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
        columns = sorted(value[0], key=str)
        return {name: np.asarray([[row[column] for column in columns] for row in value])}
    if isinstance(value, (list, tuple)):
        return {f"{name}[{index}]": plain(item) for index, item in enumerate(value)}
    return {name: plain(value)}


def plain(value: Any) -> Array:
    """Return an array that can be saved without pickling: text is numpy's own type for it."""
    array = np.asarray(value)
    return array.astype(np.str_) if array.dtype.kind == "O" else array


def from_memory(address: int, byte_count: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return host memory that holds a type that numpy lacks: bfloat16 as float32, any other as its bits."""
    bits = np.frombuffer(ctypes.string_at(address, byte_count), dtype=CARRIERS[dtype]).reshape(shape)
    return from_bfloat16(bits) if dtype == "bfloat16" else bits
