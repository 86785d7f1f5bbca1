"""The lock of a model in the cache: processes that want the same file take turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prony.errors import StoreError
from prony.store.lock import take_file_lock


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path` through the block. The system lets go of it when the process ends, however it ends."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = take_file_lock(path, wait_s=None)
    except OSError as exc:
        raise StoreError(
            f"cannot write to the model cache at {path.parent}: {exc.strerror}",
            hint="set PRONY_HOME to a folder that you may write to",
        ) from exc
    try:
        yield
    finally:
        lock.release()
