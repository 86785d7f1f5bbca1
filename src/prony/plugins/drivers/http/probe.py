"""Build HTTP requests for an endpoint, and ask it for JSON and its HTTP version before a load.

A blocking HTTP/2 session also shows whether a server speaks HTTP/2. The authentication header is built from the key in
an environment variable.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from prony.errors import InputError, TransportError
from prony.load.http import request_bytes, target_of
from prony.load.http2 import Http2Wire, request_frames
from prony.load.tls import context_of
from prony.plugins.drivers.sockets import clean_up_on_failure, connect, receive, show_endpoint
from prony.ports.driver import Cause, Endpoint

if TYPE_CHECKING:
    import httpx

    from prony.load.connection import LoadConnection


_PATIENCE_S = 10.0
_HINT = (
    "remove workload.options.http, or set it to 1; "
    "without TLS, the server must support HTTP/2 with prior knowledge (h2c)"
)


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
        self._wire = Http2Wire(cast("LoadConnection", self), {})
        with clean_up_on_failure(self._socket.close):
            self._wire.connection_made()
            self._wait("it did not send HTTP/2 settings")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()

    def get(self, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the body of a page."""
        self._pieces.clear()
        self._wire.send(request_frames("GET", path, self._endpoint, headers))
        self._wait(f"GET {path} got no answer")
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
            f"{show_endpoint(self._endpoint)} does not support HTTP/2: {why}", hint=_HINT, code="no_http2"
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


HttpVersion = Literal[1, 2]
_STATUS_HINT = "check the path of the address, the access rights, and the server's log"
HTTP_HELP = "HTTP version; use 2 if the server needs it. Both send one request at a time on each connection"
_WIRES = {1: "prony.load.http:HttpWire", 2: "prony.load.http2:Http2Wire"}


def wire_of(version: HttpVersion) -> str:
    """Return the wire that frames replies of a version of HTTP."""
    return _WIRES[version]


def check_version(endpoint: Endpoint, version: HttpVersion) -> None:
    """See that the server speaks it: every one speaks 1, and of 2 a TransportError says that it does not."""
    if version == 2:
        Http2Session(endpoint).__exit__(None, None, None)


def ask_json(endpoint: Endpoint, path: str, headers: Mapping[str, str], version: HttpVersion = 1) -> Any:
    """GET a page of JSON; no proxy is asked."""
    where = f"{endpoint.path or endpoint_url(endpoint)}{endpoint.base}{path}"
    try:
        status, body = _got(endpoint, path, headers, version, where)
        if status >= 400:
            raise TransportError(
                f"{where} answered {status}: {body[:200].decode(errors='replace')}",
                code="bad_status",
                hint=_STATUS_HINT,
            )
        return json.loads(body)
    except ValueError as exc:
        raise TransportError(
            f"{where} did not answer with JSON", hint="check that the server supports this driver's protocol"
        ) from exc


def _got(
    endpoint: Endpoint, path: str, headers: Mapping[str, str], version: HttpVersion, where: str
) -> tuple[int, bytes]:
    if version == 2:
        with Http2Session(endpoint) as session:
            return session.get(path, headers)
    import httpx

    try:
        with httpx.Client(transport=transport_to(endpoint), trust_env=False, timeout=_PATIENCE_S) as client:
            answer = client.get(f"{endpoint_url(endpoint)}{target_of(endpoint, path)}", headers=dict(headers))
    except httpx.HTTPError as exc:
        raise TransportError(
            f"{where} cannot be reached: {exc}", hint="check that the server runs and that the address is right"
        ) from exc
    return answer.status_code, answer.content


def transport_to(endpoint: Endpoint) -> httpx.HTTPTransport:
    """Return how httpx connects as the load does: the same certificates are trusted, and no proxy is asked."""
    import httpx

    verify = context_of(endpoint) if endpoint.tls else False
    return httpx.HTTPTransport(verify=verify, trust_env=False, uds=endpoint.path or None)


def endpoint_url(endpoint: Endpoint) -> str:
    """Return scheme, host and port as a URL begins."""
    if endpoint.path:
        return "http://localhost"
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{'https' if endpoint.tls else 'http'}://{host}:{endpoint.port}"


def whose(endpoint: Endpoint, variable: str | None) -> dict[str, str]:
    """Return the header that says who asks: the key that the named environment variable holds, or the URL's user."""
    if variable is None:
        pair = base64.b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"} if endpoint.user else {}
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            f"the environment variable {variable} is not set",
            hint="export it where the load runs, or remove api_key_env",
        )
    return {"Authorization": f"Bearer {key}"}


def request_to(
    endpoint: Endpoint, method: str, path: str, headers: Mapping[str, str], body: bytes, version: HttpVersion = 1
) -> bytes:
    """Return the bytes of a request."""
    try:
        made = request_bytes if version == 1 else request_frames
        return made(method, path, endpoint, headers, body)
    except ValueError as exc:
        raise InputError(f"{method} {path} is not a valid request: {exc}", hint="check its headers") from exc


def only_model(names: list[str], where: str) -> str:
    """Return the one model that a server offers."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(
            f"{where} offers no model", hint="start that server with a model, or name one in workload.options.model"
        )
    listed = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    raise InputError(f"{where} offers several models", hint=f"set workload.options.model to one of: {listed}")


def key_header(name: str, variable: str | None) -> dict[str, str]:
    """Return the header `name` with the key that the variable holds; nothing where none is named."""
    if variable is None:
        return {}
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"the environment variable {variable} is not set", hint=f"export {variable}=...")
    return {name: key}
