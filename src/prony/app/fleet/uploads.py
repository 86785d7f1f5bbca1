"""Save a stream as a file, and remove what killed servers left of such files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from prony.errors import InputError
from prony.store.home import Home
from prony.store.result_tar import disk_told

# No upload pauses for so long; several servers may share a home, so that what is younger may be in use.
_OLD_S = 7 * 86400.0


async def save(chunks: AsyncIterator[bytes], path: Path, *, most: int, start: int = 0) -> int:
    """Write a stream to a file from a place on; return how many bytes came.

    At its place, not at the end: a connection that was thought dead and goes on writes what is there already.
    """
    size = 0
    with disk_told(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _open_at(path, start)
    try:
        async for chunk in chunks:
            size += len(chunk)
            if start + size > most:
                hint = "measure fewer runs, or send fewer files"
                raise InputError(f"the upload is larger than {most} bytes", hint=hint, code="too_large")
            with disk_told(path):
                file.write(chunk)
    finally:
        with disk_told(path):
            file.close()
    return size


def _open_at(path: Path, start: int) -> IO[bytes]:
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    file.seek(start)
    return file


def remove_old_uploads(home: Home) -> None:
    """Remove what nobody can be sending any more."""
    if not home.uploads.is_dir():
        return
    for path in home.uploads.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _OLD_S:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
