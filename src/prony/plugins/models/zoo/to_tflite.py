"""Convert a zoo model from ONNX to .tflite, with channels last and activations fused.

Runs under the litert engine's interpreter: it needs numpy, ai-edge-litert and nothing of Prony's dependencies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import InputError
from prony.ports.engine import Array
from prony.runner.onnx_file import Node, OnnxGraph, Tensor, read_graph, read_tensors

_SAME, _VALID = 0, 1
_NO_ACTIVATION, _RELU, _RELU6 = 0, 1, 3
_SPATIAL = np.array([1, 2], np.int32)


def write_tflite(source: Path, target: Path) -> None:
    """Convert one file."""
    graph = read_graph(source)
    _Conversion(graph, _values(source, graph), TfliteFile(target.stem)).run(target)


def _values(source: Path, graph: OnnxGraph) -> dict[str, Array]:
    """Return the contents of every weight and every constant, by name."""
    constants = {
        node.outputs[0]: node.attributes["value"] for node in graph.nodes if node.op_type == "Constant"
    }  # fmt: skip
    tensors = [value for value in constants.values() if isinstance(value, Tensor)]
    return read_tensors(source, (*graph.initializers, *tensors))


class _Conversion:
    """One pass over the nodes. A value of four dimensions is kept channels last, whatever ONNX says of it."""

    def __init__(self, graph: OnnxGraph, values: dict[str, Array], file: TfliteFile) -> None:
        self._graph, self._values, self._file = graph, values, file
        self._index: dict[str, int] = {}
        self._shape: dict[str, tuple[int, ...]] = {}
        self._positive: set[str] = set()
        self._users: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._users.setdefault(name, []).append(node)
        self._fused: dict[str, str] = {}

    def run(self, target: Path) -> None:
        for value in self._graph.inputs:
            self._add(value.name, _channels_last((1, *(dim for dim in (value.dims or ())[1:] if isinstance(dim, int)))))
        for node in self._graph.nodes:
            if node.op_type not in ("Constant", "Identity") and node.outputs[0] not in self._fused:
                self._convert(node)
        outputs = [self._index[value.name] for value in self._graph.outputs]
        self._file.save(target, [self._index[value.name] for value in self._graph.inputs], outputs)

    def _convert(self, node: Node) -> None:
        if node.op_type not in _OPERATORS:
            raise InputError(
                f"{node.op_type} is not supported by the converter", hint="choose another model or another engine"
            )
        _OPERATORS[node.op_type](self, node)

    def _add(self, name: str, shape: tuple[int, ...]) -> int:
        self._index[name], self._shape[name] = self._file.tensor(name, shape), shape
        return self._index[name]

    def _activation(self, node: Node) -> tuple[str, int]:
        """Return the name of the result and the activation, taking in a ReLU that alone uses this node's output."""
        name = node.outputs[0]
        users = self._users.get(name, [])
        kind = self._kind(users[0]) if len(users) == 1 else _NO_ACTIVATION
        if kind == _NO_ACTIVATION:
            return name, kind
        result = users[0].outputs[0]
        self._fused[result] = name
        self._positive.add(result)
        return result, kind

    def _kind(self, node: Node) -> int:
        if node.op_type == "Relu":
            return _RELU
        bounds = [float(self._values[name]) for name in node.inputs[1:]] if node.op_type == "Clip" else []
        return _RELU6 if bounds == [0.0, 6.0] else _NO_ACTIVATION

    def conv(self, node: Node) -> None:
        weight, bias = (self._values[name] for name in node.inputs[1:3])
        stride, group = _ints(node, "strides")[0], int(_number(node, "group", 1))
        value, padding, size = self._pad_input(node, weight.shape[2], stride)
        result, activation = self._activation(node)
        depthwise = group > 1
        turned = weight.transpose(1, 2, 3, 0) if depthwise else weight.transpose(0, 2, 3, 1)
        inputs = [value, self._file.constant(node.inputs[1], turned), self._file.constant(node.inputs[2], bias)]
        output = self._add(result, (1, *size, weight.shape[0]))
        code = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        extra = {"depthMultiplier": 1} if depthwise else {}
        self._file.operator(
            code, inputs, output, "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions",
            padding=padding, strideW=stride, strideH=stride, fusedActivationFunction=activation,
            dilationWFactor=1, dilationHFactor=1, **extra,
        )  # fmt: skip

    def max_pool(self, node: Node) -> None:
        kernel, stride = _ints(node, "kernel_shape")[0], _ints(node, "strides")[0]
        value, padding, size = self._pad_input(node, kernel, stride)
        channels = self._shape[node.inputs[0]][3]
        self._file.operator(
            "MAX_POOL_2D", [value], self._add(node.outputs[0], (1, *size, channels)), "Pool2DOptions",
            padding=padding, strideW=stride, strideH=stride, filterWidth=kernel, filterHeight=kernel,
        )  # fmt: skip
        if node.inputs[0] in self._positive:
            self._positive.add(node.outputs[0])

    def _pad_input(self, node: Node, kernel: int, stride: int) -> tuple[int, int, tuple[int, int]]:
        """Return the tensor to slide over, how to pad it, and the size of the result."""
        name = node.inputs[0]
        pads = _ints(node, "pads") or (0, 0, 0, 0)
        height, width = self._shape[name][1:3]
        size = tuple((side + pads[at] + pads[at + 2] - kernel) // stride + 1 for at, side in enumerate((height, width)))
        found = size[0], size[1]
        if not any(pads):
            return self._index[name], _VALID, found
        if all((pads[at], pads[at + 2]) == _same(side, kernel, stride) for at, side in enumerate((height, width))):
            return self._index[name], _SAME, found
        if node.op_type == "MaxPool" and name not in self._positive:
            raise InputError(
                f"{node.outputs[0]} pads values that may be negative, which is not supported",
                hint="choose another engine",
            )
        return self._pad(name, pads), _VALID, found

    def _pad(self, name: str, pads: tuple[int, ...]) -> int:
        """Add zeros around the picture."""
        _, height, width, channels = self._shape[name]
        around = np.array([[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]], np.int32)
        shape = (1, height + pads[0] + pads[2], width + pads[1] + pads[3], channels)
        output = self._file.tensor(f"{name}.padded", shape)
        self._file.operator(
            "PAD", [self._index[name], self._file.constant(f"{name}.pads", around)], output, "PadOptions"
        )
        return output

    def gemm(self, node: Node) -> None:
        weight, bias = (self._values[name] for name in node.inputs[1:3])
        result, activation = self._activation(node)
        constants = [
            self._file.constant(name, array) for name, array in zip(node.inputs[1:3], (weight, bias), strict=True)
        ]
        output = self._add(result, (1, weight.shape[0]))
        inputs = [self._index[node.inputs[0]], *constants]
        self._file.operator(
            "FULLY_CONNECTED", inputs, output, "FullyConnectedOptions", fusedActivationFunction=activation
        )

    def add(self, node: Node) -> None:
        result, activation = self._activation(node)
        output = self._add(result, self._shape[node.inputs[0]])
        inputs = [self._index[name] for name in node.inputs]
        self._file.operator("ADD", inputs, output, "AddOptions", fusedActivationFunction=activation)

    def relu(self, node: Node) -> None:
        self._file.operator(
            "RELU", [self._index[node.inputs[0]]], self._add(node.outputs[0], self._shape[node.inputs[0]])
        )

    def leaky_relu(self, node: Node) -> None:
        output = self._add(node.outputs[0], self._shape[node.inputs[0]])
        alpha = _number(node, "alpha", 0.01)
        self._file.operator("LEAKY_RELU", [self._index[node.inputs[0]]], output, "LeakyReluOptions", alpha=alpha)

    def average(self, node: Node) -> None:
        channels = self._shape[node.inputs[0]][3]
        inputs = [self._index[node.inputs[0]], self._file.constant(f"{node.outputs[0]}.axes", _SPATIAL)]
        self._file.operator("MEAN", inputs, self._add(node.outputs[0], (1, channels)), "ReducerOptions", keepDims=False)

    def flatten(self, node: Node) -> None:
        """The mean has already dropped the two axes of size one that this would drop."""
        name = node.inputs[0]
        if len(self._shape[name]) != 2:
            raise InputError(
                f"{node.outputs[0]} flattens an image, which is not supported", hint="choose another engine"
            )
        self._index[node.outputs[0]], self._shape[node.outputs[0]] = self._index[name], self._shape[name]


_OPERATORS: dict[str, Callable[[_Conversion, Node], None]] = {
    "Conv": _Conversion.conv,
    "MaxPool": _Conversion.max_pool,
    "Gemm": _Conversion.gemm,
    "Add": _Conversion.add,
    "Relu": _Conversion.relu,
    "LeakyRelu": _Conversion.leaky_relu,
    "GlobalAveragePool": _Conversion.average,
    "Flatten": _Conversion.flatten,
}


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[2], shape[3], shape[1]) if len(shape) == 4 else shape


