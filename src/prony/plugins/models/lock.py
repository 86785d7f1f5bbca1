"""A path in, sole use of it out: processes that want the same file take turns."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from prony.errors import StoreError

if sys.platform == "win32":
    import msvcrt

    def _take(stream: BinaryIO) -> None:
        while True:
            try:
                msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.1)
            else:
                return

else:
    import fcntl

    def _take(stream: BinaryIO) -> None:
        fcntl.flock(stream, fcntl.LOCK_EX)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path` through the block. The system lets go of it when the process ends, however it ends.

    The file stays: removing it would let a third process lock a new file of the same name beside a waiting second.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab")
    except OSError as exc:
        raise StoreError(
            f"cannot write to the model cache at {path.parent}: {exc.strerror}",
            hint="set PRONY_HOME to a folder that you may write to",
        ) from exc
    with stream:
        _take(stream)
        yield
