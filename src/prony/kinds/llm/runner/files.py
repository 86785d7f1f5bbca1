"""Find out whether the files of a language model are whole, without its weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prony.errors import InputError, NotFoundError
from prony.ports.llm import SEEDED
from prony.ports.models import FOLDER, FOLDER_MARKS, GENAI_FOLDER, OPENVINO_FOLDER, find_folder_formats
from prony.runner.gguf_header import read_gguf_facts

_AGAIN = "fetch it again"
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_SAFE = ".safetensors"
_OPENVINO_WEIGHTS = "openvino_model.bin"
_LONGEST_HEAD = 2**28  # bytes: what a damaged file says of its head is not believed
# Where each format has its tokenizer: one of these files.
_TOKENIZERS = {
    FOLDER: ("tokenizer.json", "tokenizer.model", "vocab.json"), GENAI_FOLDER: ("tokenizer.json",),
    OPENVINO_FOLDER: ("openvino_tokenizer.xml",),
}  # fmt: skip


def check_model_files(path: Path, formats: Sequence[str], *, wants_texts: bool) -> int:
    """Refuse a model that lacks files or whose files are cut short; return the context that it was made for, 0: any.

    Args:
        path: The file or the folder.
        formats: What the engine loads; a folder must have been found to be one of them.
        wants_texts: A tokenizer is needed too.

    Raises:
        InputError: It says which file is missing or damaged.
    """
    if path.is_file():
        return int(read_gguf_facts(path)["max_position_embeddings"]) if path.suffix.lower() == ".gguf" else 0
    here = {item.name for item in path.iterdir()}
    kind = next(one for one in find_folder_formats(here) if one in formats)
    if wants_texts and here.isdisjoint(_TOKENIZERS[kind]):
        raise InputError(
            f"{path.name} has no tokenizer", hint=f"put {_TOKENIZERS[kind][0]} next to {FOLDER_MARKS[kind]}",
            code="no_tokenizer",
        )  # fmt: skip
    if kind == OPENVINO_FOLDER:
        _require_file(path / _OPENVINO_WEIGHTS)
        return 0
    about = _read_json(path / FOLDER_MARKS[kind])
    if kind == GENAI_FOLDER:
        return _check_graph(path, about)
    if SEEDED not in here:
        _check_weights(path, here)
    return _number(about, "max_position_embeddings")


def _check_graph(folder: Path, about: dict[str, Any]) -> int:
    model = about.get("model")
    model = model if isinstance(model, dict) else {}
    decoder = model.get("decoder")
    if isinstance(decoder, dict) and isinstance(decoder.get("filename"), str):
        _require_file(folder / decoder["filename"])
    return _number(model, "context_length")


def _check_weights(folder: Path, names: set[str]) -> None:
    found = sorted(name for name in names if name.endswith(_WEIGHTS))
    for index in sorted(name for name in names if name.endswith(".index.json")):
        if index.removesuffix(".index.json") not in names:
            shards = _read_json(folder / index).get("weight_map")
            found += sorted(set(map(str, shards.values()))) if isinstance(shards, dict) else []
    if not found:
        raise NotFoundError(
            f"{folder.name} has no weights", hint=f"put its {_SAFE} files next to config.json", code="missing_weights"
        )
    for name in dict.fromkeys(found):
        _require_file(folder / name)
        if name.endswith(_SAFE):
            _check_safetensors(folder / name)


def _require_file(path: Path) -> None:
    where = f"{path.parent.name}/{path.name}"
    if not path.is_file():
        raise NotFoundError(f"{where} is missing", hint="copy it into the folder of the model", code="missing_weights")
    if not path.stat().st_size:
        raise InputError(f"{where} is empty", hint=_AGAIN, code="damaged_model")


def _check_safetensors(path: Path) -> None:
    """Refuse a file that ends before its tensors do: https://github.com/huggingface/safetensors#format."""
    size = path.stat().st_size
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8).ljust(8, b"\xff"))
        head = file.read(length) if length <= min(size, _LONGEST_HEAD) else b""
    try:
        tensors = json.loads(head)
        end = max((int(one["data_offsets"][1]) for name, one in tensors.items() if name != "__metadata__"), default=0)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as exc:
        raise InputError(
            f"{path.parent.name}/{path.name} is not a complete safetensors file", hint=_AGAIN, code="damaged_model"
        ) from exc
    if size < 8 + length + end:
        raise InputError(f"{path.parent.name}/{path.name} is cut short", hint=_AGAIN, code="damaged_model")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise InputError(
            f"{path.parent.name}/{path.name} is not JSON: {exc}", hint="check that the file is complete",
            code="damaged_model",
        ) from exc  # fmt: skip
    return found if isinstance(found, dict) else {}


def _number(about: dict[str, Any], name: str) -> int:
    value = about.get(name)
    return value if isinstance(value, int) else 0
