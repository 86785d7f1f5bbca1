"""The few shapes that operations come in: ask for a noun, make one, send one, do something, fetch a file."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from prony.client import wire
from prony.client.connection import Asked, Call, Connection
from prony.model.base import Noun

N = TypeVar("N", bound=Noun)


class Asking:
    """What the parts of the client have in common: the connection, and how a request is made from nouns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _get(self, noun: type[N], *parts: str, **query: Asked) -> N:
        return self._connection.read(noun, Call("GET", parts, query, is_safe=True))

    def _create(self, noun: type[N], *parts: str, body: Noun | None = None, key: str | None = None) -> N:
        """Make something once, however often it must be asked for: the server knows the key again."""
        named = wire.headers(None, key=key or uuid.uuid4().hex)
        call = Call("POST", parts, headers={**named, **_type(body)}, content=_content(body), is_safe=True)
        return self._connection.read(noun, call)

    def _send(self, noun: type[N], method: str, *parts: str, body: Noun | None = None, wait_s: float = 0.0) -> N:
        call = Call(method, parts, headers=_type(body), content=_content(body), wait_s=wait_s)
        return self._connection.read(noun, call)

    def _do(self, method: str, *parts: str, **query: Asked) -> None:
        self._connection.send(Call(method, parts, query))

    def _fetch(self, to: Path, *parts: str, **query: Asked) -> Path:
        return self._connection.download(Call("GET", parts, query, is_safe=True), to)


def _content(body: Noun | None) -> bytes | None:
    return None if body is None else body.model_dump_json().encode()


def _type(body: Noun | None) -> Mapping[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}
