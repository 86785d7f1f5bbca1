"""Open a blocking socket to an endpoint for what drivers do before and after a load, and clean up when that fails."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from prony.errors import InputError, PronyError, TransportError
from prony.load.tls import context_of
from prony.ports.driver import Endpoint

_TIMEOUT_S = 60.0
_HANDSHAKE_S = 10.0
_NOT_OFFERED = "no application protocol"
_CLOSED_HINT = "see the log of that server"
_TLS_HINT = (
    "for a private certificate, name its CA: ?ca=FILE (PostgreSQL: sslrootcert=FILE); "
    "?verify=no (sslmode=require) skips the check"
)


def connect(
    endpoint: Endpoint,
    *,
    timeout_s: float = _TIMEOUT_S,
    asking: tuple[bytes, bytes] | None = None,
    protocols: Sequence[str] = (),
) -> socket.socket:
    """Connect by TCP, TLS or a unix socket; a TransportError says where nobody answered.

    `asking`: what asks for TLS where a protocol begins without it, and what grants it; `protocols`: which may be spoken
    over TLS."""
    try:
        return _connect(endpoint, timeout_s, asking, protocols)
    except ssl.SSLError as exc:
        if _NOT_OFFERED in str(exc):
            told = f"{show_endpoint(endpoint)} does not offer {' or '.join(protocols)} over TLS (ALPN)"
            raise TransportError(told, hint="remove workload.options.http, or set it to 1", code="no_http2") from exc
        raise TransportError(
            f"TLS with {show_endpoint(endpoint)} failed: {exc}", hint=_TLS_HINT, code="no_tls"
        ) from exc
    except OSError as exc:
        raise TransportError(
            f"no connection to {show_endpoint(endpoint)}: {exc}",
            hint="check that the server runs and that the address is right",
        ) from exc


def show_endpoint(endpoint: Endpoint) -> str:
    """Return where it is, without who asks."""
    return endpoint.path or f"{endpoint.host}:{endpoint.port}"


def with_password(endpoint: Endpoint, variable: str) -> Endpoint:
    """Return the endpoint with the password that an environment variable has, where one is named."""
    if not variable:
        return endpoint
    if variable not in os.environ:
        raise InputError(f"the environment variable {variable} is not set", hint=f"export {variable}=...")
    return replace(endpoint, password=os.environ[variable])


def receive(connection: socket.socket, endpoint: Endpoint) -> bytes:
    """Return what has come; an end or a broken connection is a TransportError."""
    try:
        data = connection.recv(1 << 16)
    except OSError as exc:
        raise TransportError(f"the connection to {show_endpoint(endpoint)} broke: {exc}", hint=_CLOSED_HINT) from exc
    if not data:
        raise TransportError(f"{show_endpoint(endpoint)} closed the connection", hint=_CLOSED_HINT)
    return data


def _connect(
    endpoint: Endpoint, timeout_s: float, asking: tuple[bytes, bytes] | None, protocols: Sequence[str]
) -> socket.socket:
    if endpoint.path:
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(timeout_s)
        try:
            local.connect(endpoint.path)
        except OSError:
            local.close()
            raise
        return local
    plain = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout_s)
    with contextlib.suppress(OSError):
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not endpoint.tls:
        return plain
    try:
        if asking is not None:
            _ask(plain, asking, endpoint)
        plain.settimeout(min(timeout_s, _HANDSHAKE_S))
        secure = context_of(endpoint, protocols).wrap_socket(plain, server_hostname=endpoint.host)
        secure.settimeout(timeout_s)
    except TimeoutError as exc:
        plain.close()
        raise ssl.SSLError(f"no answer within {_HANDSHAKE_S:g} s") from exc
    except (OSError, TransportError):
        plain.close()
        raise
    if protocols and secure.selected_alpn_protocol() not in protocols:
        # A server that knows nothing of ALPN says nothing, where others say that there is no such protocol.
        secure.close()
        raise ssl.SSLError(_NOT_OFFERED)
    return secure


def _ask(plain: socket.socket, asking: tuple[bytes, bytes], endpoint: Endpoint) -> None:
    """Ask for TLS; more than the server's word may not come before it."""
    asked, granted = asking
    plain.sendall(asked)
    if receive(plain, endpoint) != granted:
        raise TransportError(
            f"{show_endpoint(endpoint)} does not offer TLS",
            hint="turn on TLS on that server, or use an address without TLS",
            code="no_tls",
        )


@contextmanager
def clean_up_on_failure(finish: Callable[[], None]) -> Iterator[None]:
    """Run the block; where it fails, call `finish`, whose own failure tells less than the first."""
    try:
        yield
    except BaseException:
        with suppress(PronyError, OSError):
            finish()
        raise
