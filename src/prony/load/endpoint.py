"""A URL in, the Endpoint that it names out; an Endpoint in, the address to connect to out."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from prony.errors import InputError, TransportError
from prony.ports.driver import Endpoint

# The port that a scheme means where none is written, and whether it is TLS.
_SCHEMES = {
    "http": (80, False),
    "https": (443, True),
    "redis": (6379, False),
    "rediss": (6379, True),
    "postgresql": (5432, False),
    "postgres": (5432, False),
}
_PROBE_S = 1.0
_LONGEST_PATH = 103  # what every system allows
_HINT = "write it as http://host:port/path, redis://host:6379, postgresql://user@host/database or unix:///path"


def parse(url: str) -> Endpoint:
    """Return where requests go; `?verify=no` leaves a server's certificate unchecked."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise InputError(f"{url!r} is no endpoint: {exc}", hint=_HINT) from exc
    wishes = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if parts.scheme == "unix":
        return _unix(url, parts, wishes)
    if parts.scheme not in _SCHEMES:
        raise InputError(f"{url!r} is no endpoint: its scheme is not one of {', '.join(_SCHEMES)}, unix", hint=_HINT)
    if not parts.hostname:
        raise InputError(f"{url!r} is no endpoint: it names no host", hint=_HINT)
    default, tls = _SCHEMES[parts.scheme]
    is_http = parts.scheme.startswith("http")
    return Endpoint(
        host=parts.hostname,
        port=port or default,
        tls=tls,
        base=parts.path.rstrip("/") if is_http else "",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database="" if is_http else unquote(parts.path.strip("/")),
        verify=wishes.get("verify", "yes").lower() not in ("no", "0", "false"),
    )


def _unix(url: str, parts: SplitResult, wishes: dict[str, str]) -> Endpoint:
    if parts.netloc or not parts.path.startswith("/"):
        raise InputError(f"{url!r} is no endpoint: a unix socket has three slashes", hint=_HINT)
    return Endpoint(
        path=unquote(parts.path),
        base=wishes.get("base", "").rstrip("/"),
        user=wishes.get("user", ""),
        password=wishes.get("password", ""),
        database=wishes.get("database", ""),
    )


def resolve(endpoint: Endpoint) -> tuple[int, Any]:
    """Return the family and what `connect` wants; of several addresses the first that answers."""
    if endpoint.path:
        if len(endpoint.path.encode()) > _LONGEST_PATH:
            raise InputError(
                f"the path of a unix socket has at most {_LONGEST_PATH} bytes: {endpoint.path}",
                hint="put the socket into a folder with a shorter name",
            )
        return int(socket.AF_UNIX), endpoint.path
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise TransportError(
            f"no address is known for {endpoint.host}: {exc.strerror}", hint="is the name right?"
        ) from exc
    addresses = [(int(family), address) for family, _, _, _, address in found]
    if len(addresses) > 1:
        for family, address in addresses:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(_PROBE_S)
                if probe.connect_ex(address) == 0:
                    return family, address
    return addresses[0]
