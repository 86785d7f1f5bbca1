"""Small models of each format, written on the spot, with the numbers that they must give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

WEIGHTS = np.asarray([[1, 2, 3, 4], [0, -1, 0, 1], [0.5, 0.25, 0.125, 1]], dtype=np.float32)
BIAS = np.asarray([0.5, -1, 2], dtype=np.float32)


def dense(x: Any) -> Any:
    """Return what every dense model here computes."""
    return np.asarray(x, dtype=np.float64) @ WEIGHTS.T.astype(np.float64) + BIAS


def save_onnx(
    path: Path, nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], weights: dict[str, Any]
) -> Path:
    from onnx import helper, numpy_helper, save

    graph = helper.make_graph(
        list(nodes),
        "graph",
        list(inputs),
        list(outputs),
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def dense_onnx(path: Path, batch: int | str | None = "batch", dtype: Any = np.float32) -> Path:
    """Write y = x Wᵀ + b with a dynamic batch."""
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return save_onnx(
        path,
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        [helper.make_tensor_value_info("x", kind, [batch, 4])],
        [helper.make_tensor_value_info("y", kind, [batch, 3])],
        {"w": WEIGHTS.astype(dtype), "b": BIAS.astype(dtype)},
    )


def identity_onnx(path: Path, kind: int, shape: Sequence[int | str | None]) -> Path:
    from onnx import helper

    return save_onnx(
        path,
        [helper.make_node("Identity", ["x"], ["y"])],
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
        {},
    )


def encoder_onnx(path: Path) -> Path:
    """Write a sum of an embedding's rows under a mask, with a scalar beside: several inputs of several types."""
    from onnx import TensorProto, helper

    table = np.arange(50 * 4, dtype=np.float32).reshape(50, 4)
    tokens = ["batch", "sequence"]
    return save_onnx(
        path,
        [
            helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "last"], ["wide_mask"]),
            helper.make_node("Mul", ["rows", "wide_mask"], ["masked"]),
            helper.make_node("Mul", ["masked", "scale"], ["scaled"]),
            helper.make_node("ReduceSum", ["scaled", "middle"], ["y"], keepdims=0),
        ],
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, tokens),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, tokens),
            helper.make_tensor_value_info("scale", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        {"table": table, "last": np.asarray([2], dtype=np.int64), "middle": np.asarray([1], dtype=np.int64)},
    )


def dense_tflite(path: Path, batch: int = -1) -> Path:
    """Write y = x Wᵀ + b as a flat buffer of one FULLY_CONNECTED; a batch of -1 is dynamic."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    def buffer(array: Any = None) -> Any:
        made = schema.BufferT()
        made.data = None if array is None else np.frombuffer(array.tobytes(), dtype=np.uint8)
        return made

    def tensor(name: str, shape: Sequence[int], at: int, signature: Sequence[int] | None = None) -> Any:
        made = schema.TensorT()
        made.name, made.shape, made.buffer, made.type = name, list(shape), at, schema.TensorType.FLOAT32
        made.shapeSignature = None if signature is None else list(signature)
        return made

    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [0, 1, 2], [3]
    operator.builtinOptionsType = schema.BuiltinOptions.FullyConnectedOptions
    operator.builtinOptions = schema.FullyConnectedOptionsT()
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version = 1
    graph = schema.SubGraphT()
    size = abs(batch)
    graph.tensors = [
        tensor("x", [size, 4], 0, [batch, 4] if batch < 0 else None),
        tensor("w", [3, 4], 1),
        tensor("b", [3], 2),
        tensor("y", [size, 3], 0, [batch, 3] if batch < 0 else None),
    ]
    graph.inputs, graph.outputs, graph.operators = [0], [3], [operator]
    model = schema.ModelT()
    model.version, model.subgraphs, model.operatorCodes = 3, [graph], [code]
    model.buffers = [buffer(), buffer(WEIGHTS), buffer(BIAS)]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path
