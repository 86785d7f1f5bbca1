"""Build the ONNX files of the zoo: fully connected networks, convolutional networks and transformers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from prony.plugins.models.zoo.cards import ModelCard
from prony.plugins.models.zoo.graph import Dims, Graph, he, xavier


def _perceptron(graph: Graph, widths: tuple[int, ...]) -> None:
    value = graph.input("x", ("batch", widths[0]))
    last = len(widths) - 2
    for index, (inside, outside) in enumerate(pairwise(widths)):
        scale = xavier(inside) if index == last else he(inside)
        weight = graph.weight(f"layer{index}.weight", (outside, inside), scale=scale)
        bias = graph.weight(f"layer{index}.bias", (outside,), scale=0.1)
        value = graph.node("Gemm", value, weight, bias, name=f"layer{index}", transB=1)
        if index < last:
            value = graph.node("Relu", value, name=f"layer{index}.relu")
    graph.output(value, "y", ("batch", widths[-1]))


def noop(graph: Graph) -> None:
    """One ReLU on sixteen numbers: what is left when a model costs nothing."""
    value = graph.input("x", ("batch", 16))
    graph.output(graph.node("Relu", value, name="relu"), "y", ("batch", 16))


def tiny(graph: Graph) -> None:
    """A perceptron that fits into three kilobytes."""
    _perceptron(graph, (16, 18, 16))


def mlp(graph: Graph) -> None:
    """A digit classifier of the usual size: 28 x 28 pixels, two hidden layers of 512, ten classes."""
    _perceptron(graph, (784, 512, 512, 10))


BIAS_SCALE = 0.1


@dataclass(frozen=True)
class Convolution:
    """A square convolution."""

    channels_in: int
    channels_out: int
    kernel: int = 3
    stride: int = 1
    groups: int = 1
    # Linear layers (nothing after them, or an addition) take a smaller scale than those before a ReLU.
    linear: bool = False
    gain: float = 1.0


def conv(graph: Graph, value: str, shape: Convolution, *, name: str) -> str:
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


def _tiny_yolov2(graph: Graph) -> None:
    """Tiny YOLOv2 for the 20 classes of Pascal VOC: 5 boxes of 25 numbers for each of 13 x 13 cells."""
    value = graph.input("image", ("batch", 3, 416, 416))
    channels = (3, 16, 32, 64, 128, 256, 512, 1024, 1024)
    for index, (inside, outside) in enumerate(pairwise(channels)):
        value = conv(graph, value, Convolution(inside, outside), name=f"conv{index}")
        value = graph.node("LeakyRelu", value, name=f"leaky{index}", alpha=0.1)
        if index < 6:
            value = _yolo_pool(graph, value, index)
    value = conv(graph, value, Convolution(1024, 125, kernel=1, linear=True), name="conv8")
    graph.output(value, "grid", ("batch", 125, 13, 13))


def _yolo_pool(graph: Graph, value: str, index: int) -> str:
    """Halve the picture; the sixth pool keeps its size, with one row and column of padding at the far end."""
    attributes: dict[str, Any] = {"strides": [2, 2]} if index < 5 else {"strides": [1, 1], "pads": [0, 0, 1, 1]}
    return graph.node("MaxPool", value, name=f"pool{index}", kernel_shape=[2, 2], **attributes)


# MobileNetV2's table: expansion, channels, blocks, stride of the first block.
_INVERTED = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def _mobilenet_v2(graph: Graph) -> None:
    """MobileNetV2 at width 1.0 for 224 x 224 pictures and 1000 classes."""
    value = graph.input("image", ("batch", 3, 224, 224))
    value = _relu6(graph, conv(graph, value, Convolution(3, 32, stride=2), name="stem"))
    inside, block = 32, 0
    for expansion, outside, blocks, stride in _INVERTED:
        for position in range(blocks):
            shape = Convolution(inside, outside, stride=stride if position == 0 else 1)
            value = _inverted_residual(graph, value, shape, expansion, name=f"block{block}")
            inside, block = outside, block + 1
    value = _relu6(graph, conv(graph, value, Convolution(320, 1280, kernel=1), name="head"))
    graph.output(classifier(graph, value, features=1280), "logits", ("batch", 1000))


def _relu6(graph: Graph, value: str) -> str:
    return graph.node("Clip", value, graph.constant(0.0), graph.constant(6.0), name=f"{value}.relu6")


def _inverted_residual(graph: Graph, value: str, shape: Convolution, expansion: int, *, name: str) -> str:
    """Expand, convolve each channel on its own, project back; add the input where the sizes allow it."""
    wide, inside = value, shape.channels_in * expansion
    if expansion > 1:
        wide = _relu6(graph, conv(graph, wide, Convolution(shape.channels_in, inside, kernel=1), name=f"{name}.expand"))
    depthwise = Convolution(inside, inside, stride=shape.stride, groups=inside)
    wide = _relu6(graph, conv(graph, wide, depthwise, name=f"{name}.depthwise"))
    narrow = conv(graph, wide, Convolution(inside, shape.channels_out, kernel=1, linear=True), name=f"{name}.project")
    if shape.stride == 1 and shape.channels_in == shape.channels_out:
        return graph.node("Add", value, narrow, name=f"{name}.add")
    return narrow


# ResNet-50's table: inner channels, blocks, stride of the first block.
_BOTTLENECKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def _resnet_50(graph: Graph) -> None:
    """ResNet-50 v1.5 (the stride sits in the 3 x 3 convolution) for 224 x 224 pictures and 1000 classes."""
    value = graph.input("image", ("batch", 3, 224, 224))
    value = graph.node(
        "Relu", conv(graph, value, Convolution(3, 64, kernel=7, stride=2), name="stem"), name="stem.relu"
    )
    value = graph.node("MaxPool", value, name="stem.pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inside = 64
    for stage, (width, blocks, stride) in enumerate(_BOTTLENECKS):
        for position in range(blocks):
            name = f"stage{stage}.{position}"
            value = _bottleneck(
                graph, value, Convolution(inside, width, stride=stride if position == 0 else 1), name=name
            )
            inside = 4 * width
    graph.output(classifier(graph, value, features=2048), "logits", ("batch", 1000))


def _bottleneck(graph: Graph, value: str, shape: Convolution, *, name: str) -> str:
    """Squeeze, convolve, widen fourfold, and add the shortcut."""
    width, outside = shape.channels_out, 4 * shape.channels_out
    inner = conv(graph, value, Convolution(shape.channels_in, width, kernel=1), name=f"{name}.squeeze")
    inner = graph.node("Relu", inner, name=f"{name}.relu0")
    inner = conv(graph, inner, Convolution(width, width, stride=shape.stride), name=f"{name}.conv")
    inner = graph.node("Relu", inner, name=f"{name}.relu1")
    # Half the scale on the branch: sixteen additions would otherwise let the variance grow without bound.
    inner = conv(graph, inner, Convolution(width, outside, kernel=1, linear=True, gain=0.5), name=f"{name}.widen")
    shortcut = value
    if shape.channels_in != outside:
        across = Convolution(shape.channels_in, outside, kernel=1, stride=shape.stride, linear=True)
        shortcut = conv(graph, value, across, name=f"{name}.shortcut")
    return graph.node("Relu", graph.node("Add", inner, shortcut, name=f"{name}.add"), name=f"{name}.relu2")


@dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


BERT_MINI = Size(layers=4, width=256, heads=4, vocabulary=30522, positions=512)
BERT_BASE = Size(layers=12, width=768, heads=12, vocabulary=30522, positions=512)
GPT_STEP = Size(layers=6, width=384, heads=6, vocabulary=32000, positions=1024)


def linear(graph: Graph, value: str, inside: int, outside: int, *, name: str) -> str:
    weight = graph.weight(f"{name}.weight", (inside, outside), scale=xavier(inside))
    bias = graph.weight(f"{name}.bias", (outside,), scale=0.02)
    return graph.node("Add", graph.node("MatMul", value, weight, name=f"{name}.matmul"), bias, name=name)


def norm(graph: Graph, value: str, width: int, *, name: str) -> str:
    scale = graph.weight(f"{name}.weight", (width,), scale=0.02, mean=1.0)
    bias = graph.weight(f"{name}.bias", (width,), scale=0.02)
    return graph.node("LayerNormalization", value, scale, bias, name=name, axis=-1, epsilon=1e-5)


def gelu(graph: Graph, value: str, *, name: str) -> str:
    """The exact GELU, spelt out as exporters write it."""
    scaled = graph.node("Div", value, graph.constant(math.sqrt(2.0)), name=f"{name}.div")
    curve = graph.node("Add", graph.node("Erf", scaled, name=f"{name}.erf"), graph.constant(1.0), name=f"{name}.add")
    return graph.node("Mul", graph.node("Mul", value, curve, name=f"{name}.mul"), graph.constant(0.5), name=name)


def _feed_forward(graph: Graph, value: str, width: int, *, name: str) -> str:
    inner = gelu(graph, linear(graph, value, width, 4 * width, name=f"{name}.up"), name=f"{name}.gelu")
    return linear(graph, inner, 4 * width, width, name=f"{name}.down")


def _bert_mini(graph: Graph) -> None:
    _bert(graph, BERT_MINI)


def _bert_base(graph: Graph) -> None:
    _bert(graph, BERT_BASE)


def _bert(graph: Graph, size: Size) -> None:
    """A BERT encoder with its pooler."""
    tokens, mask, kinds = (
        graph.input(name, ("batch", "sequence"), "int64") for name in ("input_ids", "attention_mask", "token_type_ids")
    )
    value = _bert_embedding(graph, size, tokens, kinds)
    bias = _mask_bias(graph, mask)
    for layer in range(size.layers):
        name = f"layer{layer}"
        attended = _self_attention(graph, value, bias, size, name=f"{name}.attention")
        value = graph.node("Add", value, attended, name=f"{name}.add0")
        value = norm(graph, value, size.width, name=f"{name}.norm0")
        fed = _feed_forward(graph, value, size.width, name=f"{name}.ffn")
        value = graph.node("Add", value, fed, name=f"{name}.add1")
        value = norm(graph, value, size.width, name=f"{name}.norm1")
    value = graph.output(value, "last_hidden_state", ("batch", "sequence", size.width))
    first = graph.node("Gather", value, graph.constant(0), name="first", axis=1)
    pooled = graph.node("Tanh", linear(graph, first, size.width, size.width, name="pooler"), name="pooler.tanh")
    graph.output(pooled, "pooler_output", ("batch", size.width))


def _bert_embedding(graph: Graph, size: Size, tokens: str, kinds: str) -> str:
    """Sum the embeddings of token, segment and position."""
    words = graph.weight("embedding.word", (size.vocabulary, size.width), scale=1.0)
    places = graph.weight("embedding.position", (size.positions, size.width), scale=0.2)
    segments = graph.weight("embedding.segment", (2, size.width), scale=0.2)
    length = graph.node("Shape", tokens, name="length", start=1, end=2)
    place = graph.node("Slice", places, graph.constant([0]), length, graph.constant([0]), name="embedding.place")
    value = graph.node(
        "Add",
        graph.node("Gather", words, tokens, name="embedding.tokens", axis=0),
        graph.node("Gather", segments, kinds, name="embedding.kinds", axis=0),
        name="embedding.sum0",
    )
    return norm(graph, graph.node("Add", value, place, name="embedding.sum1"), size.width, name="embedding.norm")


def _mask_bias(graph: Graph, mask: str) -> str:
    """Return 0 where the mask is one and a large negative number where it is zero, broadcast over heads and queries."""
    cast = graph.node("Cast", mask, name="mask.cast", to=1)
    wide = graph.node("Unsqueeze", cast, graph.constant([1, 2]), name="mask.wide")
    inverse = graph.node("Sub", graph.constant(1.0), wide, name="mask.inverse")
    return graph.node("Mul", inverse, graph.constant(-10000.0), name="mask.bias")


def _self_attention(graph: Graph, value: str, bias: str, size: Size, *, name: str) -> str:
    def heads(kind: str, order: list[int]) -> str:
        flat = linear(graph, value, size.width, size.width, name=f"{name}.{kind}")
        shape = graph.constant([0, 0, size.heads, size.head_width])
        cut = graph.node("Reshape", flat, shape, name=f"{name}.{kind}.cut")
        return graph.node("Transpose", cut, name=f"{name}.{kind}.heads", perm=order)

    query, key, values = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1]), heads("value", [0, 2, 1, 3])
    mixed = _attend(graph, (query, key, values), size, bias=bias, name=name)
    joined = graph.node("Transpose", mixed, name=f"{name}.join", perm=[0, 2, 1, 3])
    flat = graph.node("Reshape", joined, graph.constant([0, 0, size.width]), name=f"{name}.flat")
    return linear(graph, flat, size.width, size.width, name=f"{name}.output")


def _attend(graph: Graph, parts: tuple[str, str, str], size: Size, *, bias: str | None = None, name: str) -> str:
    """Scaled dot-product attention; the keys come with their last two axes already swapped."""
    query, key, values = parts
    scores = graph.node("MatMul", query, key, name=f"{name}.scores")
    scores = graph.node("Div", scores, graph.constant(math.sqrt(size.head_width)), name=f"{name}.scaled")
    if bias is not None:
        scores = graph.node("Add", scores, bias, name=f"{name}.masked")
    weights = graph.node("Softmax", scores, name=f"{name}.softmax", axis=-1)
    return graph.node("MatMul", weights, values, name=f"{name}.mixed")


def _gpt_step(graph: Graph) -> None:
    """One step of a GPT decoder: a token and the keys and values of all before it in, logits and longer ones out."""
    size = GPT_STEP
    tokens = graph.input("input_ids", ("batch", 1), "int64")
    cache: Dims = ("batch", size.heads, "past", size.head_width)
    past = [
        (graph.input(f"past_key_{layer}", cache), graph.input(f"past_value_{layer}", cache))
        for layer in range(size.layers)
    ]
    words = graph.weight("embedding.word", (size.vocabulary, size.width), scale=xavier(size.width))
    places = graph.weight("embedding.position", (size.positions, size.width), scale=0.2 * xavier(size.width))
    # The position of the new token is the number of those before it.
    position = graph.node("Shape", past[0][0], name="position", start=2, end=3)
    value = graph.node(
        "Add",
        graph.node("Gather", words, tokens, name="embedding.tokens", axis=0),
        graph.node("Gather", places, position, name="embedding.place", axis=0),
        name="embedding.sum",
    )
    present: list[tuple[str, str]] = []
    for layer, pair in enumerate(past):
        value, *grown = _decoder_layer(graph, value, pair, size, name=f"layer{layer}")
        present.append((grown[0], grown[1]))
    value = norm(graph, value, size.width, name="norm")
    last = graph.node("Squeeze", value, graph.constant([1]), name="last")
    graph.output(graph.node("Gemm", last, words, name="head", transB=1), "logits", ("batch", size.vocabulary))
    longer: Dims = ("batch", size.heads, "past + 1", size.head_width)
    for layer, (keys, values) in enumerate(present):
        graph.output(keys, f"present_key_{layer}", longer)
        graph.output(values, f"present_value_{layer}", longer)


def _decoder_layer(graph: Graph, value: str, past: tuple[str, str], size: Size, *, name: str) -> tuple[str, str, str]:
    """Return the layer's output and the keys and values with the new token's appended."""
    normed = norm(graph, value, size.width, name=f"{name}.norm0")
    fused = linear(graph, normed, size.width, 3 * size.width, name=f"{name}.qkv")
    parts = graph.split(fused, 3, name=f"{name}.qkv.split")
    shape = graph.constant([0, size.heads, 1, size.head_width])
    query, key, new = (graph.node("Reshape", part, shape, name=f"{part}.heads") for part in parts)
    keys = graph.node("Concat", past[0], key, name=f"{name}.keys", axis=2)
    values = graph.node("Concat", past[1], new, name=f"{name}.values", axis=2)
    turned = graph.node("Transpose", keys, name=f"{name}.keys.turned", perm=[0, 1, 3, 2])
    mixed = _attend(graph, (query, turned, values), size, name=f"{name}.attention")
    flat = graph.node("Reshape", mixed, graph.constant([0, 1, size.width]), name=f"{name}.flat")
    attended = linear(graph, flat, size.width, size.width, name=f"{name}.output")
    value = graph.node("Add", value, attended, name=f"{name}.add0")
    fed = _feed_forward(graph, norm(graph, value, size.width, name=f"{name}.norm1"), size.width, name=f"{name}.ffn")
    return graph.node("Add", value, fed, name=f"{name}.add1"), keys, values


BUILDERS: dict[str, Callable[[Graph], None]] = {
    "noop": noop,
    "tiny": tiny,
    "mlp": mlp,
    "mobilenet-v2": _mobilenet_v2,
    "resnet-50": _resnet_50,
    "tiny-yolov2": _tiny_yolov2,
    "bert-mini": _bert_mini,
    "bert-base": _bert_base,
    "gpt-step": _gpt_step,
}


def write_onnx(card: ModelCard, path: Path) -> None:
    """Write the model; the same card gives the same bytes on the same machine."""
    graph = Graph(card.name)
    BUILDERS[card.name](graph)
    path.write_bytes(graph.model(card.axes).SerializeToString())
