"""Wait until a pipe has something to read. Standard library only.

Windows selects among sockets alone; there the pipe is looked into again and again.
"""

from __future__ import annotations

import ctypes
import select
import sys
import time
from collections.abc import Callable
from typing import Any

# How often a pipe of Windows is looked into: seldom enough to cost little beside a measurement.
_LOOK_S = 0.01


def wait_readable(descriptor: int, within_s: float) -> bool:
    """Wait until there is something to read, or the other end is closed; False where neither came in time."""
    if sys.platform == "win32":
        return look_until(lambda: is_pipe_ready(descriptor), within_s)
    return bool(select.select([descriptor], [], [], within_s)[0])


def look_until(holds: Callable[[], bool], within_s: float, sleep: Callable[[float], None] = time.sleep) -> bool:
    """Look until something holds, at least once."""
    deadline = time.monotonic() + within_s
    while not holds():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        sleep(min(_LOOK_S, left))
    return True


def is_pipe_ready(descriptor: int, kernel32: Any = None, handle_of: Callable[[int], int] | None = None) -> bool:
    """Has a pipe of Windows bytes, or no writer any more?"""
    if handle_of is None:
        import msvcrt

        handle_of = msvcrt.get_osfhandle  # type: ignore[attr-defined, unused-ignore]
    kernel = kernel32 or ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    waiting = ctypes.c_ulong(0)
    is_open = kernel.PeekNamedPipe(handle_of(descriptor), None, 0, None, ctypes.byref(waiting), None)
    return not is_open or waiting.value > 0
