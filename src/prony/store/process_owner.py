"""Identify a process across pid reuse, and tell whether it is still alive.

Standard library only on Linux, because `prony list` asks.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """`started` is the process's start as the system tells it, so that a reused pid is not taken for the old one.

    `space` is the namespace in which the pid counts: the same number in two containers is two processes.
    """

    host: str
    boot: str
    space: str
    pid: int
    started: str

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Owner:
        return cls(**json.loads(text))


def this_process() -> Owner:
    """Return the mark of the process that asks."""
    pid = os.getpid()
    return Owner(host=_host(), boot=_boot(), space=_space(), pid=pid, started=_start_mark(pid) or "")


def lives(owner: Owner) -> bool | None:
    """Return whether the process is still there, or None where this one cannot tell: another host or container."""
    if owner.host != _host():
        return None
    if owner.boot != _boot():
        return False
    if owner.space != _space():
        return None
    started = _start_mark(owner.pid)
    if started is None:
        return False
    return started == owner.started if started and owner.started else None


def _host() -> str:
    import socket

    # A laptop's domain follows the network it is in, so only the first part of its name counts.
    name = socket.gethostname().split(".")[0]
    machine = _line("/etc/machine-id") if sys.platform == "linux" else ""
    return f"{name}/{machine}"


def _boot() -> str:
    return _line("/proc/sys/kernel/random/boot_id") if sys.platform == "linux" else ""


def _space() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _start_mark(pid: int) -> str | None:
    """Return when a process started, None when there is none, and nothing when the system will not tell.

    A zombie counts as none: it has ended and only waits to be seen.
    """
    if sys.platform != "linux":
        return _started_elsewhere(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name, in brackets, may itself hold spaces and brackets: count from the last one.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _started_elsewhere(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return ""


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
