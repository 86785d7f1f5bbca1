"""Nothing in, a port that nobody listens at out."""

from __future__ import annotations

import random
import socket

# Below the range from which systems take the ports of outgoing connections: a server that is started again finds its
# port still free.
_LOWEST, _HIGHEST = 15_000, 32_000


def free_port() -> int:
    """Return one; somebody else may take it before it is used, so who needs it must be ready to ask again."""
    picked = random.SystemRandom()
    while True:
        port = picked.randrange(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
