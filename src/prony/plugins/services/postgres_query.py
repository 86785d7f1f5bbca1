"""Ask a PostgreSQL server one query, as a service's readiness and settings need it."""

from __future__ import annotations

import socket
import struct
from typing import BinaryIO

from prony.errors import SutError
from prony.plugins.services.asking import SETTINGS_S
from prony.ports.driver import Endpoint

_VERSION = 196608  # 3.0
_CLEARTEXT = 3


class RefusedError(SutError):
    """The server said no; the message is its own."""


def query_rows(endpoint: Endpoint, query: str, *, timeout_s: float = SETTINGS_S) -> list[list[str | None]]:
    """Connect, ask once, and hang up."""
    where = (endpoint.host, endpoint.port)
    with socket.create_connection(where, timeout=timeout_s) as connection, connection.makefile("rb") as file:
        _log_in(connection, file, endpoint)
        connection.sendall(_message(b"Q", query.encode() + b"\0"))
        found = []
        while (answer := _next(file))[0] != b"Z":
            if answer[0] == b"D":
                found.append(_row(answer[1]))
        connection.sendall(_message(b"X", b""))
        return found


def _log_in(connection: socket.socket, file: BinaryIO, endpoint: Endpoint) -> None:
    words = ("user", endpoint.user, "database", endpoint.database, "")
    body = struct.pack("!i", _VERSION) + b"".join(word.encode() + b"\0" for word in words)
    connection.sendall(_message(b"", body))
    while (answer := _next(file))[0] != b"Z":
        if answer[0] == b"R":
            (kind,) = struct.unpack_from("!i", answer[1])
            if kind == _CLEARTEXT:
                connection.sendall(_message(b"p", endpoint.password.encode() + b"\0"))
            elif kind:
                raise RefusedError(f"it requires authentication method {kind} instead of a password")


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _next(file: BinaryIO) -> tuple[bytes, bytes]:
    head = file.read(5)
    if len(head) < 5:
        raise RefusedError("it closed the connection")
    kind, size = head[:1], struct.unpack("!i", head[1:])[0]
    body = file.read(size - 4)
    if kind == b"E":
        fields = [field for field in body.split(b"\0") if field]
        said = {field[:1]: field[1:].decode(errors="replace") for field in fields}
        raise RefusedError(said.get(b"M", "it refused without a reason"))
    return kind, body


def _row(body: bytes) -> list[str | None]:
    (count,) = struct.unpack_from("!h", body)
    at, found = 2, []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", body, at)
        at += 4
        found.append(None if size < 0 else body[at : at + size].decode(errors="replace"))
        at += max(size, 0)
    return found
