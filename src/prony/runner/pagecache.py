"""How much of a file lies in the page cache, and the means to fill or empty it."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

from prony.errors import CapacityError

_MAP_FAILED = ctypes.c_void_p(-1).value
_COLD_MOST = 0.1


def resident_share(files: Iterable[Path]) -> float | None:
    """Return which share of the files' pages is in memory (0..1), or None where the system does not tell."""
    if sys.platform != "linux":
        return None
    known = [_resident_pages(path) for path in files if path.is_file() and path.stat().st_size]
    told = [pages for pages in known if pages is not None]
    if not told or len(told) < len(known):
        return None
    return sum(here for here, _ in told) / sum(whole for _, whole in told)


def _resident_pages(path: Path) -> tuple[int, int] | None:
    if path.stat().st_uid != os.geteuid() and not os.access(path, os.W_OK):
        return None  # of a stranger's file the kernel says that every page is there
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    size = path.stat().st_size
    count = -(-size // mmap.PAGESIZE)
    flags = (ctypes.c_ubyte * count)()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Mapped without touching a page: looking must not change what is looked at.
        address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address == _MAP_FAILED:
            return None
        failed = libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), flags)
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    finally:
        os.close(descriptor)
    return None if failed else (sum(flag & 1 for flag in bytes(flags)), count)


def arrange(files: Collection[Path], wanted: str) -> None:
    """Bring the files into the state that the recipe asks for: `as-is`, `warm` or `cold`."""
    for path in files:
        if wanted == "warm" and path.is_file():
            with path.open("rb") as file:
                while file.read(2**20):
                    pass
        elif wanted == "cold" and path.is_file():
            _drop(path)
    if wanted == "cold" and (left := resident_share(files) or 0.0) > _COLD_MOST:
        raise CapacityError(
            f"{left:.0%} of the model stays in the page cache",
            hint="it may be on a file system in memory, or in use by another process; use measure.page_cache: as-is",
            code="page_cache",
        )


def _drop(path: Path) -> None:
    if not hasattr(os, "posix_fadvise"):
        hint = "use measure.page_cache: as-is on this system"
        raise CapacityError("this system cannot drop a file from its page cache", hint=hint, code="page_cache")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fdatasync(descriptor)  # dirty pages cannot be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
