"""Convolutional networks: a graph in, layers added to it. Batch norms are folded into the convolutions, as deployed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from prony.plugins.models.zoo.graph import Graph, he, xavier

BIAS_SCALE = 0.1


@dataclass(frozen=True)
class Shape:
    """A square convolution."""

    channels_in: int
    channels_out: int
    kernel: int = 3
    stride: int = 1
    groups: int = 1
    # Linear layers (nothing after them, or an addition) take a smaller scale than those before a ReLU.
    linear: bool = False
    gain: float = 1.0


def conv(graph: Graph, value: str, shape: Shape, *, name: str) -> str:
    """Add a convolution with bias, padded by half its kernel on every side."""
    inside = shape.channels_in // shape.groups
    fan_in = inside * shape.kernel**2
    scale = shape.gain * (xavier(fan_in) if shape.linear else he(fan_in))
    weight = graph.weight(f"{name}.weight", (shape.channels_out, inside, shape.kernel, shape.kernel), scale=scale)
    bias = graph.weight(f"{name}.bias", (shape.channels_out,), scale=BIAS_SCALE)
    return graph.node(
        "Conv", value, weight, bias, name=name,
        kernel_shape=[shape.kernel] * 2, strides=[shape.stride] * 2, pads=[shape.kernel // 2] * 4, group=shape.groups,
    )  # fmt: skip


def classifier(graph: Graph, value: str, *, features: int, classes: int = 1000) -> str:
    """Pool every channel to one number and map them to classes."""
    pooled = graph.node("GlobalAveragePool", value, name="pool")
    flat = graph.node("Flatten", pooled, name="flat", axis=1)
    weight = graph.weight("classifier.weight", (classes, features), scale=xavier(features))
    bias = graph.weight("classifier.bias", (classes,), scale=BIAS_SCALE)
    return graph.node("Gemm", flat, weight, bias, name="classifier", transB=1)


def tiny_yolov2(graph: Graph) -> None:
    """Tiny YOLOv2 for the 20 classes of Pascal VOC: 5 boxes of 25 numbers for each of 13 x 13 cells."""
    value = graph.input("image", ("batch", 3, 416, 416))
    channels = (3, 16, 32, 64, 128, 256, 512, 1024, 1024)
    for index, (inside, outside) in enumerate(pairwise(channels)):
        value = conv(graph, value, Shape(inside, outside), name=f"conv{index}")
        value = graph.node("LeakyRelu", value, name=f"leaky{index}", alpha=0.1)
        if index < 6:
            value = _yolo_pool(graph, value, index)
    value = conv(graph, value, Shape(1024, 125, kernel=1, linear=True), name="conv8")
    graph.output(value, "grid", ("batch", 125, 13, 13))


def _yolo_pool(graph: Graph, value: str, index: int) -> str:
    """Halve the picture; the sixth pool keeps its size, with one row and column of padding at the far end."""
    attributes: dict[str, Any] = {"strides": [2, 2]} if index < 5 else {"strides": [1, 1], "pads": [0, 0, 1, 1]}
    return graph.node("MaxPool", value, name=f"pool{index}", kernel_shape=[2, 2], **attributes)


# MobileNetV2's table: expansion, channels, blocks, stride of the first block.
_INVERTED = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(graph: Graph) -> None:
    """MobileNetV2 at width 1.0 for 224 x 224 pictures and 1000 classes."""
    value = graph.input("image", ("batch", 3, 224, 224))
    value = _relu6(graph, conv(graph, value, Shape(3, 32, stride=2), name="stem"))
    inside, block = 32, 0
    for expansion, outside, blocks, stride in _INVERTED:
        for position in range(blocks):
            shape = Shape(inside, outside, stride=stride if position == 0 else 1)
            value = _inverted_residual(graph, value, shape, expansion, name=f"block{block}")
            inside, block = outside, block + 1
    value = _relu6(graph, conv(graph, value, Shape(320, 1280, kernel=1), name="head"))
    graph.output(classifier(graph, value, features=1280), "logits", ("batch", 1000))


def _relu6(graph: Graph, value: str) -> str:
    return graph.node("Clip", value, graph.constant(0.0), graph.constant(6.0), name=f"{value}.relu6")


def _inverted_residual(graph: Graph, value: str, shape: Shape, expansion: int, *, name: str) -> str:
    """Expand, convolve each channel on its own, project back; add the input where the sizes allow it."""
    wide, inside = value, shape.channels_in * expansion
    if expansion > 1:
        wide = _relu6(graph, conv(graph, wide, Shape(shape.channels_in, inside, kernel=1), name=f"{name}.expand"))
    depthwise = Shape(inside, inside, stride=shape.stride, groups=inside)
    wide = _relu6(graph, conv(graph, wide, depthwise, name=f"{name}.depthwise"))
    narrow = conv(graph, wide, Shape(inside, shape.channels_out, kernel=1, linear=True), name=f"{name}.project")
    if shape.stride == 1 and shape.channels_in == shape.channels_out:
        return graph.node("Add", value, narrow, name=f"{name}.add")
    return narrow


# ResNet-50's table: inner channels, blocks, stride of the first block.
_BOTTLENECKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def resnet_50(graph: Graph) -> None:
    """ResNet-50 v1.5 (the stride sits in the 3 x 3 convolution) for 224 x 224 pictures and 1000 classes."""
    value = graph.input("image", ("batch", 3, 224, 224))
    value = graph.node("Relu", conv(graph, value, Shape(3, 64, kernel=7, stride=2), name="stem"), name="stem.relu")
    value = graph.node("MaxPool", value, name="stem.pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inside = 64
    for stage, (width, blocks, stride) in enumerate(_BOTTLENECKS):
        for position in range(blocks):
            name = f"stage{stage}.{position}"
            value = _bottleneck(graph, value, Shape(inside, width, stride=stride if position == 0 else 1), name=name)
            inside = 4 * width
    graph.output(classifier(graph, value, features=2048), "logits", ("batch", 1000))


def _bottleneck(graph: Graph, value: str, shape: Shape, *, name: str) -> str:
    """Squeeze, convolve, widen fourfold, and add the shortcut."""
    width, outside = shape.channels_out, 4 * shape.channels_out
    inner = conv(graph, value, Shape(shape.channels_in, width, kernel=1), name=f"{name}.squeeze")
    inner = graph.node("Relu", inner, name=f"{name}.relu0")
    inner = conv(graph, inner, Shape(width, width, stride=shape.stride), name=f"{name}.conv")
    inner = graph.node("Relu", inner, name=f"{name}.relu1")
    # Half the scale on the branch: sixteen additions would otherwise let the variance grow without bound.
    inner = conv(graph, inner, Shape(width, outside, kernel=1, linear=True, gain=0.5), name=f"{name}.widen")
    shortcut = value
    if shape.channels_in != outside:
        across = Shape(shape.channels_in, outside, kernel=1, stride=shape.stride, linear=True)
        shortcut = conv(graph, value, across, name=f"{name}.shortcut")
    return graph.node("Relu", graph.node("Add", inner, shortcut, name=f"{name}.add"), name=f"{name}.relu2")
