"""PyTorch functions for the ONNX operators that the zoo uses.

`Shape` gives a list of sizes, which stay symbols while the model is exported; all else gives tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Attributes = Mapping[str, Any]


def _conv(attributes: Attributes, value: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    top, left, *_ = attributes["pads"]
    return functional.conv2d(
        value, weight, bias, stride=attributes["strides"], padding=(top, left), groups=attributes["group"]
    )


def _max_pool(attributes: Attributes, value: Any) -> Any:
    from torch.nn import functional

    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    kernel, strides = attributes["kernel_shape"], attributes["strides"]
    if (top, left) == (bottom, right):
        return functional.max_pool2d(value, kernel, strides, padding=(top, left))
    padded = functional.pad(value, (left, right, top, bottom), value=float("-inf"))
    return functional.max_pool2d(padded, kernel, strides)


def _leaky_relu(attributes: Attributes, value: Any) -> Any:
    from torch.nn import functional

    return functional.leaky_relu(value, attributes["alpha"])


def _clip(_: Attributes, value: Any, low: float, high: float) -> Any:
    from torch.nn import functional

    return functional.hardtanh(value, low, high)


def _average(_: Attributes, value: Any) -> Any:
    return value.mean(dim=(2, 3), keepdim=True)


def _gemm(_: Attributes, value: Any, weight: Any, bias: Any = None) -> Any:
    from torch.nn import functional

    return functional.linear(value, weight, bias)


def _linear(_: Attributes, value: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.linear(value, weight.t(), bias)


def _gelu(_: Attributes, value: Any) -> Any:
    from torch.nn import functional

    return functional.gelu(value)


def _layer_norm(attributes: Attributes, value: Any, weight: Any, bias: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(value, weight.shape, weight, bias, attributes["epsilon"])


def _gather(attributes: Attributes, table: Any, index: Any) -> Any:
    from torch.nn import functional

    if isinstance(index, int):
        return table.select(attributes["axis"], index)
    if isinstance(index, list):  # one row, whose number is a size
        return table.narrow(0, index[0], 1)
    return functional.embedding(index, table)


def _slice(_: Attributes, table: Any, start: list[int], end: list[Any], axes: list[int]) -> Any:
    return table.narrow(axes[0], start[0], end[0])


def _reshape(_: Attributes, value: Any, shape: list[int]) -> Any:
    return value.reshape([value.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def _unsqueeze(_: Attributes, value: Any, axes: list[int]) -> Any:
    for axis in axes:
        value = value.unsqueeze(axis)
    return value


def _concat(attributes: Attributes, *values: Any) -> Any:
    import torch

    return torch.cat(values, dim=attributes["axis"])


OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda _, left, right: left + right,
    "Sub": lambda _, left, right: left - right,
    "Mul": lambda _, left, right: left * right,
    "Div": lambda _, left, right: left / right,
    "MatMul": lambda _, left, right: left @ right,
    "Relu": lambda _, value: value.relu(),
    "Tanh": lambda _, value: value.tanh(),
    "Softmax": lambda attributes, value: value.softmax(attributes["axis"]),
    "Transpose": lambda attributes, value: value.permute(*attributes["perm"]),
    "Flatten": lambda attributes, value: value.flatten(attributes["axis"]),
    "Shape": lambda attributes, value: list(value.shape[attributes["start"] : attributes["end"]]),
    "Squeeze": lambda _, value, axes: value.squeeze(axes[0]),
    "Split": lambda attributes, value: value.chunk(3, dim=attributes["axis"]),
    "Cast": lambda _, value: value.float(),
    "Conv": _conv,
    "MaxPool": _max_pool,
    "LeakyRelu": _leaky_relu,
    "Clip": _clip,
    "GlobalAveragePool": _average,
    "Gemm": _gemm,
    "Linear": _linear,
    "Gelu": _gelu,
    "LayerNormalization": _layer_norm,
    "Gather": _gather,
    "Slice": _slice,
    "Reshape": _reshape,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
}
