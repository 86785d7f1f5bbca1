"""How many connections are asked for in, nothing out, or the reason why this machine cannot open them."""

from __future__ import annotations

import resource
from pathlib import Path

from prony.errors import InputError
from prony.ports.driver import Endpoint

_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


def check_lines(lines: int, endpoint: Endpoint, ports: Path = _PORTS) -> None:
    """Refuse more connections to one address than there are ports to make them from."""
    if endpoint.path or not ports.exists():
        return
    low, high = (int(word) for word in ports.read_text().split())
    if lines > high - low + 1:
        raise InputError(
            f"{lines} connections are asked for, and this machine has {high - low + 1} ports to make them from",
            hint="widen net.ipv4.ip_local_port_range, or ask for fewer users",
        )


def raise_files(files: int) -> None:
    """Let this process and its children open so many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and files > hard:
        raise InputError(
            f"a client process needs {files} open files, and may have {hard}",
            hint="raise the limit (ulimit -Hn), or use more client processes",
        )
    if soft != resource.RLIM_INFINITY and soft < max(files, 2**16):
        most = 2**16 if hard == resource.RLIM_INFINITY else hard
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, min(most, 2**16), soft), hard))
