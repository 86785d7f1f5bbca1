"""Record each request's outcome as a row of integers in a file that can be read while it grows.

The file is a head of `HEAD` integers and then one row of `FIELDS` for each request. It is mapped piece by piece, so
that its length does not count as memory of whoever writes it.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from prony.load.connection import LoadConnection
from prony.ports.driver import Stamps

FIELDS = (
    "index", "request", "due_ns", "sent_ns", "first_ns", "end_ns",
    "status", "cause", "bytes_in", "lag_ns", "reads", "spool_at",
)  # fmt: skip
HEAD = ("rows", "sent", "in_flight", "opened", "failed")
_HEAD_BYTES = mmap.ALLOCATIONGRANULARITY
ROW_BYTES = 8 * len(FIELDS)
_PIECE_ROWS = mmap.ALLOCATIONGRANULARITY  # a whole number of pages, however long a row is
_PIECE_BYTES = _PIECE_ROWS * ROW_BYTES
_pack = struct.Struct(f"@{len(FIELDS)}q").pack_into
_pack_head = struct.Struct(f"@{len(HEAD)}q").pack_into

Columns = dict[str, Stamps]


class Records:
    """The writing side: one in each client process."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._fd, _HEAD_BYTES)
        self._head = mmap.mmap(self._fd, _HEAD_BYTES)
        self._pieces = 0
        self._piece: Any = None
        self._at = _PIECE_BYTES
        self.rows = 0

    def add(self, line: LoadConnection, spool_at: int) -> None:
        """Write the row of a request that has ended, in whatever way."""
        at = self._at
        if at == _PIECE_BYTES:
            at = self._next_piece()
        _pack(
            self._piece, at, line.index, line.request, line.due_ns, line.sent_ns, line.first_ns, line.end_ns,
            line.status, line.cause, line.bytes_in, line.lag_ns, line.reads, spool_at,
        )  # fmt: skip
        self._at = at + ROW_BYTES
        self.rows += 1

    def add_unsent(self, index: int, request: int, due_ns: int, now_ns: int, cause: int) -> None:
        """Write the row of a request that never left; `sent_ns` is when that was settled."""
        at = self._at
        if at == _PIECE_BYTES:
            at = self._next_piece()
        _pack(self._piece, at, index, request, due_ns, now_ns, 0, now_ns, 0, cause, 0, 0, 0, -1)
        self._at = at + ROW_BYTES
        self.rows += 1

    def tell(self, sent: int, in_flight: int, opened: int, failed: int) -> None:
        """Let readers see the rows that there are."""
        _pack_head(self._head, 0, self.rows, sent, in_flight, opened, failed)

    def _next_piece(self) -> int:
        if self._piece is not None:
            self._piece.close()
        begin = _HEAD_BYTES + self._pieces * _PIECE_BYTES
        os.ftruncate(self._fd, begin + _PIECE_BYTES)
        self._piece = mmap.mmap(self._fd, _PIECE_BYTES, offset=begin)
        self._pieces += 1
        return 0

    def close(self) -> None:
        """Cut the file to the rows that it holds."""
        if self._piece is not None:
            self._piece.close()
        self._head.close()
        os.ftruncate(self._fd, _HEAD_BYTES + self.rows * ROW_BYTES)
        os.close(self._fd)


def read_head(path: Path) -> dict[str, int]:
    """Return what the writer last told; zeros where it has not begun."""
    try:
        with path.open("rb") as stream:
            text = stream.read(8 * len(HEAD))
    except FileNotFoundError:
        text = b""
    if len(text) < 8 * len(HEAD):
        return dict.fromkeys(HEAD, 0)
    return dict(zip(HEAD, np.frombuffer(text, np.int64).tolist(), strict=True))


def read_rows(path: Path, begin: int, end: int) -> Stamps:
    """Return the rows from `begin` up to `end` as a table."""
    if end <= begin:
        return np.empty((0, len(FIELDS)), np.int64)
    with path.open("rb") as stream:
        stream.seek(_HEAD_BYTES + begin * ROW_BYTES)
        text = stream.read((end - begin) * ROW_BYTES)
    return np.frombuffer(text, np.int64).reshape(-1, len(FIELDS))


def read_records(path: Path) -> Stamps:
    """Return every row, those too that a process which died did not live to tell of."""
    if not path.exists():
        return np.empty((0, len(FIELDS)), np.int64)
    rows = max(path.stat().st_size - _HEAD_BYTES, 0) // ROW_BYTES
    table = read_rows(path, 0, rows)
    # Each row has an end; where there is none, nothing was written.
    return table[table[:, FIELDS.index("end_ns")] > 0]
