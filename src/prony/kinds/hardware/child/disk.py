"""Measure a disk by a file of its own: in order by 1 MiB, at random by 4 KiB, past the page cache."""

from __future__ import annotations

import errno
import mmap
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prony.errors import CapacityError
from prony.runner.child.readings import SuiteTest

_PIECE, _PAGE = 2**20, 4096
_USUAL_BYTES = 256 * 2**20
_FREE_SHARE = 0.25
_BATCH_NS = 50_000_000
_DEPTH = 32
_DIRECT = getattr(os, "O_DIRECT", 0)


class DiskSuite:
    """Writes and reads a file in the folder that the options name, or in that of temporary files."""

    device_id = None
    settles = False

    def __init__(self, options: Mapping[str, Any], engine: object) -> None:
        del engine
        folder, self._size = choose_file(options)
        handle, name = tempfile.mkstemp(prefix="prony-disk-", dir=folder)
        os.close(handle)
        self._folder, self._path = folder, Path(name)
        self._random = random.Random(int(options.get("seed", 0)))
        self._is_direct, self._why = _takes_direct(self._path)
        self._descriptor = os.open(self._path, os.O_RDWR | (_DIRECT if self._is_direct else 0))
        self._pool: ThreadPoolExecutor | None = None
        self._batch_ns = min(_BATCH_NS, int(options.get("time_ns") or _BATCH_NS))
        self._buffers = _make_buffers(int(options.get("seed", 0)))

    def tests(self) -> Iterator[SuiteTest]:
        write = partial(self._pass_over, self._write_piece, is_synced=True)
        read = partial(self._pass_over, self._read_piece, is_synced=False)
        yield SuiteTest("write_mb_s", "", write, _megabytes_per_second)
        yield SuiteTest("read_mb_s", "", read, _megabytes_per_second)
        for name, work in (("read", self._read_page), ("write", self._write_page)):
            yield SuiteTest(f"random_{name}_iops", "", partial(self._one_by_one, work), _per_second)
        with ThreadPoolExecutor(_DEPTH) as self._pool:
            for name, work in (("read", self._read_page), ("write", self._write_page)):
                yield SuiteTest(
                    f"random_{name}_iops", f"queue={_DEPTH}", partial(self._sample_by_threads, work), _per_second
                )
        self._pool = None

    def facts(self) -> Mapping[str, str]:
        cache = "bypassed (O_DIRECT)" if self._is_direct else f"not bypassed: {self._why}"
        return {
            "device": _describe_mount(self._folder), "file": f"{self._size / 1e6:.0f} MB in {self._folder}",
            "page cache": cache, "pieces": "1 MiB sequential, 4 KiB random; each sample takes up to 50 ms",
            "data": "seeded, incompressible",
        }  # fmt: skip

    def close(self) -> None:
        os.close(self._descriptor)
        self._path.unlink(missing_ok=True)

    def _pass_over(self, work: Callable[[int], None], count: int, *, is_synced: bool) -> list[int]:
        """Return the time of one piece, of each of so many passes over the whole file."""
        pieces, taken = self._size // _PIECE, []
        for _ in range(count):
            self._drop()
            begin_ns = time.perf_counter_ns()
            for place in range(pieces):
                work(place * _PIECE)
            if is_synced:
                os.fsync(self._descriptor)
            taken.append((time.perf_counter_ns() - begin_ns) // pieces)
        return taken

    def _one_by_one(self, work: Callable[[int], None], count: int) -> list[int]:
        """Return the time of one piece, of each of so many batches."""
        taken = []
        for _ in range(count):
            self._drop()
            begin_ns, done = time.perf_counter_ns(), 0
            while done == 0 or time.perf_counter_ns() - begin_ns < self._batch_ns:
                work(self._place())
                done += 1
            taken.append((time.perf_counter_ns() - begin_ns) // done)
        return taken

    def _sample_by_threads(self, work: Callable[[int], None], count: int) -> list[int]:
        """The same with many threads, each of which waits for a piece of its own."""
        pool, taken = self._pool, []
        if pool is None:
            raise RuntimeError("the queue is closed")
        for _ in range(count):
            self._drop()
            places = [[self._place() for _ in range(2**12)] for _ in range(_DEPTH)]
            begin_ns = time.perf_counter_ns()
            done = sum(pool.map(partial(_go_through, work, begin_ns + self._batch_ns), places))
            taken.append((time.perf_counter_ns() - begin_ns) // done)
        return taken

    def _place(self) -> int:
        return self._random.randrange(self._size // _PAGE) * _PAGE

    def _drop(self) -> None:
        """Ask the system to forget the file's pages; it may, where the cache cannot be bypassed."""
        if not self._is_direct and hasattr(os, "posix_fadvise"):
            os.fsync(self._descriptor)
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def _write_piece(self, place: int) -> None:
        os.pwritev(self._descriptor, [self._buffers["out"]], place)

    def _read_piece(self, place: int) -> None:
        os.preadv(self._descriptor, [self._buffers["in"]], place)

    def _write_page(self, place: int) -> None:
        os.pwritev(self._descriptor, [self._buffers["page_out"]], place)

    def _read_page(self, place: int) -> None:
        # Threads may read into one buffer: nobody looks at what was read.
        os.preadv(self._descriptor, [self._buffers["page_in"]], place)


def choose_file(options: Mapping[str, Any]) -> tuple[Path, int]:
    """Return the folder of the file and its size in bytes.

    Raises:
        CapacityError: There is no such folder, or too little is free.
    """
    folder = Path(str(options.get("path") or tempfile.gettempdir()))
    if not folder.is_dir():
        raise CapacityError(
            f"folder not found: {folder}", hint="set workload.path to an existing folder", code="no_directory"
        )
    free = _free_bytes(folder)
    size = max(_PIECE, int(options.get("size") or min(_USUAL_BYTES, _FREE_SHARE * free)) // _PIECE * _PIECE)
    if size > free:
        hint = "set workload.path to another folder, or lower workload.size"
        raise CapacityError(
            f"{folder} has {free / 1e6:.0f} MB free, but the test file needs {size / 1e6:.0f} MB",
            hint=hint, code="disk_full",
        )  # fmt: skip
    return folder, size


def _megabytes_per_second(ns: float) -> float:
    return _PIECE * 1e3 / ns


def _per_second(ns: float) -> float:
    return 1e9 / ns


def _go_through(work: Callable[[int], None], until_ns: int, places: Sequence[int]) -> int:
    done = 0
    for place in places:
        work(place)
        done += 1
        if time.perf_counter_ns() >= until_ns:
            break
    return done


def _make_buffers(seed: int) -> dict[str, memoryview]:
    """Return buffers at page boundaries, which direct input and output needs; what is written is noise."""
    sizes = {"out": _PIECE, "in": _PIECE, "page_out": _PAGE, "page_in": _PAGE}
    made = {name: memoryview(mmap.mmap(-1, size)) for name, size in sizes.items()}
    for name in ("out", "page_out"):
        made[name][:] = np.random.default_rng(seed).bytes(sizes[name])
    return made


def _takes_direct(path: Path) -> tuple[bool, str]:
    """Say whether a file can be written past the page cache, and why not."""
    if not _DIRECT:
        return False, "this system has no O_DIRECT"
    try:
        descriptor = os.open(path, os.O_RDWR | _DIRECT)
    except OSError as exc:
        return False, f"the file system refuses O_DIRECT ({exc.strerror})"
    try:
        os.pwritev(descriptor, [mmap.mmap(-1, _PAGE)], 0)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
        return False, f"the file system refuses direct writes ({exc.strerror})"
    finally:
        os.close(descriptor)
    return True, ""


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _describe_mount(folder: Path) -> str:
    """Return the device and file system that a folder lies on: `/dev/vda (ext4)`."""
    mounts = Path("/proc/self/mounts")
    place, found = str(folder.resolve()), ("", "disk")
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        device, point, kind = line.split()[:3]
        is_above = place == point or place.startswith(point.rstrip("/") + "/")
        if is_above and len(point) >= len(found[0]):
            found = point, f"{device} ({kind})"
    return found[1]
