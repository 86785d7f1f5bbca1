"""Start child processes that end with their parent, kill process trees and wait for their end."""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

ENGINE_HOST = Path(__file__).parents[2] / "src" / "prony" / "runner" / "child" / "__main__.py"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class DieWithParent:
    """What a child calls before its program begins, so that the system sends it a signal when its parent is gone."""

    sent: signal.Signals

    def __call__(self) -> None:
        if sys.platform == "linux":
            _LIBC.prctl(_PR_SET_PDEATHSIG, int(self.sent))


def kill_all(pid: int) -> None:
    """End a process and all below it at once, as a power cut would; return when the last one is gone."""
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        parent.suspend()  # it has no more children from now on
        family = [*parent.children(recursive=True), parent]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        for process in family:
            wait_gone(process.pid)


def wait_gone(pid: int, *, within_s: float = 60.0) -> bool:
    """Wait for a process that need not be our child to end; False when it has not in that time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not is_alive(pid):
            return True
        time.sleep(0.01)
    return False


def wait_all_gone(processes: Iterable[psutil.Process], *, within_s: float = 60.0) -> list[psutil.Process]:
    """Wait for processes to end, whoever is to reap them; return those that have not in that time."""
    deadline = time.monotonic() + within_s
    left = list(processes)
    while (left := [one for one in left if one.is_running() and is_alive(one.pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def is_alive(pid: int) -> bool:
    """Return whether it runs; a zombie has ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def commands(processes: Iterable[psutil.Process]) -> Iterator[tuple[psutil.Process, list[str]]]:
    """Yield those that run, each with its command, which is read at once: what ends meanwhile has none any more."""
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            yield process, process.cmdline()


def is_of_an_engine(process: psutil.Process) -> bool:
    """Does this process host an engine, or was it forked by one that does?"""
    try:
        return str(ENGINE_HOST) in process.cmdline()
    except psutil.NoSuchProcess:
        return False
