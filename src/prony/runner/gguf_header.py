"""Read what the head of a GGUF file says, and find out whether the file is whole.

This module is imported in the engine's child and must need nothing but the standard library.
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from prony.errors import InputError

# GGUF, version 3: how many bytes a value of each kind has; texts and lists tell their own size.
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _LIST = 8, 9
_ALIGNMENT = 32  # of the tensors, unless the file tells another
# What a damaged file says is not believed: that much would be read into memory.
_MOST_DIMENSIONS, _LONGEST_TEXT = 8, 2**28
# Of each type of tensor: how many weights a block has, and how many bytes.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 30: (1, 2),
}  # fmt: skip


def read_gguf_facts(path: Path) -> dict[str, Any]:
    """Return the architecture and the length of context of a GGUF file, by the names that a `config.json` has.

    Raises:
        InputError: It is empty, no GGUF file, or cut short.
    """
    if not path.stat().st_size:
        raise InputError(f"{path} is empty", hint="fetch it again", code="damaged_model")
    with path.open("rb") as file:
        magic, _, tensors, pairs = struct.unpack("<4sIQQ", file.read(24).ljust(24, b"\0"))
        if magic != b"GGUF":
            raise InputError(
                f"{path} is not a GGUF file", hint="a GGUF file starts with the letters GGUF", code="damaged_model"
            )
        try:
            found = dict(_read_pair(file) for _ in range(pairs))
            ends = [_read_tensor_end(file) for _ in range(tensors)]
        except (struct.error, ValueError, OverflowError) as exc:
            raise _describe_cut(path) from exc
        alignment = found.get("general.alignment") or _ALIGNMENT
        begin = -(-file.tell() // alignment) * alignment
    if path.stat().st_size < begin + max(ends, default=0):
        raise _describe_cut(path)
    kind = found.get("general.architecture", "unknown")
    return {"model_type": kind, "max_position_embeddings": found.get(f"{kind}.context_length", 0)}


def _describe_cut(path: Path) -> InputError:
    return InputError(f"{path.name} is cut short", hint="fetch it again", code="damaged_model")


def _read_tensor_end(file: BinaryIO) -> int:
    """Return how far the next tensor reaches behind the beginning of all data; of an unknown type, where it begins."""
    _read_text(file)
    (dimensions,) = struct.unpack("<I", file.read(4))
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError(f"a tensor has {dimensions} dimensions")
    shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
    kind, offset = struct.unpack("<IQ", file.read(12))
    weights, size = _BLOCKS.get(kind, (1, 0))
    return int(offset + prod(shape) // weights * size)


def _read_pair(file: BinaryIO) -> tuple[str, Any]:
    name = _read_text(file)
    (kind,) = struct.unpack("<I", file.read(4))
    return name, _read_value(file, kind)


def _read_text(file: BinaryIO) -> str:
    (size,) = struct.unpack("<Q", file.read(8))
    if size > _LONGEST_TEXT:
        raise ValueError(f"a text has {size} bytes")
    return file.read(size).decode(errors="replace")


def _read_value(file: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _read_text(file)
    if kind == _LIST:
        inner, count = struct.unpack("<IQ", file.read(12))
        if inner in _SIZES:
            file.seek(_SIZES[inner] * count, 1)
        else:
            for _ in range(count):
                _read_value(file, inner)
        return None
    if kind not in _SIZES:
        raise ValueError(f"no value is of kind {kind}")
    data = file.read(_SIZES[kind])
    return struct.unpack("<I", data)[0] if len(data) == 4 else None
