"""Model cards of the zoo, by name. Nothing is built or imported to list it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from prony.errors import NotFoundError
from prony.plugins.models.zoo.llm_cards import LLM_ZOO


@dataclass(frozen=True)
class ModelCard:
    """One model of the zoo.

    `macs` are the multiply-accumulates of its convolutions and matrix products at `axes`, the sizes that it suggests
    for its dynamic axes. `size_bytes` is that of the ONNX file; another release of `onnx` may add a few bytes.
    """

    name: str
    description: str
    family: str
    parameters: int
    macs: int
    size_bytes: int
    axes: Mapping[str, int] = field(default_factory=lambda: {"batch": 1})
    # The formats that it can be built in.
    formats: tuple[str, ...] = (".onnx", ".pt2")
    # Counted up when the recipe changes, so that no old file is taken for a new one.
    version: int = 1


_ALL_FORMATS = (".onnx", ".pt2", ".tflite")
_CARDS = (
    ModelCard("noop", "one ReLU on 16 numbers, to measure overheads", "dense", 0, 0, 123, formats=_ALL_FORMATS),
    ModelCard("tiny", "perceptron 16-18-16 in 3 KB", "dense", 610, 576, 2_827, formats=_ALL_FORMATS),
    ModelCard("mlp", "perceptron 784-512-512-10", "dense", 669_706, 668_672, 2_679_400, formats=_ALL_FORMATS),
    ModelCard(
        "mobilenet-v2", "MobileNetV2 1.0 for 224 x 224 pictures, 1000 classes", "convolutional",
        3_487_816, 300_774_272, 13_968_860, formats=_ALL_FORMATS,
    ),
    ModelCard(
        "resnet-50", "ResNet-50 v1.5 for 224 x 224 pictures, 1000 classes", "convolutional",
        25_530_472, 4_089_184_256, 102_139_505, formats=_ALL_FORMATS,
    ),
    ModelCard(
        "tiny-yolov2", "Tiny YOLOv2 detector for 416 x 416 pictures, 20 classes", "convolutional",
        15_858_717, 3_485_520_896, 63_437_559, formats=_ALL_FORMATS,
    ),
    ModelCard(
        "bert-mini", "BERT encoder, 4 layers of 256", "transformer",
        11_170_560, 436_273_152, 44_701_009, axes={"batch": 1, "sequence": 128},
    ),
    ModelCard(
        "bert-base", "BERT encoder, 12 layers of 768", "transformer",
        109_482_240, 11_174_215_680, 437_980_871, axes={"batch": 1, "sequence": 128},
    ),
    ModelCard(
        "gpt-step", "GPT decoder, 6 layers of 384, one token after a cache of keys and values", "transformer",
        23_328_768, 23_499_264, 93_335_849, axes={"batch": 1, "past": 128},
    ),
)  # fmt: skip
ZOO: Mapping[str, ModelCard] = {card.name: card for card in _CARDS}


def card_of(name: str) -> ModelCard:
    """Return the card of this name, or say which are near."""
    if name in ZOO:
        return ZOO[name]
    known = (*ZOO, *LLM_ZOO)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean zoo:{near[0]}?" if near else f"the zoo has {', '.join(known)}"
    raise NotFoundError(f"unknown zoo model {name!r}", hint=hint, code="unknown_model")
