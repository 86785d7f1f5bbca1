"""Transformers: a graph in, layers added to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from prony.plugins.models.zoo.graph import Dims, Graph, xavier


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


def feed_forward(graph: Graph, value: str, width: int, *, name: str) -> str:
    inner = gelu(graph, linear(graph, value, width, 4 * width, name=f"{name}.up"), name=f"{name}.gelu")
    return linear(graph, inner, 4 * width, width, name=f"{name}.down")


def bert_mini(graph: Graph) -> None:
    _bert(graph, BERT_MINI)


def bert_base(graph: Graph) -> None:
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
        fed = feed_forward(graph, value, size.width, name=f"{name}.ffn")
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


def gpt_step(graph: Graph) -> None:
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
    fed = feed_forward(graph, norm(graph, value, size.width, name=f"{name}.norm1"), size.width, name=f"{name}.ffn")
    return graph.node("Add", value, fed, name=f"{name}.add1"), keys, values
