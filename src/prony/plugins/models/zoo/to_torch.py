"""Convert a zoo model from ONNX to an exported program of PyTorch.

Runs under the torch engine's interpreter: it needs numpy, torch and nothing of Prony's dependencies.

Of the ONNX operators that the zoo uses, `Shape` gives a list of sizes, which stay symbols while the model is exported;
all else gives tensors.

What PyTorch has one kernel for is fused. A person who writes these models for PyTorch calls `linear` and `gelu`; ONNX
spells them out. Timing the spelt-out form would show PyTorch slower than anyone runs it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.ports.engine import Array
from prony.runner.onnx_file import Node, OnnxGraph, Tensor, read_graph, read_tensors, value_bounds

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


@dataclass(frozen=True)
class Step:
    """One call. An input is the name of a value, or a constant: a number or a list of numbers."""

    op_type: str
    inputs: tuple[Any, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def _plan_steps(graph: OnnxGraph, constants: Mapping[str, Array], weights: Mapping[str, Array]) -> list[Step]:
    """Return the steps in order."""
    nodes = [node for node in graph.nodes if node.op_type != "Constant"]
    makers = {name: node for node in nodes for name in node.outputs}
    drawn: dict[str, Step] = {}
    gone: set[str] = set()
    for node in nodes:
        found = _fuse_gelu(node, makers, constants) or _fuse_linear(node, makers, weights)
        if found is not None:
            drawn[node.outputs[0]] = found[0]
            gone |= found[1]
    plain = {name: array.tolist() for name, array in constants.items()}
    return [
        drawn.get(node.outputs[0]) or _step(node, plain) for node in nodes if node.outputs[0] not in gone
    ]  # fmt: skip


def _step(node: Node, constants: Mapping[str, Any]) -> Step:
    inputs = tuple(constants.get(name, name) for name in node.inputs)
    return Step(node.op_type, inputs, node.outputs, node.attributes)


def _fuse_gelu(node: Node, makers: Mapping[str, Node], constants: Mapping[str, Array]) -> tuple[Step, set[str]] | None:
    """Recognise x * (erf(x / sqrt 2) + 1) * 0.5 by its last product."""
    chain: list[Node] = [node]
    for op_type in ("Mul", "Add", "Erf", "Div"):
        before = makers.get(chain[-1].inputs[1 if chain[-1].op_type == "Mul" and len(chain) == 2 else 0])
        if before is None or before.op_type != op_type:
            return None
        chain.append(before)
    value = chain[-1].inputs[0]
    if node.op_type != "Mul" or node.inputs[1] not in constants or chain[1].inputs[0] != value:
        return None
    return Step("Gelu", (value,), node.outputs), {item.outputs[0] for item in chain[1:]}


def _fuse_linear(node: Node, makers: Mapping[str, Node], weights: Mapping[str, Array]) -> tuple[Step, set[str]] | None:
    """Recognise a product with a weight and the addition of a bias."""
    product = makers.get(node.inputs[0]) if node.op_type == "Add" else None
    if product is None or product.op_type != "MatMul":
        return None
    if node.inputs[1] not in weights or product.inputs[1] not in weights:
        return None
    step = Step("Linear", (*product.inputs, node.inputs[1]), node.outputs)
    return step, {product.outputs[0]}


# Two, because torch.export takes a size of one for a constant.
_EXAMPLE_BATCH = 2


def write_pt2(source: Path, target: Path) -> None:
    """Convert one file."""
    import torch

    graph = read_graph(source)
    inlined = [value for node in graph.nodes if isinstance(value := node.attributes.get("value"), Tensor)]
    arrays = read_tensors(source, (*graph.initializers, *inlined))
    weights = {tensor.name: arrays[tensor.name] for tensor in graph.initializers}
    steps = _plan_steps(graph, {tensor.name: arrays[tensor.name] for tensor in inlined}, weights)
    unknown = {step.op_type for step in steps} - set(OPERATORS)
    if unknown:
        raise InputError(
            f"{', '.join(sorted(unknown))} is not supported by the converter", hint="choose another engine"
        )
    module = _module(torch, graph, steps, weights)
    with torch.inference_mode():
        program = torch.export.export(module, _examples(torch, graph), dynamic_shapes=_dynamic(torch, graph))
    torch.export.save(program, target, extra_files={"prony.json": _description(graph)})


def _module(torch: Any, graph: OnnxGraph, steps: Sequence[Step], weights: Mapping[str, Array]) -> Any:
    """Return a module with the graph's inputs as its arguments and its outputs in a dictionary."""
    module = torch.nn.Module()
    for name, array in weights.items():
        # Copied, because the file's bytes are not writable and torch would complain of it.
        module.register_parameter(_identifier(name), torch.nn.Parameter(torch.tensor(array), requires_grad=False))
    names = [value.name for value in graph.inputs]
    outputs = [value.name for value in graph.outputs]
    forward = _forward(module, steps, names, outputs, weights)
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    module.forward = forward
    return module.eval()


def _forward(
    module: Any, steps: Sequence[Step], names: list[str], outputs: list[str], weights: Mapping[str, Array]
) -> Callable[..., dict[str, Any]]:
    def forward(*args: Any) -> dict[str, Any]:
        values = dict(zip(names, args, strict=True)) | {name: getattr(module, _identifier(name)) for name in weights}
        for step in steps:
            arguments = [values[item] if isinstance(item, str) else item for item in step.inputs]
            found = OPERATORS[step.op_type](step.attributes, *arguments)
            values.update(zip(step.outputs, found if isinstance(found, tuple) else (found,), strict=True))
        return {name: values[name] for name in outputs}

    return forward


def _identifier(name: str) -> str:
    return name.replace(".", "_")


def _examples(torch: Any, graph: OnnxGraph) -> tuple[Any, ...]:
    """Return inputs of the suggested sizes: the engine offers the sizes it was exported with."""
    sizes = graph.suggested_axes | {"batch": _EXAMPLE_BATCH}
    examples = []
    for value in graph.inputs:
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in value.dims or ()]
        # Ones are right for every input of the zoo: a token, a mask, a picture, a cache.
        examples.append(torch.ones(shape, dtype=getattr(torch, value.dtype)))
    return tuple(examples)


def _dynamic(torch: Any, graph: OnnxGraph) -> dict[str, dict[int, Any]]:
    auto = torch.export.Dim.AUTO
    return {
        value.name: {axis: auto for axis, dim in enumerate(value.dims or ()) if isinstance(dim, str)}
        for value in graph.inputs
    }


def _description(graph: OnnxGraph) -> str:
    """Say what the format has no place for: the names of axes, their suggested sizes, the bounds of values."""
    bounds = {name: below for name, (below, _) in value_bounds(graph).items()}
    inputs = {value.name: {"dims": value.dims, "below": bounds.get(value.name)} for value in graph.inputs}
    return json.dumps({"axes": graph.suggested_axes, "inputs": inputs})
