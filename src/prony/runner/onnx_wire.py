"""Read the fields of a protobuf message, skipping those that are not needed.

This module is imported in the engine's child and must need nothing but the standard library.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator

Bytes = bytes | mmap.mmap
# (number, value, end): `end` is -1 for a number, else the field's bytes lie from `value` to `end`.
Field = tuple[int, int, int]
_FIXED_BYTES = {1: 8, 5: 4}


class DamagedError(ValueError):
    """The bytes do not follow the wire format."""


def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the unsigned number at `at`, and where the next thing begins."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise DamagedError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise DamagedError("a number does not end")


def fields(data: Bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message between `at` and `end`."""
    while at < end:
        tag, at = varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise DamagedError("a field has number 0")
        if kind == 0:
            value, at = varint(data, at, end)
            yield number, value, -1
            continue
        if kind == 2:
            length, at = varint(data, at, end)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            raise DamagedError(f"a field has the unknown wire type {kind}")
        if length > end - at:
            raise DamagedError("a field is longer than what holds it")
        yield number, at, at + length
        at += length


def as_signed(value: int) -> int:
    """Read an unsigned 64-bit number as two's complement, as protobuf's int64 is written."""
    return value - 2**64 if value >= 2**63 else value


def number(field: Field) -> int:
    if field[2] != -1:
        raise DamagedError(f"field {field[0]} is no number")
    return as_signed(field[1])


def span(field: Field) -> tuple[int, int]:
    if field[2] == -1:
        raise DamagedError(f"field {field[0]} is a number where a message or text belongs")
    return field[1], field[2]


def text(data: Bytes, field: Field) -> str:
    begin, end = span(field)
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError as exc:
        raise DamagedError("a text is not UTF-8") from exc


def numbers(data: Bytes, field: Field) -> list[int]:
    """Read a repeated int64, of which each may stand alone or all be packed into one field."""
    if field[2] == -1:
        return [as_signed(field[1])]
    at, end = span(field)
    found: list[int] = []
    while at < end:
        value, at = varint(data, at, end)
        found.append(as_signed(value))
    return found


def floats(data: Bytes, field: Field) -> list[float]:
    """Read a repeated float, packed or not."""
    begin, end = span(field)
    if (end - begin) % 4:
        raise DamagedError("a float is cut off")
    return list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
