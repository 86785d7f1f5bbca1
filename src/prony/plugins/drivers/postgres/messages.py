"""Encode PostgreSQL protocol 3.0 messages, and read an error's SQLSTATE.

Statements take their parameters as text and give their rows as text, as pgbench's do.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

PROTOCOL = 196_608  # 3.0
SYNC = b"S\x00\x00\x00\x04"
TLS_ASKING = struct.pack(">II", 8, 80_877_103)
TLS_GRANTED = b"S"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack(">I", len(body) + 4) + body


def startup(settings: dict[str, str]) -> bytes:
    """Return the first message of a connection: user, database, and settings of the session."""
    words = b"".join(_text(word) for pair in settings.items() for word in pair)
    body = struct.pack(">I", PROTOCOL) + words + b"\x00"
    return struct.pack(">I", len(body) + 4) + body


def query(sql: str) -> bytes:
    return message(b"Q", _text(sql))


def parse(name: str, sql: str) -> bytes:
    """Return what prepares a statement; the server finds out the types of its parameters."""
    return message(b"P", _text(name) + _text(sql) + struct.pack(">H", 0))


def bind(name: str, values: Sequence[str]) -> bytes:
    """Return what gives a prepared statement its values."""
    parts = [b"\x00", _text(name), struct.pack(">HH", 0, len(values))]
    for value in values:
        encoded = value.encode()
        parts += [struct.pack(">I", len(encoded)), encoded]
    parts.append(struct.pack(">H", 0))
    return message(b"B", b"".join(parts))


def describe_portal() -> bytes:
    return message(b"D", b"P\x00")


def describe_statement(name: str) -> bytes:
    return message(b"D", b"S" + _text(name))


def execute() -> bytes:
    return message(b"E", b"\x00" + struct.pack(">I", 0))


def password(content: bytes) -> bytes:
    """Return any of the answers to a demand for a password."""
    return message(b"p", content)


def fields(body: bytes) -> Iterator[tuple[str, str]]:
    """Give the fields of an error or a notice: C is its SQLSTATE, M its text."""
    for part in body.split(b"\x00"):
        if part:
            yield chr(part[0]), part[1:].decode(errors="replace")


def sqlstate(body: bytes) -> str:
    return next((value for name, value in fields(body) if name == "C"), "XX000")


def state_number(state: str) -> int:
    """Return a SQLSTATE's class (its first two characters) as a number, for the status column: 40001 is 40.

    Classes that are no number go on from 100: A0 is 100 + 10 * 36."""
    first, second = (_DIGITS.find(letter) for letter in state[:2].upper().ljust(2, "0"))
    if first < 0 or second < 0:
        return 1
    return first * 10 + second if first < 10 and second < 10 else 100 + first * 36 + second


def join_round_trips(parts: Sequence[bytes]) -> bytes:
    """Return a request of several round trips: where each part ends, and then the parts."""
    at = 4 * len(parts)
    ends = []
    for part in parts:
        at += len(part)
        ends.append(at)
    return struct.pack(f">{len(parts)}I", *ends) + b"".join(parts)


def _text(word: str) -> bytes:
    return word.encode() + b"\x00"
