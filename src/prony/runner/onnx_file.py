"""Read what an ONNX file declares, skipping its weights.

It needs no `onnx` package. This module is imported in the engine's child and must need nothing but the standard
library and numpy.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from prony.errors import InputError, NotFoundError
from prony.runner.onnx_parse import DTYPES, DamagedError, Model, Node, Tensor, Value, parse_model

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class OnnxGraph:
    """What an ONNX file declares. `inputs` leaves out those that initializers fill.

    `initializers` include those of nested graphs and the matrices that some exporters keep in Constant nodes;
    `inner_nodes` are those of nested graphs.
    """

    ir_version: int
    opset: int
    producer: str
    metadata: Mapping[str, str]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    initializers: tuple[Tensor, ...]
    nodes: tuple[Node, ...]
    external_files: tuple[str, ...] = field(default=())
    inner_nodes: tuple[Node, ...] = field(default=())

    @property
    def parameters(self) -> int:
        return sum(math.prod(tensor.dims) for tensor in self.initializers)

    @property
    def weight_types(self) -> dict[str, int]:
        """Return how many elements the initializers hold, by type."""
        counts: dict[str, int] = {}
        for tensor in self.initializers:
            counts[tensor.dtype] = counts.get(tensor.dtype, 0) + math.prod(tensor.dims)
        return counts

    @property
    def suggested_axes(self) -> dict[str, int]:
        """Return the sizes that a model of the zoo suggests for its dynamic axes; {} for any other."""
        try:
            axes = json.loads(self.metadata.get("prony.axes", "{}"))
        except json.JSONDecodeError:
            return {}
        items = axes.items() if isinstance(axes, dict) else ()
        return {name: size for name, size in items if isinstance(size, int) and size > 0}


def read_graph(path: str | Path) -> OnnxGraph:
    """Read a file's declarations; refuse a damaged file and external data outside the file's own folder."""
    with _map_file(Path(path)) as data:
        try:
            model = parse_model(data)
        except DamagedError as exc:
            raise InputError(
                f"{path} is not a complete ONNX file: {exc}",
                hint="fetch it again: it may be cut short, or a web page or a Git LFS pointer",
                code="damaged_model",
            ) from exc
    return _graph(path, model)


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as exc:
        raise NotFoundError(f"file not found: {path}", hint="check the path") from exc
    except ValueError as exc:  # mmap refuses an empty file so
        raise InputError(f"{path} is empty", hint="fetch the model again", code="damaged_model") from exc
    except OSError as exc:
        raise InputError(f"cannot read {path}: {exc.strerror}", hint="it must be a readable file") from exc


def _graph(path: str | Path, model: Model) -> OnnxGraph:
    filled = {tensor.name for tensor in model.initializers}
    inlined = [
        value
        for node in model.nodes
        if node.op_type == "Constant" and isinstance(value := node.attributes.get("value"), Tensor)
        if len(value.dims) > 1
    ]
    tensors = (*model.initializers, *model.nested, *inlined)
    return OnnxGraph(
        ir_version=model.ir_version,
        opset=model.opset,
        producer=model.producer,
        metadata=model.metadata,
        inputs=tuple(value for value in model.inputs if value.name not in filled),
        outputs=tuple(model.outputs),
        initializers=tensors,
        nodes=tuple(model.nodes),
        external_files=_external_files(path, tensors),
        inner_nodes=tuple(model.inner_nodes),
    )


def _external_files(path: str | Path, tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """Return where weights lie outside the file, each once; none may lead out of the file's folder."""
    found = dict.fromkeys(tensor.location for tensor in tensors if tensor.location is not None)
    for location in found:
        if not is_inside(location):
            raise InputError(
                f"{path} has weights at {location!r}, outside its own folder",
                hint="save it again with its external data next to it",
                code="unsafe_path",
            )
    return tuple(found)


def is_inside(location: str) -> bool:
    """Tell whether a relative path stays below the folder it starts from, by the rules of every system."""
    windows = PureWindowsPath(location)
    parts = (*PurePosixPath(location).parts, *windows.parts)
    plain = location not in ("", ".") and "\0" not in location and not any(part.endswith(":") for part in parts)
    return plain and ".." not in parts and not windows.anchor and not location.startswith("/")


# For each operator that looks rows up: (position of the indices, position of the table).
_LOOKUPS = {"Gather": ((1, 0),), "GatherBlockQuantized": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
# What leaves the values of its first input as they are.
_SAME_VALUES = ("Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape")
_SAME_ROWS = ("Identity", "Cast", "DequantizeLinear", "Mul")


def value_bounds(graph: OnnxGraph) -> dict[str, tuple[int, str]]:
    """Return (below, source) of each integer input that picks rows of a table that the file holds."""
    origin = {value.name: value.name for value in graph.inputs if "int" in value.dtype}
    tables = {tensor.name: (tensor.dims[0], f"rows of {tensor.name}") for tensor in graph.initializers if tensor.dims}
    bounds: dict[str, tuple[int, str]] = {}
    for node in graph.nodes:  # in topological order, as ONNX demands
        _carry(node, origin, _SAME_VALUES)
        _carry(node, tables, _SAME_ROWS)
        if node.attributes.get("axis", 0) != 0:
            continue
        for index, table in _LOOKUPS.get(node.op_type, ()):
            if max(index, table) >= len(node.inputs):
                continue
            name, rows = origin.get(node.inputs[index]), tables.get(node.inputs[table])
            if name is not None and rows is not None:
                bounds[name] = min(rows, bounds.get(name, rows))
    return bounds


def _carry(node: Node, known: dict[str, Any], operators: tuple[str, ...]) -> None:
    if node.op_type in operators and node.inputs and node.outputs and node.inputs[0] in known:
        known[node.outputs[0]] = known[node.inputs[0]]


def read_tensors(path: str | Path, tensors: Iterable[Tensor]) -> dict[str, Array]:
    """Return the contents of tensors that lie in the file itself as raw bytes, as those of the zoo do."""
    found: dict[str, Array] = {}
    with _map_file(Path(path)) as data:
        for tensor in tensors:
            if tensor.data is None or tensor.dtype not in np.sctypeDict:
                raise InputError(
                    f"cannot read the {tensor.dtype} weights of {tensor.name}",
                    hint="only raw data in numpy's types is supported",
                )
            begin, end = tensor.data
            array = np.frombuffer(data[begin:end], dtype=np.dtype(tensor.dtype).newbyteorder("<"))
            found[tensor.name] = array.reshape(tensor.dims)
    return found


__all__ = ["DTYPES", "Node", "OnnxGraph", "Tensor", "Value", "is_inside", "read_graph", "read_tensors", "value_bounds"]
