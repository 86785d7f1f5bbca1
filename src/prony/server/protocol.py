"""Bytes of a connection in, requests out, as uvicorn reads them: heads have a limit, and refusals are problems.

The parser itself would take a head of any length, and uvicorn answers one that it cannot read as plain text.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from prony.server.edge import HEADERS
from prony.server.problems import RequestError, refusal

MOST_HEAD = 64 * 1024


class _HeadError(Exception):
    """Stops the parser."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    _head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Who connects and says nothing is let go like who has said everything.
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def on_message_begin(self) -> None:
        self._head = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def _count(self, length: int) -> None:
        self._head += length
        if self._head > MOST_HEAD:
            raise _HeadError

    def send_400_response(self, msg: str) -> None:
        if self._head > MOST_HEAD:
            error = RequestError(f"the head of a request may have {MOST_HEAD} bytes", status=431, code="too_large")
        else:
            error = RequestError("this is no HTTP request", status=400, code="malformed", hint=msg)
        response = refusal(error, {"Connection": "close"})
        head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()]
        pairs: list[Any] = [*self.server_state.default_headers, *HEADERS.items(), *response.raw_headers]
        head += [b"%s: %s\r\n" % pair for pair in pairs]
        self.transport.write(b"".join([*head, b"\r\n", bytes(response.body)]))
        self.transport.close()
