"""Let processes take turns at a file of the cache, and write one once, so that no one sees it half-written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
            hint="set PRONY_HOME to a writable folder",
        ) from exc
    try:
        yield
    finally:
        lock.release()


def made_once(path: Path, write: Callable[[Path], None]) -> Path:
    """Return `path`, calling `write` with a temporary name of the same ending unless the file is there and whole."""
    if _is_whole(path):
        return path
    with hold_lock(path.with_name(f".{path.name}.lock")):
        if not _is_whole(path):  # another process may have made it while this one waited
            _make(path, write)
    return path


def _size_note(path: Path) -> Path:
    return path.with_name(f".{path.name}.size")


def _is_whole(path: Path) -> bool:
    """Compare with the size that was noted after writing: a disk that filled up or lost power leaves short files."""
    try:
        return path.stat().st_size == int(_size_note(path).read_text())
    except (OSError, ValueError):
        return False  # what keeps it from being read will keep it from being written, and is told there


def _make(path: Path, write: Callable[[Path], None]) -> None:
    part = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(part)
        size = part.stat().st_size
        part.replace(path)
        _size_note(path).write_text(str(size))
    except OSError as exc:
        raise StoreError(
            f"cannot write {path}: {exc}", hint="check free disk space and whether the folder is writable"
        ) from exc
    finally:
        part.unlink(missing_ok=True)
