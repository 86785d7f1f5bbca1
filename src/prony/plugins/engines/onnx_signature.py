"""Complete a model's input signature from its ONNX file: axis names, bounds and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from prony.ports.engine import UNKNOWN_RANK, TensorSpec
from prony.runner.onnx_file import OnnxGraph, value_bounds


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
    return done
