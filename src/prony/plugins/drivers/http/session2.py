"""Blocking HTTP/2 session, which also shows whether a server speaks HTTP/2."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from prony.errors import TransportError
from prony.load.http2 import Http2Wire, request_frames
from prony.plugins.drivers.sockets import connect, receive, show_endpoint
from prony.ports.driver import Cause, Endpoint

if TYPE_CHECKING:
    from prony.load.connection import Connection

_PATIENCE_S = 10.0
_HINT = "leave options.http out, or 1; a plain http:// server must take HTTP/2 without being asked (h2c)"


class Http2Session:
    """One blocking connection, which frames replies by the same wire as the load; leaving the block closes it."""

    keeps = True
    reads = status = 0

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._socket = connect(endpoint, timeout_s=_PATIENCE_S, protocols=Http2Wire.tls_protocols)
        self._is_over = False
        self._failure: Cause | None = None
        self._pieces: list[bytes] = []
        self._wire = Http2Wire(cast("Connection", self), {})
        try:
            self._wire.connection_made()
            self._wait("a server that speaks HTTP/2 tells its settings first")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def get(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the body of a page."""
        self._pieces.clear()
        self._wire.send(request_frames("GET", path, self._endpoint, headers))
        self._wait(f"GET {path} was not answered")
        return self.status, b"".join(self._pieces)

    def _wait(self, otherwise: str) -> None:
        self._is_over = False
        while not self._is_over:
            try:
                self._wire.data_received(receive(self._socket, self._endpoint))
            except TransportError as exc:
                raise self._refusal(f"{exc.message}; {otherwise}") from exc
        if self._failure is not None:
            raise self._refusal(otherwise)

    def _refusal(self, why: str) -> TransportError:
        return TransportError(
            f"{show_endpoint(self._endpoint)} does not speak HTTP/2: {why}", hint=_HINT, code="no_http2"
        )

    # What the wire tells

    def write(self, content: bytes) -> None:
        self._socket.sendall(content)

    def keep(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def ready(self) -> None:
        self._is_over = True

    def last(self) -> None:
        """It is not used again in any case."""

    def done(self, status: int, cause: int = 0) -> None:  # noqa: ARG002 - the line's signature
        self.status, self._is_over = status, True

    def fail(self, cause: int) -> None:
        self._failure, self._is_over = Cause(cause), True
        self._wire.connection_lost()
