"""Write kept replies to a file in a background thread, so that the loop does not wait for the disk.

A block is: the request's index, its status, how many pieces, how many bytes; the stamp of each piece; the size of each
piece; the bytes. A request's row says where its block begins. What waits to be written is bounded: a disk that cannot
follow holds up the loop in the end, and the loop's lag shows it.
"""

from __future__ import annotations

import mmap
import os
import queue
import struct
import sys
import threading
from array import array
from pathlib import Path

import numpy as np

from prony.load.connection import LoadConnection
from prony.ports.driver import Reply

_head = struct.Struct("@4q")
_BLOCK_BYTES = 2**18
_WAITING_BLOCKS = 64
_MAPPED_BYTES = 2**21


class ReplySpool:
    """The writing side: one in each client process that keeps replies."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._parts: list[bytes] = []
        self._size = 0
        self._at = 0
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_BLOCKS)
        self.problem: OSError | None = None
        self._thread = threading.Thread(target=self._write, name="spool", daemon=True)
        self._thread.start()

    def add(self, line: LoadConnection) -> int:
        """Take what the line kept; return where it will stand, -1 where there is nothing."""
        pieces = line.pieces
        if not pieces:
            return -1
        sizes = array("q", map(len, pieces))
        body = b"".join(pieces)
        head = _head.pack(line.index, line.status, len(pieces), len(body))
        at = self._at
        self._parts += (head, array("q", line.stamps).tobytes(), sizes.tobytes(), body)
        length = len(head) + 16 * len(pieces) + len(body)
        self._at = at + length
        self._size += length
        if self._size >= _BLOCK_BYTES:
            self.flush()
        return at

    def flush(self) -> None:
        if self._parts:
            self._waiting.put(b"".join(self._parts))
            self._parts, self._size = [], 0

    def close(self) -> None:
        self.flush()
        self._waiting.put(None)
        self._thread.join()
        os.close(self._fd)

    def _write(self) -> None:
        while (block := self._waiting.get()) is not None:
            if self.problem is None:
                self._write_block(block)

    def _write_block(self, block: bytes) -> None:
        rest = memoryview(block)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            self.problem = exc


class Kept:
    """The reading side: replies by where they stand."""

    def __init__(self, path: Path) -> None:
        self._mapped = 0
        self._bytes: mmap.mmap | bytes = b""
        if path.exists() and path.stat().st_size:
            with path.open("rb") as stream:
                self._bytes = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def at(self, place: int) -> Reply | None:
        """Return the reply at this place; None where it was not written to its end."""
        if place < 0 or place + _head.size > len(self._bytes):
            return None
        _, status, count, length = _head.unpack_from(self._bytes, place)
        stamps_at = place + _head.size
        body_at = stamps_at + 16 * count
        if body_at + length > len(self._bytes):
            return None
        numbers = np.frombuffer(self._bytes[stamps_at:body_at], np.int64)
        body = self._bytes[body_at : body_at + length]
        self._let_go(_head.size + 16 * count + length)
        return Reply(status=status, stamps_ns=numbers[:count], sizes=numbers[count:].tolist(), body=bytes(body))

    def _let_go(self, length: int) -> None:
        """Have what was read not count as memory of this process; what is wanted again is mapped again."""
        self._mapped += length
        if self._mapped >= _MAPPED_BYTES and isinstance(self._bytes, mmap.mmap):
            self._mapped = 0
            if sys.platform == "linux":
                self._bytes.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        if isinstance(self._bytes, mmap.mmap):
            self._bytes.close()
