"""Convert a zoo model from ONNX to an exported program of PyTorch.

Runs under the torch engine's interpreter: it needs numpy, torch and nothing of Prony's dependencies.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError
from prony.plugins.models.zoo.torch_operators import OPERATORS
from prony.plugins.models.zoo.torch_plan import Step, plan_steps
from prony.ports.engine import Array
from prony.runner.onnx_file import OnnxGraph, Tensor, read_graph, read_tensors, value_bounds

# Two, because torch.export takes a size of one for a constant.
_EXAMPLE_BATCH = 2


def write_pt2(source: Path, target: Path) -> None:
    """Convert one file."""
    import torch

    graph = read_graph(source)
    inlined = [value for node in graph.nodes if isinstance(value := node.attributes.get("value"), Tensor)]
    arrays = read_tensors(source, (*graph.initializers, *inlined))
    weights = {tensor.name: arrays[tensor.name] for tensor in graph.initializers}
    steps = plan_steps(graph, {tensor.name: arrays[tensor.name] for tensor in inlined}, weights)
    unknown = {step.op_type for step in steps} - set(OPERATORS)
    if unknown:
        raise InputError(f"{', '.join(sorted(unknown))} has no counterpart here", hint="choose another engine")
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
