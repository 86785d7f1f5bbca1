"""Build an ONNX graph layer by layer, with seeded weights and reproducible bytes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from prony.errors import CapacityError

# The oldest pair that has LayerNormalization: every engine of the last years reads it.
OPSET = 17
IR_VERSION = 8
Dims = tuple[int | str, ...]


def onnx_package() -> Any:
    """Return the `onnx` package, or say how to get it."""
    try:
        import onnx
    except ImportError as exc:
        raise CapacityError(
            "building a zoo model needs the onnx package, which is not installed",
            hint='pip install "prony[onnx]"',
            code="missing_package",
        ) from exc
    return onnx


class Graph:
    """A graph under construction. The same calls in the same order give the same bytes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._onnx = onnx_package()
        self._random = np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])))
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._constants: dict[tuple[str, bytes], str] = {}

    def input(self, name: str, dims: Dims, dtype: str = "float32") -> str:
        self._inputs.append(self._value(name, dims, dtype))
        return name

    def output(self, value: str, name: str, dims: Dims, dtype: str = "float32") -> str:
        """Publish a value: from here on it bears this name, which is returned, wherever it is used."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [name if known == value else known for known in names]
        self._outputs.append(self._value(name, dims, dtype))
        return name

    def weight(self, name: str, shape: tuple[int, ...], *, scale: float, mean: float = 0.0) -> str:
        """Add a parameter drawn from a normal distribution."""
        values = self._random.standard_normal(shape, dtype=np.float32)
        values *= np.float32(scale)
        values += np.float32(mean)
        self._weights.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def constant(self, values: list[int] | int | float) -> str:
        """Return a value that is no parameter: the shape of a Reshape, a scalar factor."""
        array = np.asarray(values, dtype=np.float32 if isinstance(values, float) else np.int64)
        key = (f"{array.dtype}{array.shape}", array.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self.node("Constant", name=name, value=self._onnx.numpy_helper.from_array(array, name))
            self._constants[key] = name
        return self._constants[key]

    def node(self, op_type: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a node with one output, which bears the node's name."""
        self._nodes.append(self._onnx.helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def split(self, value: str, parts: int, *, name: str) -> list[str]:
        """Cut the last axis into equal parts."""
        names = [f"{name}.{part}" for part in range(parts)]
        self._nodes.append(self._onnx.helper.make_node("Split", [value], names, name=name, axis=-1))
        return names

    def model(self, axes: Mapping[str, int]) -> Any:
        """Return the finished ModelProto; `axes` are the sizes it suggests for its dynamic axes."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, self._weights)
        model = helper.make_model(
            graph,
            producer_name="prony",
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(model, {"prony.axes": json.dumps(dict(axes), sort_keys=True)})
        return model

    def _value(self, name: str, dims: Dims, dtype: str) -> Any:
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._onnx.helper.make_tensor_value_info(name, kind, list(dims))


def he(fan_in: int) -> float:
    """The scale that keeps the variance through a layer and the ReLU after it."""
    return math.sqrt(2.0 / fan_in)


def xavier(fan_in: int) -> float:
    """The scale that keeps the variance through a linear layer."""
    return math.sqrt(1.0 / fan_in)
