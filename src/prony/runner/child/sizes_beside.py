"""Read the sizes that the files beside a model, or its own metadata, suggest for axes that it leaves open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prony.ports.engine import UNKNOWN_RANK, TensorSpec
from prony.runner.child.sizes import SEQUENCE, USUAL_SEQUENCE, axis_word

# How the source of a size begins that was read from a file or metadata: nobody gave it, and it is no guess either.
BESIDE = "beside: "
# A size, and where it is written.
Suggestion = tuple[int, str]
_LARGEST_FILE = 2**26


def suggest_from_files(specs: Sequence[TensorSpec], model: str) -> list[TensorSpec]:
    """Return the inputs with sizes for open axes that the files beside a model tell."""
    if not any(isinstance(dim, str | None) for spec in specs for dim in spec.shape):
        return list(specs)
    return add_suggestions(specs, dict(_read_folder(Path(model))))


def suggest_from_metadata(metadata: Mapping[str, str]) -> dict[str, Suggestion]:
    """Return the sizes that exporters write into a model, by the word of an axis."""
    try:
        written = json.loads(metadata.get("imgsz", "null"))
    except json.JSONDecodeError:
        return {}
    return dict(_sides(written, f"{BESIDE}the model's metadata, imgsz"))


def add_suggestions(specs: Sequence[TensorSpec], sizes: Mapping[str, Suggestion]) -> list[TensorSpec]:
    """Return the inputs with these sizes, by the word of an axis, for open axes that have none yet."""
    return [replace(spec, suggested=_find(spec, sizes) | dict(spec.suggested)) for spec in specs]


def _find(spec: TensorSpec, sizes: Mapping[str, Suggestion]) -> dict[int, Suggestion]:
    if spec.shape == UNKNOWN_RANK:
        return {}
    found: dict[int, Suggestion] = {}
    for position, dim in enumerate(spec.shape):
        word = None if isinstance(dim, int) else axis_word(spec, position)
        # What counts tokens speaks of inputs of whole numbers alone: other sequences are frames.
        if word is not None and word in sizes and (word != SEQUENCE or "int" in spec.dtype):
            found[position] = sizes[word]
    return found


def _read_folder(model: Path) -> Iterator[tuple[str, Suggestion]]:
    """Yield (word, size); what comes later counts more. Some keep the model in a folder `onnx` below the others."""
    folder = model.parent.parent if model.parent.name == "onnx" else model.parent
    for name, read in _FILES.items():
        if (content := _read_json(folder / name)) is not None:
            yield from read(content, f"{BESIDE}{name}")


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return a file's contents; None where it is not there or is something else of that name."""
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return None
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _read_config(content: dict[str, Any], source: str) -> Iterator[tuple[str, Suggestion]]:
    for part in (content.get("vision_config"), content):
        if isinstance(part, dict):
            yield from _sides(part.get("image_size"), f"{source}, image_size")
            yield from _one("channels", part.get("num_channels"), f"{source}, num_channels")
    yield from _at_most(content, "max_position_embeddings", source)


def _read_preprocessor(content: dict[str, Any], source: str) -> Iterator[tuple[str, Suggestion]]:
    yield from _sides(content.get("size"), f"{source}, size")
    if content.get("do_center_crop", True):
        yield from _sides(content.get("crop_size"), f"{source}, crop_size")
    yield from _one("samples", content.get("n_samples"), f"{source}, n_samples")


def _read_tokenizer_config(content: dict[str, Any], source: str) -> Iterator[tuple[str, Suggestion]]:
    yield from _at_most(content, "model_max_length", source)


def _read_tokenizer(content: dict[str, Any], source: str) -> Iterator[tuple[str, Suggestion]]:
    padding, cut = content.get("padding"), content.get("truncation")
    if isinstance(cut, dict):
        yield from _at_most(cut, "max_length", f"{source}, truncation")
    strategy = padding.get("strategy") if isinstance(padding, dict) else None
    if isinstance(strategy, dict):
        yield from _one(SEQUENCE, strategy.get("Fixed"), f"{source}, padding")


_FILES = {
    "config.json": _read_config,
    "preprocessor_config.json": _read_preprocessor,
    "tokenizer_config.json": _read_tokenizer_config,
    "tokenizer.json": _read_tokenizer,
}


def _sides(value: Any, source: str) -> Iterator[tuple[str, Suggestion]]:
    """Read a side, a pair of height and width, or both by name; the shortest edge is taken for both."""
    if isinstance(value, dict):
        edge = value.get("shortest_edge")
        value = [value.get("height", edge), value.get("width", edge)]
    pair = value if isinstance(value, list) and len(value) == 2 else [value, value]
    for word, size in zip(("height", "width"), pair, strict=True):
        yield from _one(word, size, source)


def _one(word: str, size: Any, source: str) -> Iterator[tuple[str, Suggestion]]:
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        yield word, (size, source)


def _at_most(content: Mapping[str, Any], key: str, source: str) -> Iterator[tuple[str, Suggestion]]:
    """Yield the most tokens that fit, where the usual number of them does not."""
    most = content.get(key)
    if isinstance(most, int) and 0 < most < USUAL_SEQUENCE:
        yield SEQUENCE, (most, f"{source}, {key}")
