"""Encode HTTP/2 headers and decode the few header values that a reply's framing needs.

No block is ever decoded whole. The wire tells the server that it keeps no table (SETTINGS_HEADER_TABLE_SIZE is 0), so a
name is one of the static table's or stands there in letters, and all that a reply's framing needs are decimal numbers:
`:status`, and `grpc-status` in the trailers of gRPC. Of Huffman's code only the ten digits matter then.
"""

from __future__ import annotations

from collections.abc import Iterable

# Of the static table: what is sent by its number.
_WHOLE = {
    (b":method", b"GET"): 2,
    (b":method", b"POST"): 3,
    (b":path", b"/"): 4,
    (b":scheme", b"http"): 6,
    (b":scheme", b"https"): 7,
}
_NAMES = {b":authority": 1, b":method": 2, b":path": 4, b":scheme": 6}
_STATUS_NAMES = range(8, 15)
_STATUSES = (200, 204, 206, 304, 400, 404, 500)
_STATIC = 61
# A name that is in no static table, in letters and in Huffman's code.
_SPELT = {
    b":status": "status",
    bytes.fromhex("b8848d36a3"): "status",
    b"grpc-status": "grpc",
    bytes.fromhex("9acac8b21234da8f"): "grpc",
}
# 0, 1 and 2 have five bits, the others six.
_DIGITS = {"00000": "0", "00001": "1", "00010": "2"} | {
    f"{0b011001 + digit - 3:06b}": str(digit) for digit in range(3, 10)
}


class BlockError(ValueError):
    """The block is none that a server may send to somebody who keeps no table."""


def block(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return headers as a block; nothing in it is to be kept by the server either."""
    parts: list[bytes] = []
    for name, value in headers:
        whole = _WHOLE.get((name, value))
        if whole is not None:
            parts.append(_integer(whole, 7, 0x80))
            continue
        known = _NAMES.get(name)
        parts.append(_integer(known, 4, 0) if known is not None else b"\x00" + _text(name))
        parts.append(_text(value))
    return b"".join(parts)


def status_numbers(data: bytes) -> dict[str, int]:
    """Return the `status` and the `grpc` that a block has; one that is no number is -1."""
    found: dict[str, int] = {}
    at = 0
    while at < len(data):
        first = data[at]
        if first & 0x80:
            index, at = _number(data, at, 7)
            if index == 0 or index > _STATIC:
                raise BlockError(f"it refers to entry {index} of a dynamic table, which is not supported")
            if index in _STATUS_NAMES:
                found["status"] = _STATUSES[index - _STATUS_NAMES.start]
        elif first & 0x60 == 0x20:
            _, at = _number(data, at, 5)  # how large the table is to be: it is nothing
        else:
            at = _literal(data, at, found)
    return found


def _literal(data: bytes, at: int, found: dict[str, int]) -> int:
    index, at = _number(data, at, 6 if data[at] & 0x40 else 4)
    if index > _STATIC:
        raise BlockError(f"it refers to entry {index} of a dynamic table, which is not supported")
    if index:
        which = "status" if index in _STATUS_NAMES else ""
    else:
        name, _, at = _string(data, at)
        which = _SPELT.get(name, "")
    value, is_coded, at = _string(data, at)
    if which:
        found[which] = _decimal(value, is_coded=is_coded)
    return at


def _string(data: bytes, at: int) -> tuple[bytes, bool, int]:
    """Return the bytes of a text, whether they are in Huffman's code, and where it ends."""
    if at >= len(data):
        raise BlockError("it ends within a header")
    is_coded = bool(data[at] & 0x80)
    size, at = _number(data, at, 7)
    if at + size > len(data):
        raise BlockError("it ends within a header")
    return data[at : at + size], is_coded, at + size


def _decimal(value: bytes, *, is_coded: bool) -> int:
    text = _digits(value) if is_coded else value.decode("latin-1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


def _digits(value: bytes) -> str:
    """Return the digits that Huffman's code means; nothing where it means anything else. What fills up is ones."""
    bits = "".join(f"{byte:08b}" for byte in value)
    text, at = "", 0
    while len(bits) - at >= 5:
        digit = _DIGITS.get(bits[at : at + 5]) or _DIGITS.get(bits[at : at + 6])
        if digit is None:
            break
        at += 5 if digit in "012" else 6
        text += digit
    return text if set(bits[at:]) <= {"1"} and len(bits) - at < 8 else ""


def _number(data: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a number whose first part has so many bits, and where it ends."""
    most = (1 << bits) - 1
    value = data[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in range(0, 28, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise BlockError("a number does not end")


def _integer(value: int, bits: int, flags: int) -> bytes:
    most = (1 << bits) - 1
    if value < most:
        return bytes([flags | value])
    parts = [flags | most]
    value -= most
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _text(value: bytes) -> bytes:
    return _integer(len(value), 7, 0) + value
