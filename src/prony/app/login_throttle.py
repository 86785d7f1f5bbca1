"""Throttle addresses whose authentication fails too often."""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict, deque
from functools import lru_cache
from threading import Lock

from prony.errors import AccessError
from prony.ports.clock import Clock

MOST = 10
WINDOW_S = 60
_WINDOW_NS = WINDOW_S * 10**9
_MOST_ADDRESSES = 10_000
_MOST_TRUSTED = 20_000


class Failures:
    """What failed of late, by address. Secrets are too long to be guessed: this spares the database and the logs.

    A secret that was good before is heard from any address, because many agents may share one with a broken neighbour.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()
        self._trusted: OrderedDict[str, None] = OrderedDict()

    def check(self, address: str, digest: str) -> None:
        """Refuse an address with more than `MOST` failures within the window; refusals count for nothing."""
        with self._lock:
            times = self._failed.get(network_of(address))
            if digest in self._trusted or times is None or len(times) <= MOST:
                return
            left_ns = times[0] + _WINDOW_NS - self._clock.monotonic_ns()
        if left_ns > 0:
            raise AccessError(
                f"more than {MOST} wrong tokens came from {address} within {WINDOW_S} s",
                hint=f"come back in {math.ceil(left_ns / 10**9)} s, with a good one",
                code="too_many",
            )

    def add(self, address: str, digest: str) -> None:
        """Count a failure; whatever was thought of this secret is forgotten."""
        network = network_of(address)
        with self._lock:
            self._trusted.pop(digest, None)
            times = self._failed.setdefault(network, deque(maxlen=MOST + 1))
            times.append(self._clock.monotonic_ns())
            self._failed.move_to_end(network)
            if len(self._failed) > _MOST_ADDRESSES:
                self._failed.popitem(last=False)  # the one that has not failed for the longest time

    def trust(self, digest: str) -> None:
        """Hear this secret from now on wherever it comes from."""
        with self._lock:
            self._trusted[digest] = None
            self._trusted.move_to_end(digest)
            if len(self._trusted) > _MOST_TRUSTED:
                self._trusted.popitem(last=False)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return whom an address stands for: one that has IPv6 has at least 2**64 addresses of it."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped else str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))
    return str(found)
