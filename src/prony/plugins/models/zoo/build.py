"""Build the ONNX file of a zoo model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prony.plugins.models.zoo import dense, language, vision
from prony.plugins.models.zoo.cards import ModelCard
from prony.plugins.models.zoo.graph import Graph

BUILDERS: dict[str, Callable[[Graph], None]] = {
    "noop": dense.noop,
    "tiny": dense.tiny,
    "mlp": dense.mlp,
    "mobilenet-v2": vision.mobilenet_v2,
    "resnet-50": vision.resnet_50,
    "tiny-yolov2": vision.tiny_yolov2,
    "bert-mini": language.bert_mini,
    "bert-base": language.bert_base,
    "gpt-step": language.gpt_step,
}


def write_onnx(card: ModelCard, path: Path) -> None:
    """Write the model; the same card gives the same bytes on the same machine."""
    graph = Graph(card.name)
    BUILDERS[card.name](graph)
    path.write_bytes(graph.model(card.axes).SerializeToString())
