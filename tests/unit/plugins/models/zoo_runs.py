"""How the tests of the zoo build and feed its models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from prony.plugins.models.zoo import ZooSource
from prony.ports.engine import Array
from prony.ports.models import FetchOptions
from prony.runner.onnx_file import OnnxGraph, read_graph, value_bounds


def built(name: str, cache: Path, *, formats: tuple[str, ...] = (".onnx",), python: str = "") -> Path:
    options = FetchOptions(cache=cache, formats=formats, python=python)
    return ZooSource().fetch(f"zoo:{name}", options, lambda *_: None).path


def inputs_for(graph: OnnxGraph, axes: Mapping[str, int], *, seed: int = 0) -> dict[str, Array]:
    random, bounds = np.random.Generator(np.random.PCG64(seed)), value_bounds(graph)
    feed: dict[str, Array] = {}
    for value in graph.inputs:
        shape = [axes[dim] if isinstance(dim, str) else int(dim or 1) for dim in value.dims or ()]
        if value.dtype == "int64":
            feed[value.name] = random.integers(0, bounds.get(value.name, (2, ""))[0], shape)
        else:
            feed[value.name] = random.standard_normal(shape, dtype=np.float32)
    return feed


def outputs_of(path: Path, feed: Mapping[str, Array]) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session: Any = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feed)), strict=True))


def graph_and_axes(path: Path, **changed: int) -> tuple[OnnxGraph, dict[str, int]]:
    graph = read_graph(path)
    return graph, graph.suggested_axes | changed


def relative_error(found: Array, right: Array) -> float:
    assert found.shape == right.shape
    return float(np.abs(found - right).max() / np.abs(right).max())
