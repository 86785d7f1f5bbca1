"""An endpoint in, a connected blocking socket out: for what drivers do before and after a load."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from dataclasses import replace

from prony.errors import InputError, TransportError
from prony.ports.driver import Endpoint

_TIMEOUT_S = 60.0


def connected(endpoint: Endpoint, *, timeout_s: float = _TIMEOUT_S) -> socket.socket:
    """Connect by TCP, TLS or a unix socket; a TransportError says where nobody answered."""
    try:
        return _connected(endpoint, timeout_s)
    except OSError as exc:
        raise TransportError(
            f"nobody answers at {shown(endpoint)}: {exc}", hint="is the server running, and is this its address?"
        ) from exc


def shown(endpoint: Endpoint) -> str:
    """Return where it is, without who asks."""
    return endpoint.path or f"{endpoint.host}:{endpoint.port}"


def with_password(endpoint: Endpoint, variable: str) -> Endpoint:
    """Return the endpoint with the password that an environment variable has, where one is named."""
    if not variable:
        return endpoint
    if variable not in os.environ:
        raise InputError(f"the environment has no {variable}", hint=f"export {variable}=...")
    return replace(endpoint, password=os.environ[variable])


def received(connection: socket.socket, endpoint: Endpoint) -> bytes:
    """Return what has come; an end or a broken connection is a TransportError."""
    try:
        data = connection.recv(1 << 16)
    except OSError as exc:
        raise TransportError(f"the connection to {shown(endpoint)} broke: {exc}") from exc
    if not data:
        raise TransportError(f"{shown(endpoint)} closed the connection")
    return data


def _connected(endpoint: Endpoint, timeout_s: float) -> socket.socket:
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
    return _secured(plain, endpoint) if endpoint.tls else plain


def _secured(plain: socket.socket, endpoint: Endpoint) -> socket.socket:
    context = ssl.create_default_context()
    if not endpoint.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        return context.wrap_socket(plain, server_hostname=endpoint.host)
    except OSError:
        plain.close()
        raise
