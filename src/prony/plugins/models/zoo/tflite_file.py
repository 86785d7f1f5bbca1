"""Tensors and operators in, a .tflite file out. Needs the schema that comes with ai-edge-litert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prony.ports.engine import Array

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
