"""Parse a URL into an Endpoint, and resolve an Endpoint to a socket address."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit, urlunsplit

from prony.errors import InputError, TransportError
from prony.model.loopback import is_loopback
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
# What PostgreSQL's own clients call it: is there TLS, is the certificate checked, and the name in it?
_SSL_MODES = {
    "disable": (False, False, False),
    "require": (True, False, False),
    "verify-ca": (True, True, False),
    "verify-full": (True, True, True),
}
_FILES = ("ca", "sslrootcert")
_PROBE_S = 1.0
_LONGEST_PATH = 103  # what every system allows
_HINT = "write it as http://host:port/path, redis://host:6379, postgresql://user@host/database or unix:///path"


def parse_endpoint(url: str, base: Path = Path()) -> Endpoint:
    """Return where requests go; a certificate's path is relative to `base`.

    `?verify=no` leaves a server's certificate unchecked, `?ca=FILE` names who vouches for it; of PostgreSQL these are
    `sslmode` and `sslrootcert`. The rest of an HTTP address's query goes with every request."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise InputError(f"{url!r} is not an endpoint: {exc}", hint=_HINT) from exc
    if parts.scheme == "unix":
        return _unix(url, parts)
    if parts.scheme not in _SCHEMES:
        raise InputError(
            f"{url!r} is not an endpoint: its scheme is not one of {', '.join(_SCHEMES)}, unix", hint=_HINT
        )
    if not parts.hostname:
        raise InputError(f"{url!r} is not an endpoint: it has no host", hint=_HINT)
    default, tls = _SCHEMES[parts.scheme]
    found = Endpoint(
        host=parts.hostname,
        port=port or default,
        tls=tls,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )
    if parts.scheme.startswith("http"):
        wishes, query = _split_query(parts.query, ("verify", "ca"))
        return replace(_check(found, wishes, base), base=parts.path, query=query)
    found = replace(found, database=unquote(parts.path.strip("/")))
    if parts.scheme.startswith("redis"):
        return _check(found, _only(parts.query, ("verify", "ca")), base)
    return _add_tls(found, _only(parts.query, ("sslmode", "sslrootcert")), base)


def make_certificate_absolute(url: str, base: Path) -> str:
    """Return the URL with the path of a certificate made absolute."""
    parts = urlsplit(url)
    words = [word.partition("=") for word in parts.query.split("&")]
    if parts.scheme == "unix" or not any(name in _FILES and value for name, _, value in words):
        return url
    kept = [
        name + equals + (_absolute(value, base) if name in _FILES and value else value) for name, equals, value in words
    ]
    return urlunsplit(parts._replace(query="&".join(kept)))


def _absolute(value: str, base: Path) -> str:
    return quote(str((base / Path(unquote(value)).expanduser()).absolute()))


def _split_query(query: str, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return the wishes of these names, and the query without them, as it was written."""
    parts = [part for part in query.split("&") if part]
    mine = [part for part in parts if part.partition("=")[0] in names]
    rest = "&".join(part for part in parts if part not in mine)
    return {key: values[-1] for key, values in parse_qs("&".join(mine)).items()}, rest


def _only(query: str, names: Sequence[str]) -> dict[str, str]:
    wishes, rest = _split_query(query, names)
    if rest:
        raise InputError(f"unknown endpoint parameters: {rest!r}", hint=f"known: {', '.join(names)}")
    return wishes


def _check(found: Endpoint, wishes: Mapping[str, str], base: Path) -> Endpoint:
    verify = wishes.get("verify", "yes").lower() not in ("no", "0", "false")
    return replace(found, verify=verify, ca=_file(wishes.get("ca", ""), base))


def _add_tls(found: Endpoint, wishes: Mapping[str, str], base: Path) -> Endpoint:
    mode, ca = wishes.get("sslmode", "disable"), _file(wishes.get("sslrootcert", ""), base)
    if mode not in _SSL_MODES:
        raise InputError(f"sslmode={mode} is not supported", hint=f"use one of {', '.join(_SSL_MODES)}")
    tls, verify, check_name = _SSL_MODES["verify-ca" if mode == "require" and ca else mode]
    return replace(found, tls=tls, verify=verify or not tls, check_name=check_name or not tls, ca=ca)


def _file(name: str, base: Path) -> str:
    """Return the path of certificates that somebody names; it must be there."""
    if not name:
        return ""
    path = (base / Path(name).expanduser()).absolute()
    if not path.is_file():
        raise InputError(f"certificate file not found: {path}", hint="use a PEM file, relative to the recipe")
    return str(path)


def _unix(url: str, parts: SplitResult) -> Endpoint:
    if parts.netloc or not parts.path.startswith("/"):
        raise InputError(f"{url!r} is not an endpoint: a unix socket needs three slashes", hint=_HINT)
    wishes = _only(parts.query, ("base", "user", "password", "database"))
    return Endpoint(
        path=unquote(parts.path),
        base=wishes.get("base", ""),
        user=wishes.get("user", ""),
        password=wishes.get("password", ""),
        database=wishes.get("database", ""),
    )


def is_local(endpoint: Endpoint) -> bool:
    """Does it lead to another server on each machine?"""
    return bool(endpoint.path) or is_loopback(endpoint.host)


def resolve_endpoint(endpoint: Endpoint) -> tuple[int, Any]:
    """Return the family and what `connect` wants; of several addresses the first that answers."""
    if endpoint.path:
        if len(endpoint.path.encode()) > _LONGEST_PATH:
            raise InputError(
                f"the path of a unix socket must have at most {_LONGEST_PATH} bytes: {endpoint.path}",
                hint="put the socket into a folder with a shorter name",
            )
        return int(socket.AF_UNIX), endpoint.path
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except OSError as exc:
        raise TransportError(f"host not found: {endpoint.host}: {exc.strerror}", hint="check the name") from exc
    addresses = [(int(family), address) for family, _, _, _, address in found]
    if len(addresses) > 1:
        for family, address in addresses:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(_PROBE_S)
                if probe.connect_ex(address) == 0:
                    return family, address
    return addresses[0]
