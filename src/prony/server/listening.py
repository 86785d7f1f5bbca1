"""Open the server's listening socket and name its address."""

from __future__ import annotations

import ipaddress
import socket

from prony.errors import CapacityError, InputError
from prony.model.loopback import is_loopback

BACKLOG = 4096


def listening_at(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a socket that listens there, before anything else is begun."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, protocol, _, address = found[0]
        # With its protocol: asyncio sends small answers at once only where it sees that this is TCP.
        listening = socket.socket(family, socket.SOCK_STREAM, protocol)
    except (OSError, UnicodeError) as exc:
        raise InputError(f"{host!r} is not an address of this machine: {exc}", hint="try --host 127.0.0.1") from exc
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as exc:
        listening.close()
        raise CapacityError(
            f"cannot listen on {host}:{port}: {exc.strerror}",
            hint=f"is another server running there? {option} 0 takes any free port",
            code="address_unavailable",
        ) from exc
    return listening


def is_loopback_at(listening: socket.socket) -> bool:
    return is_loopback(listening.getsockname()[0])


def url_at(host: str, listening: socket.socket) -> str:
    """Return where a command on this machine finds the server."""
    address, port = listening.getsockname()[:2]
    bound = ipaddress.ip_address(address)
    if bound.is_unspecified:
        return f"http://127.0.0.1:{port}"
    return f"http://[{address}]:{port}" if bound.version == 6 else f"http://{host or address}:{port}"
