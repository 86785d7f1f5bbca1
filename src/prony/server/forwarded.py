"""Behind a named proxy, find the address that a request really comes from."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

from starlette.types import Scope

from prony.errors import InputError
from prony.server.body import header

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Longer chains of proxies than this are nobody's.
_MOST_HOPS = 20
_LONGEST_ADDRESS = 60


def read_network(text: str) -> Network:
    """Return the addresses that a person names: one, or a network as in 10.0.0.0/8."""
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as exc:
        raise InputError(
            f"--trusted-proxy {text[:80]!r} is not an address", hint="as in --trusted-proxy 127.0.0.1 or 10.1.0.0/16"
        ) from exc


class Proxies:
    """The proxies whose word is taken: `X-Forwarded-For` and `X-Forwarded-Proto`, and from nobody else.

    `Forwarded` is never read: a proxy that writes the one hands on whatever a client put into the other.
    """

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._networks = tuple(networks)

    def resolve(self, scope: Scope) -> None:
        """Put the client's own address and scheme into the scope."""
        client = scope.get("client")
        if not self._networks or not client or not self._is_trusted(client[0]):
            return
        address = self._sender(header(scope, b"x-forwarded-for"))
        if address:
            scope["client"] = (address, 0)
        scheme = header(scope, b"x-forwarded-proto").lower()
        if scheme in (b"http", b"https"):
            scope["scheme"] = scheme.decode()

    def _sender(self, said: bytes) -> str:
        """Return the last address that no trusted proxy has: what stands before it anybody may have written."""
        found = ""
        for hop in reversed(said.decode("latin-1").split(",")[-_MOST_HOPS:]):
            address = _read(hop.strip())
            if address is None:
                return found
            found = str(address)
            if not self._is_trusted(found):
                return found
        return found

    def _is_trusted(self, text: str) -> bool:
        address = _read(text)
        return address is not None and any(address in network for network in self._networks)


@lru_cache(maxsize=1024)
def _read(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text[:_LONGEST_ADDRESS])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
