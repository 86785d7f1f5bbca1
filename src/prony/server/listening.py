"""Open the server's listening socket and name its address."""

from __future__ import annotations

import errno
import ipaddress
import socket

from prony.errors import CapacityError, InputError
from prony.model.loopback import is_loopback

BACKLOG = 4096


def bind_at(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a socket that has this address and refuses connections until it listens.

    Raises:
        InputError: the host is no address of this machine.
        CapacityError: another program listens there, or this user may not.
    """
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, protocol, _, address = found[0]
        # With its protocol: asyncio sends small answers at once only where it sees that this is TCP.
        bound = socket.socket(family, socket.SOCK_STREAM, protocol)
    except (OSError, UnicodeError) as exc:
        raise InputError(f"{host!r} is not an address of this machine: {exc}", hint="try --host 127.0.0.1") from exc
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as exc:
        bound.close()
        raise _port_taken_error(host, port, option, exc) from exc
    return bound


def listening_at(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a socket that listens there."""
    bound = bind_at(host, port, option=option)
    try:
        start_listening(bound, host, port, option=option)
    except CapacityError:
        bound.close()
        raise
    return bound


def start_listening(bound: socket.socket, host: str, port: int, *, option: str = "--port") -> None:
    """Take connections from now on.

    Raises:
        CapacityError: another program began to listen there meanwhile.
    """
    try:
        bound.listen(BACKLOG)
    except OSError as exc:
        raise _port_taken_error(host, port, option, exc) from exc


def _port_taken_error(host: str, port: int, option: str, exc: OSError) -> CapacityError:
    return CapacityError(
        f"cannot listen on {host}:{port}: {exc.strerror}",
        hint=_what_to_use(port, option, exc),
        code="address_unavailable",
    )


def _what_to_use(port: int, option: str, exc: OSError) -> str:
    if exc.errno == errno.EADDRNOTAVAIL:
        return "use an address of this machine, such as 127.0.0.1"
    if exc.errno in (errno.EACCES, errno.EPERM):
        return f"use a port above 1023 ({option})" if port < 1024 else f"{option} 0 takes any free port"
    return f"is another server running there? {option} 0 takes any free port"


def is_loopback_at(listening: socket.socket) -> bool:
    return is_loopback(listening.getsockname()[0])


def url_at(host: str, listening: socket.socket) -> str:
    """Return where a command on this machine finds the server."""
    address, port = listening.getsockname()[:2]
    bound = ipaddress.ip_address(address)
    if bound.is_unspecified:
        return f"http://127.0.0.1:{port}"
    return f"http://[{address}]:{port}" if bound.version == 6 else f"http://{host or address}:{port}"
