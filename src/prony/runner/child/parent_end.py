"""How processes begin and end with others, by what each system has for that. Standard library only.

Linux signals a child itself (`prctl`). On macOS a thread waits for the parent by kqueue, on Windows by its handle.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

_PR_SET_PDEATHSIG = 1
_SYNCHRONIZE, _INFINITE = 0x00100000, 0xFFFFFFFF
# Windows has no SIGKILL; there `os.kill` ends a process by any number but those of the console.
KILL = int(getattr(signal, "SIGKILL", signal.SIGTERM))


def can_fork(platform: str = sys.platform) -> bool:
    """Can an imported engine be forked? Accelerate and Metal of macOS abort in a fork, and Windows has none."""
    return platform not in ("darwin", "win32")


def die_with_parent(number: int = KILL, parent: int | None = None) -> None:
    """Have this process signalled when its parent ends, however it ends. `parent` is who made this process: without
    it, one that is gone already is not missed."""
    parent = os.getppid() if parent is None else parent
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    elif sys.platform == "win32":
        _call_after(lambda: wait_for_handle(parent), number)
    elif hasattr(select, "kqueue"):
        _call_after(lambda: wait_for_exit(parent), number)
    if os.getppid() != parent:  # it ended before we could ask
        os.kill(os.getpid(), number)


def wait_for_exit(parent: int, kqueue: Callable[[], Any] | None = None) -> None:
    """Wait by kqueue until a process ends; return at once where it is gone."""
    queue = (kqueue or select.kqueue)()  # type: ignore[attr-defined, unused-ignore]
    try:
        # EVFILT_PROC and NOTE_EXIT, by the numbers that BSD and macOS have given them.
        event = getattr(select, "kevent", _Event)(parent, filter=-5, flags=0x0001 | 0x0010, fflags=0x80000000)
        queue.control([event], 1, None)
    except ProcessLookupError:
        return
    finally:
        queue.close()


class _Event:
    """What is asked of a kqueue, where the system has none and a test stands for it."""

    def __init__(self, ident: int, **rest: int) -> None:
        self.ident = ident
        self.rest = rest


def wait_for_handle(parent: int, kernel32: Any = None) -> None:
    """Wait by its handle until a process of Windows ends; return at once where it is gone."""
    kernel = kernel32 or ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(_SYNCHRONIZE, False, parent)
    if handle:
        kernel.WaitForSingleObject(handle, _INFINITE)
        kernel.CloseHandle(handle)


def _call_after(wait: Callable[[], None], number: int) -> None:
    """Signal this process after the wait, from a thread that keeps nobody from ending."""

    def watch() -> None:
        wait()
        os.kill(os.getpid(), number)

    threading.Thread(target=watch, name="parent's end", daemon=True).start()