def _same(side: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return what the format's SAME pads before and after: the odd one comes after."""
    total = max((math.ceil(side / stride) - 1) * stride + kernel - side, 0)
    return total // 2, total - total // 2


def _ints(node: Node, name: str) -> tuple[int, ...]:
    found: Any = node.attributes.get(name)
    return tuple(int(item) for item in found) if isinstance(found, tuple) else ()


def _number(node: Node, name: str, default: float) -> float:
    found = node.attributes.get(name)
    return found if isinstance(found, (int, float)) else default


_SCHEMA_VERSION = 3
_ALIGNMENT_BYTES = 16
_TYPES = {"float32": "FLOAT32", "int32": "INT32"}


@dataclass(frozen=True)
class _Buffer:
    """Bytes of a tensor at an address that every kernel can load from; the generated writer would not align them."""

    data: bytes

    def Pack(self, builder: Any) -> int:  # noqa: N802 - the generated code calls it so
        from ai_edge_litert import schema_py_generated as schema

        vector = 0
        if self.data:
            builder.StartVector(1, len(self.data), _ALIGNMENT_BYTES)
            builder.head -= len(self.data)
            builder.Bytes[builder.head : builder.head + len(self.data)] = self.data
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if self.data:
            schema.BufferAddData(builder, vector)
        packed: int = schema.BufferEnd(builder)
        return packed


class TfliteFile:
    """A file under construction. Every tensor without contents has the batch as its first, dynamic dimension."""

    def __init__(self, name: str) -> None:
        from ai_edge_litert import schema_py_generated as schema

        self._schema = schema
        self._name = name
        self._codes: dict[int, int] = {}
        # By the format's rule buffer 0 is empty, and what has no contents points to it.
        self._buffers: list[_Buffer] = [_Buffer(b"")]
        self._tensors: list[Any] = []
        self._operators: list[Any] = []

    def tensor(self, name: str, shape: Sequence[int]) -> int:
        """Add a tensor that is computed or fed."""
        made = self._schema.TensorT()
        made.name, made.shape, made.buffer = name.encode(), list(shape), 0
        made.shapeSignature = [-1, *shape[1:]]
        made.type = self._schema.TensorType.FLOAT32
        self._tensors.append(made)
        return len(self._tensors) - 1

    def constant(self, name: str, values: Array) -> int:
        made = self._schema.TensorT()
        made.name, made.shape, made.buffer = name.encode(), list(values.shape), len(self._buffers)
        made.type = getattr(self._schema.TensorType, _TYPES[values.dtype.name])
        self._buffers.append(_Buffer(np.ascontiguousarray(values).tobytes()))
        self._tensors.append(made)
        return len(self._tensors) - 1

    def operator(
        self, code: str, inputs: Sequence[int], output: int, options: str = "", **settings: int | float | bool
    ) -> None:
        """Add an operator; `options` names its table of settings, as in `Conv2DOptions`."""
        number = getattr(self._schema.BuiltinOperator, code)
        made = self._schema.OperatorT()
        made.opcodeIndex = self._codes.setdefault(number, len(self._codes))
        made.inputs, made.outputs = list(inputs), [output]
        if options:
            made.builtinOptionsType = getattr(self._schema.BuiltinOptions, options)
            made.builtinOptions = getattr(self._schema, f"{options}T")()
            for key, value in settings.items():
                setattr(made.builtinOptions, key, value)
        self._operators.append(made)

    def save(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        import flatbuffers

        schema, graph = self._schema, self._schema.SubGraphT()
        graph.name, graph.tensors, graph.operators = self._name.encode(), self._tensors, self._operators
        graph.inputs, graph.outputs = list(inputs), list(outputs)
        model = schema.ModelT()
        model.version, model.description = _SCHEMA_VERSION, b"prony"
        model.operatorCodes = [self._code(number) for number in self._codes]
        model.subgraphs, model.buffers = [graph], self._buffers
        builder = flatbuffers.Builder(sum(len(buffer.data) for buffer in self._buffers) + 2**16)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        path.write_bytes(builder.Output())

    def _code(self, number: int) -> Any:
        made = self._schema.OperatorCodeT()
        # Old readers look at the small field, new ones at the large; every operator used here fits into both.
        made.builtinCode = made.deprecatedBuiltinCode = number
        made.version = 1
        return made
