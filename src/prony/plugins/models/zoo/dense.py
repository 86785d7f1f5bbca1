"""Fully connected networks: a graph in, layers added to it."""

from __future__ import annotations

from itertools import pairwise

from prony.plugins.models.zoo.graph import Graph, he, xavier


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
