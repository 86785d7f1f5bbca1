"""Find and end every process that descends from a process or carries a token. Standard library only.

On Linux `/proc` tells. Elsewhere `ps` does, which shows no environments: there a process that left both its parent
and its group is not found again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

TOKEN = "PRONY_SERVICE_ID"  # in the environment of all that a service consists of
_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_AGAIN_S = 0.005


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends; False where the system knows no such thing."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends. Called in a child, after it changed its user."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _prctl(option: int, value: int) -> bool:
    return _LIBC is not None and bool(_LIBC.prctl(option, value, 0, 0, 0) == 0)


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # looked for before any fork


def parents() -> dict[int, int]:
    """Return the parent of every process that is alive."""
    if not _PROC.joinpath("self", "stat").exists():
        return _parents_of_ps()
    return {pid: int(words[1]) for pid, words in _alive().items()}


def in_session(leader: int) -> set[int]:
    """Return every live process in the session that one process began, where the system tells."""
    return {pid for pid, words in _alive().items() if int(words[3]) == leader}


def _alive() -> dict[int, list[str]]:
    """Return what `/proc` says of each live process: its state, parent, group, session and so on."""
    found = {}
    for folder in _PROC.iterdir() if _PROC.is_dir() else ():
        if folder.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                # The name of the program comes in brackets and may hold any character.
                words = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                # A zombie with threads has only lost its first one.
                if words[0] not in "ZX" or int(words[17]) > 1:
                    found[int(folder.name)] = words
    return found


def _parents_of_ps() -> dict[int, int]:
    done = subprocess.run(["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(row[0]): int(row[1]) for row in rows if len(row) > 2 and not row[2].startswith("Z")}


def descendants(root: int) -> set[int]:
    """Return every live process below one, itself left out."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return found - {root}


def carrying(token: str) -> set[int]:
    """Return every live process but this one that has the token in its environment, where we may see it."""
    wanted = f"{TOKEN}={token}".encode()
    found = set()
    for pid in parents() if _PROC.is_dir() else ():
        with suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.add(pid)
    return found - {os.getpid()}


def send_signal(pids: Iterable[int], number: int) -> None:
    """Send a signal to each; who is gone already needs none."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def gone(find: Callable[[], set[int]], *, within_s: float, reap: Callable[[], object] = lambda: None) -> bool:
    """Wait until nobody is found any more; `reap` is called between."""
    deadline = time.monotonic() + within_s
    while True:
        reap()
        if not find():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_AGAIN_S)


def kill_all(find: Callable[[], set[int]], *, within_s: float, reap: Callable[[], object] = lambda: None) -> set[int]:
    """Kill whoever is found until nobody is, children born meanwhile with them; return who could not be ended."""

    def kill_found() -> set[int]:
        left = find()
        send_signal(left, signal.SIGKILL)
        return left

    return set() if gone(kill_found, within_s=within_s, reap=reap) else find()
