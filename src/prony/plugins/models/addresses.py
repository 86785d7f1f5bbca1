"""Resolve a model URL's host, and tell public addresses from those in private networks."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

from prony.errors import InputError
from prony.ports.models import policy_error

Address = IPv4Address | IPv6Address
# All of IPv6 that is given out to the public lies in here.
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
# The prefix under which a network without IPv4 reaches the public part of it; the last 32 bits are the real address.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Not public, though some releases of Python or the registry itself say so: protocol assignments, relays and tunnels
# that lead to an address of their own choice, examples, and the address at which Azure answers its virtual machines.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2001::/23", "2002::/16", "3fff::/20"),
    )
)


# What people give to the machines of their own network, and this machine's own; 100.64.0.0/10 is also a VPN's.
_OWN = tuple(
    map(
        ipaddress.ip_network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7", "::1/128"),
    )
)
# Where a cloud tells its machines their secrets, by plain http, though the address looks like one of an own network.
_METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200")))


def is_own(address: Address) -> bool:
    """Tell whether an address is one of a network of one's own: a machine that somebody there has set up."""
    networks = [network for network in _OWN if network.version == address.version]
    return address not in _METADATA and any(address in network for network in networks)


def is_public(address: Address) -> bool:
    """Tell whether an address is one that anybody on the internet could reach."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFF_FFFF))
        if address not in _PUBLIC_V6:  # loopback, link-local, unique local, IPv4-mapped and all the rest
            return False
    if any(address in network for network in _SPECIAL if network.version == address.version):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_link_local)


def resolve_host(host: str, port: int) -> tuple[Address, ...]:
    """Return the addresses of a host, in the order in which the system would try them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


def private_host_error(host: str) -> InputError:
    # Which address it was is not told: the submitter of a job has no business knowing this network.
    return policy_error(f"models are not fetched from {host}: it is in a private network", "--model-private allow")
