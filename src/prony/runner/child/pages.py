"""Map the spawner's resident pages of engine code into a forked child.

A fork hands on what was written and leaves out what was only read from files. The child would fetch the engine's code
page by page, and its load would be charged with that time and that memory.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import numpy as np

_POPULATE_READ = 22  # Linux 5.14; an older kernel refuses it, and the child goes without
_ENTRY_BYTES = 8

Stretch = tuple[int, int]  # address and length


def resident_stretches() -> list[Stretch]:
    """Return the parts of mapped files that are resident in this process; none where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_bytes().decode(errors="replace").splitlines()
        with FileIO("/proc/self/pagemap") as pagemap:
            return [stretch for line in lines for stretch in _of_mapping(line, pagemap)]
    except OSError:
        return []


def _of_mapping(line: str, pagemap: FileIO) -> Iterator[Stretch]:
    words = line.split(maxsplit=5)
    if len(words) < 6 or not words[5].startswith("/") or words[5].startswith("/dev/"):
        return
    begin, end = (int(word, 16) for word in words[0].split("-"))
    pagemap.seek(begin // mmap.PAGESIZE * _ENTRY_BYTES)
    entries = np.frombuffer(pagemap.read((end - begin) // mmap.PAGESIZE * _ENTRY_BYTES), np.uint64)
    is_here = (entries >> np.uint64(63)).astype(np.int8)
    edges = np.flatnonzero(np.diff(is_here, prepend=np.int8(0), append=np.int8(0)))
    for first, beyond in edges.reshape(-1, 2).tolist():
        yield begin + first * mmap.PAGESIZE, (beyond - first) * mmap.PAGESIZE


def populate(stretches: list[Stretch]) -> None:
    """Map these pages here too; what cannot be mapped is left for later."""
    if not stretches:
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for address, length in stretches:
        advise(address, length, _POPULATE_READ)
