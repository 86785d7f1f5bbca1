"""Tell whether a name or an address means this machine's own loopback."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Does this name, or this address, mean the machine itself and nothing else?"""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_loopback_url(url: str) -> bool:
    """Does this URL lead to the machine itself? What cannot be read leads nowhere."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
