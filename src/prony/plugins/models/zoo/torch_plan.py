"""Plan the PyTorch steps of an ONNX graph, fusing what PyTorch has one kernel for.

A person who writes these models for PyTorch calls `linear` and `gelu`; ONNX spells them out. Timing the spelt-out
form would show PyTorch slower than anyone runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prony.ports.engine import Array
from prony.runner.onnx_file import Node, OnnxGraph


@dataclass(frozen=True)
class Step:
    """One call. An input is the name of a value, or a constant: a number or a list of numbers."""

    op_type: str
    inputs: tuple[Any, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


def plan_steps(graph: OnnxGraph, constants: Mapping[str, Array], weights: Mapping[str, Array]) -> list[Step]:
    """Return the steps in order."""
    nodes = [node for node in graph.nodes if node.op_type != "Constant"]
    makers = {name: node for node in nodes for name in node.outputs}
    drawn: dict[str, Step] = {}
    gone: set[str] = set()
    for node in nodes:
        found = _gelu(node, makers, constants) or _linear(node, makers, weights)
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


def _gelu(node: Node, makers: Mapping[str, Node], constants: Mapping[str, Array]) -> tuple[Step, set[str]] | None:
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


def _linear(node: Node, makers: Mapping[str, Node], weights: Mapping[str, Array]) -> tuple[Step, set[str]] | None:
    """Recognise a product with a weight and the addition of a bias."""
    product = makers.get(node.inputs[0]) if node.op_type == "Add" else None
    if product is None or product.op_type != "MatMul":
        return None
    if node.inputs[1] not in weights or product.inputs[1] not in weights:
        return None
    step = Step("Linear", (*product.inputs, node.inputs[1]), node.outputs)
    return step, {product.outputs[0]}
