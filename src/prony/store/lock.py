"""File locks: blocks that only one process at a time may be in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import StoreError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_PAUSE_S = 0.02


@contextmanager
def hold_file_lock(path: Path, *, wait_s: float = 30.0) -> Iterator[None]:
    """Hold the lock at `path`; the system gives it back when the process ends, however it ends."""
    with try_file_lock(path, wait_s=wait_s) as taken:
        if not taken:
            raise StoreError(
                f"another Prony has been changing {path.parent} for over {wait_s:g} s",
                hint="wait until its import, delete or upgrade has ended, then try again",
                code="store_busy",
            )
        yield


@contextmanager
def try_file_lock(path: Path, *, wait_s: float = 0.0) -> Iterator[bool]:
    """Try for so long to hold the lock; the block is told whether it does."""
    lock = None
    try:
        lock = take_file_lock(path, wait_s)
    except TimeoutError:
        pass
    except OSError as exc:
        raise StoreError(f"cannot open {path}: {exc.strerror}", hint="check that you may write to this folder") from exc
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()


def take_file_lock(path: Path, wait_s: float | None) -> BaseFileLock:
    """Return the lock once it is held; a TimeoutError where others held it for so long. Without a time, wait for ever.

    The file stays when it is released: removing it would let a third process lock a new file of the same name beside a
    waiting second.
    """
    from filelock import FileLock  # most commands lock nothing

    path.parent.stat()  # a folder that is not there is an error; filelock would make it
    # On a file system without locks this fails: a file in their place would outlive a holder that is killed.
    lock = FileLock(path, poll_interval=_PAUSE_S, thread_local=False, fallback_to_soft=False)
    lock.acquire(timeout=-1 if wait_s is None else wait_s)
    return lock
