"""Find the input sizes that a graph was made for, from its fixed reshapes, anchors, position tables and layers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from prony.runner.onnx_file import OnnxGraph
from prony.runner.onnx_parse import Node, Tensor

# Detectors look at a picture at these strides, and have so many anchors in each place.
_STRIDES, _ANCHORS = (8, 16, 32), (1, 2, 3, 4, 6, 9)
_LARGEST_SIDE, _LONGEST = 2048, 1_000_000
_LINES = (48, 32, 64)  # heights of lines of text
_STRONG, _WEAK = 1000, 1
_MOST = 16  # sizes that are worth a try
_POOLS = ("MaxPool", "AveragePool", "LpPool")
_FORGETS_PLACE = ("GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "Shape", "Size")


@dataclass(frozen=True)
class SideChange:
    """How a layer changes the side of a picture: kernel, stride, padding on both ends."""

    kernel: int
    stride: int
    padding: int


@dataclass(frozen=True)
class LayerPath:
    """What is known of a tensor: the layers between the input and it, and its channels."""

    steps: tuple[SideChange, ...] = ()
    channels: int | None = None


@dataclass
class _Walk:
    constants: Mapping[str, Tensor]
    flows: dict[str, LayerPath]
    sides: dict[int, int] = field(default_factory=dict)  # by size: how often it was seen
    lengths: dict[int, int] = field(default_factory=dict)
    heights: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SuggestedSizes:
    """What a graph may want, the likeliest first: sides of square pictures, heights of lines, lengths of sequences
    and waveforms."""

    sides: tuple[int, ...] = ()
    heights: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()


def suggest_sizes(graph: OnnxGraph) -> SuggestedSizes:
    """Return the input sizes that a graph may want."""
    walk = _walk(graph)
    return SuggestedSizes(
        _rank(walk.sides, _LARGEST_SIDE), _rank(walk.heights, _LARGEST_SIDE), _rank(walk.lengths, _LONGEST)
    )


def _rank(votes: Mapping[int, int], largest: int) -> tuple[int, ...]:
    return tuple(sorted((size for size in votes if 1 < size <= largest), key=lambda size: -votes[size])[:_MOST])


def _walk(graph: OnnxGraph) -> _Walk:
    """Follow each picture through the graph, which ONNX keeps in topological order, and collect what fits it."""
    constants = {tensor.name: tensor for tensor in graph.initializers}
    nodes = (*graph.nodes, *graph.inner_nodes)
    for node in nodes:
        value = node.attributes.get("value")
        if node.op_type == "Constant" and isinstance(value, Tensor) and node.outputs:
            constants[node.outputs[0]] = value
    walk = _Walk(constants, {value.name: LayerPath() for value in graph.inputs})
    for node in nodes:
        _visit(walk, node)
    return walk


def _visit(walk: _Walk, node: Node) -> None:
    known = [walk.flows[name] for name in node.inputs if name in walk.flows]
    if not known or node.op_type in _FORGETS_PLACE:
        return
    flow = max(known, key=lambda one: len(one.steps))
    fixed = [walk.constants[name] for name in node.inputs if name in walk.constants]
    if node.op_type == "Conv" or node.op_type in _POOLS:
        flow = _after_layer(flow, node, fixed)
    elif node.op_type == "Squeeze" and flow.steps and _squeezes_height(node, fixed):
        walk.heights[_before_layers(1, flow.steps, _LINES)] = 1
    else:
        for count, weight in _counts(node, flow, fixed):
            walk.lengths[count] = walk.lengths.get(count, 0) + weight
            for side in _sides_of(count, flow):
                walk.sides[side] = walk.sides.get(side, 0) + weight
    walk.flows.update(dict.fromkeys(node.outputs, flow))


def _after_layer(flow: LayerPath, node: Node, fixed: Sequence[Tensor]) -> LayerPath:
    weight = next((tensor.dims for tensor in fixed if len(tensor.dims) > 2), ())
    kernel = _first(node, "kernel_shape") or (weight[-1] if weight else 1)
    spread = (kernel - 1) * (_first(node, "dilations") or 1) + 1
    stride = _first(node, "strides") or 1
    pads = node.attributes.get("pads")
    padding = int(pads[0] + pads[len(pads) // 2]) if isinstance(pads, tuple) and pads else 0
    if str(node.attributes.get("auto_pad", "")).startswith("SAME"):
        padding = spread - 1
    channels = weight[0] if node.op_type == "Conv" and weight else flow.channels
    return LayerPath((*flow.steps, SideChange(spread, stride, padding)), channels)


def _squeezes_height(node: Node, fixed: Sequence[Tensor]) -> bool:
    """Does it take a height of one away? What reads lines of text makes their height into one."""
    axes = node.attributes.get("axes")
    named = axes if isinstance(axes, tuple) else next((tensor.integers for tensor in fixed), ())
    return tuple(named) in ((2,), (-2,))


def _first(node: Node, name: str) -> int | None:
    value = node.attributes.get(name)
    return int(value[0]) if isinstance(value, tuple) and value else None


def _counts(node: Node, flow: LayerPath, fixed: Sequence[Tensor]) -> Iterator[tuple[int, int]]:
    """Yield how many places or elements the constants of a node ask for, and how much each of them says."""
    if node.op_type == "Reshape":
        positive = [size for tensor in fixed for size in tensor.integers if size > 0]
        yield math.prod(positive), _STRONG
        yield from ((size, _STRONG) for size in positive if size > 1)
        yield from ((first * second, _STRONG) for first, second in pairwise(positive) if first > 1)
    elif node.op_type in ("Gemm", "MatMul"):
        weight = next((tensor.dims for tensor in fixed if len(tensor.dims) == 2), None)
        if weight is not None:
            rows = weight[1] if node.op_type == "Gemm" and node.attributes.get("transB") else weight[0]
            yield rows, _WEAK
            if flow.channels and rows % flow.channels == 0:
                yield rows // flow.channels, _STRONG
    elif node.op_type in ("Add", "Sub", "Mul", "Div", "Concat"):
        for dims in (tensor.dims for tensor in fixed if len(tensor.dims) > 1):
            yield from ((size, _STRONG) for size in dims if size > 1)
            # A token of its own stands before those of the places.
            yield from ((size - 1, _STRONG) for size in dims[-2:-1] if size > 2)
    elif node.op_type == "Gather":
        yield from ((tensor.dims[0], _WEAK) for tensor in fixed if len(tensor.dims) == 2)


def _sides_of(count: int, flow: LayerPath) -> Iterator[int]:
    """Yield the sides of pictures that have so many places where the flow is."""
    if (side := math.isqrt(count)) ** 2 == count and side > 1:
        yield _before_layers(side, flow.steps)
    per_place = sum((_STRIDES[-1] // stride) ** 2 for stride in _STRIDES)
    for anchors in _ANCHORS:
        cells, rest = divmod(count, per_place * anchors)
        if not rest and cells and (across := math.isqrt(cells)) ** 2 == cells:
            yield _STRIDES[-1] * across


def _before_layers(side: int, steps: Sequence[SideChange], usual: Sequence[int] = ()) -> int:
    """Return a side of the input that layers make into this one: a usual one, or else the roundest; 0 where none is."""
    low = high = side
    for step in reversed(steps):
        low = (low - 1) * step.stride + step.kernel - step.padding
        high = (high - 1) * step.stride + step.kernel - step.padding + step.stride - 1
    if not 0 < low <= high <= _LARGEST_SIDE:
        return 0
    return next((size for size in usual if low <= size <= high), max(range(low, high + 1), key=_roundness))


def _roundness(size: int) -> int:
    """Return the largest power of two that divides it: pictures have such sides."""
    return size & -size
