"""What engines say of a model's tensors: outputs as plain arrays, the precision, and sizes from an ONNX file."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prony.ports.engine import UNKNOWN_RANK, Array, TensorSpec
from prony.runner.child.bits import CARRIERS, from_bfloat16
from prony.runner.child.sizes_beside import add_suggestions, suggest_from_metadata
from prony.runner.onnx_file import OnnxGraph, value_bounds


def flatten_output(name: str, value: Any) -> dict[str, Array]:
    """Return one output as arrays: a list becomes one each, a list of dictionaries a table with sorted columns."""
    if isinstance(value, Mapping):
        return {
            f"{name}[{key}]": plain_array(item) for key, item in sorted(value.items(), key=lambda item: str(item[0]))
        }
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
        columns = sorted(value[0], key=str)
        return {name: np.asarray([[row[column] for column in columns] for row in value])}
    if isinstance(value, (list, tuple)):
        return {f"{name}[{index}]": plain_array(item) for index, item in enumerate(value)}
    return {name: plain_array(value)}


def plain_array(value: Any) -> Array:
    """Return an array that can be saved without pickling: text is numpy's own type for it."""
    array = np.asarray(value)
    return array.astype(np.str_) if array.dtype.kind == "O" else array


def from_memory(address: int, byte_count: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return host memory that holds a type that numpy lacks: bfloat16 as float32, any other as its bits."""
    bits = np.frombuffer(ctypes.string_at(address, byte_count), dtype=CARRIERS[dtype]).reshape(shape)
    return from_bfloat16(bits) if dtype == "bfloat16" else bits


def complete_inputs(specs: Sequence[TensorSpec], graph: OnnxGraph) -> list[TensorSpec]:
    """Return every input with the file's own shape, so that two engines are fed the same from one file."""
    shapes = {value.name: UNKNOWN_RANK if value.dims is None else value.dims for value in graph.inputs}
    bounds = value_bounds(graph)
    sizes = graph.suggested_axes
    done = []
    for spec in specs:
        shape = shapes.get(spec.name, spec.shape)
        below, source = bounds.get(spec.name, (None, ""))
        suggested = {
            position: (sizes[axis], f"model: suggested for {axis}")
            for position, axis in enumerate(shape)
            if isinstance(axis, str) and axis in sizes
        }
        done.append(replace(spec, shape=shape, below=below, below_source=source, suggested=suggested))
    return add_suggestions(done, suggest_from_metadata(graph.metadata))


# What engines and formats call each type. Integers wider than a byte hold shapes and indices, not weights.
WORDS: Mapping[str, str] = {
    "float": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "double": "fp64",
    "float64": "fp64",
    "f64": "fp64",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "int8": "int8",
    "uint8": "int8",
    "i8": "int8",
    "u8": "int8",
    "int4": "int4",
    "uint4": "int4",
    "i4": "int4",
    "u4": "int4",
}


def of_weights(counts: Mapping[str, int]) -> str | None:
    """Return the precision that nearly all elements have; `mixed` where there is none, None where nothing tells.

    In a quantised model the scales and biases stay wide, so half of the elements is enough to name it.
    """
    by_word: dict[str, int] = {}
    for dtype, count in counts.items():
        word = WORDS.get(dtype.lower())
        if word is not None:
            by_word[word] = by_word.get(word, 0) + count
    total = sum(by_word.values())
    if not total:
        return None
    word = max(by_word, key=lambda each: by_word[each])
    needed = 0.5 if word in ("int8", "int4") else 0.9
    return word if by_word[word] >= needed * total else "mixed"


def format_shares(counts: Mapping[str, int]) -> str:
    """Return shares as a person reads them: `f16 90%, f32 10%`."""
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{dtype} {count / total:.0%}" for dtype, count in ordered)
