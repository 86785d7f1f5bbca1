"""Check that this machine can open as many connections as a load asks for."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from prony.errors import InputError
from prony.ports.driver import Endpoint

_MOST_FILES = 2**20
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def check_lines(lines: int, endpoint: Endpoint, ports: Path = _PORTS) -> None:
    """Refuse more connections to one address than there are ports to make them from."""
    if endpoint.path or not ports.exists():
        return
    low, high = (int(word) for word in ports.read_text().split())
    if lines > high - low + 1:
        raise InputError(
            f"the load needs {lines} connections, but this machine has only {high - low + 1} local ports",
            hint="widen net.ipv4.ip_local_port_range, or use fewer users",
        )


def check_files(files: int) -> None:
    """Refuse what one client process may not have open."""
    if sys.platform == "win32":  # which has no such limit for sockets
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and files > hard:
        raise InputError(
            f"a client process needs {files} open files, but the limit is {hard}",
            hint="raise the limit (ulimit -Hn), or use more client processes",
        )


def raise_files() -> None:
    """Let this process open as many files as it may."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    # Some systems have a lower limit than the one they tell of.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
