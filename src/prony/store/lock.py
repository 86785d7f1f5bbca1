"""A path in, a block that only one process at a time may be in out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.errors import StoreError

_PAUSE_S = 0.02


@contextmanager
def hold_file_lock(path: Path, *, wait_s: float = 30.0) -> Iterator[None]:
    """Hold the lock at `path`; the system gives it back when the process ends, however it ends."""
    deadline = time.monotonic() + wait_s
    while True:
        with try_file_lock(path) as taken:
            if taken:
                yield
                return
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)
    raise StoreError(
        f"another Prony has been changing {path.parent} for over {wait_s:g} s",
        hint="wait for it to finish its import, delete or upgrade, then try again",
        code="store_busy",
    )


@contextmanager
def try_file_lock(path: Path) -> Iterator[bool]:
    """Try to hold the lock without waiting; the block is told whether it does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as exc:
        raise StoreError(f"cannot open {path}: {exc.strerror}", hint="may you write to this folder?") from exc
    try:
        yield _take(descriptor)
    finally:
        os.close(descriptor)  # gives the lock back too


def _take(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
