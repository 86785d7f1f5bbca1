"""Ports for servers that tests start: each is given out once while the process that asked for it lives."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Below the range from which systems take the ports of outgoing connections, and those of servers that let the system
# choose: a server that is started again finds its port still free.
_LOWEST, _HIGHEST = 15_000, 32_000


def free_port() -> int:
    """Return a port that nobody listens at, and that no other test of this user gets until this process ends.

    Between a look at a port and the start of a server there, another worker's test could get the same one. So each is
    locked by a file; the system unlocks it when this process has ended, however that happens."""
    picked = random.SystemRandom()
    while True:
        port = picked.randrange(_LOWEST, _HIGHEST)
        if _lock(port) and _is_free(port):
            return port


@contextmanager
def refusing_port() -> Iterator[int]:
    """Give a port at which every connection is refused while the block runs: it is bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def _lock(port: int) -> bool:
    folder = Path(tempfile.gettempdir(), f"prony-test-ports-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    held = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
