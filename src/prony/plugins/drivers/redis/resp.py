"""Encode Redis commands, and count whole replies in the bytes received.

RESP2 and RESP3 are framed alike. The reader looks at lengths only: a value is skipped, never copied.
"""

from __future__ import annotations

from typing import NamedTuple

# First words of error replies, numbered for the status column; what is not named here is 1, as ERR is.
ERROR_WORDS = (
    "OK",
    "ERR",
    "WRONGTYPE",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "OOM",
    "LOADING",
    "BUSY",
    "READONLY",
    "MOVED",
    "ASK",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MASTERDOWN",
    "MISCONF",
)
_LINES = frozenset(b"+:,(#")
_BLOBS = frozenset(b"$=")
_GROUPS = {42: 1, 126: 1, 37: 2}  # * ~ %: how many elements each of its count stands for
_ASIDES = {62: 1, 124: 2}  # > |: what no command asked for
_ERRORS = frozenset(b"-!")
_LONGEST_LINE = 64 * 1024


class NotRespError(ValueError):
    """These bytes are none of the protocol."""


def encode_command(*words: bytes) -> bytes:
    """Return one command as an array of blobs."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def _error_number(line: bytes) -> int:
    """Return the number of an error reply's first word."""
    word = line.split(b" ", 1)[0].decode("latin-1")
    return ERROR_WORDS.index(word) if word in ERROR_WORDS else 1


class Seen(NamedTuple):
    """Of the replies that a read completed: how many, the first error's number, and how many were nil."""

    replies: int
    error: int
    nils: int


class Reader:
    """Frames replies over reads that may be cut anywhere."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._head = b""  # of a line that has not ended
        self._skip = 0  # of a blob whose end has not come, its line end included
        self._open = 0  # elements that the reply at hand still lacks; 0: between replies
        self._aside = False
        self._error = 0

    @property
    def is_between(self) -> bool:
        """Whether no reply has begun that has not ended."""
        return not (self._head or self._skip or self._open)

    def feed(self, data: bytes) -> Seen:
        at, replies, nils, error = 0, 0, 0, 0
        if self._skip:
            at = min(self._skip, len(data))
            self._skip -= at
            if self._skip:
                return Seen(0, 0, 0)
            ended = self._find_end()
            replies, error = ended, self._error if ended else 0
        elif self._head:
            data, self._head = self._head + data, b""
        size = len(data)
        while at < size:
            end = data.find(b"\r\n", at)
            if end < 0:
                self._keep(data[at:])
                break
            is_first = not self._open
            at, was_nil = self._element(data, at, end)
            if at > size:
                self._skip = at - size
                break
            if not self._open:
                replies += not self._aside
                nils += was_nil and is_first
                error = error or self._error
        return Seen(replies, error, nils)

    def _keep(self, head: bytes) -> None:
        if len(head) > _LONGEST_LINE:
            raise NotRespError("a line without an end")
        self._head = head

    def _find_end(self) -> int:
        return int(not self._open and not self._aside)

    def _element(self, data: bytes, at: int, end: int) -> tuple[int, bool]:
        """Take the element whose first line is data[at:end]; return where it ends, and whether it is nil."""
        kind = data[at]
        if not self._open:
            self._open, self._aside, self._error = 1, kind in _ASIDES, 0
            self._open -= 1
        elif kind not in _ASIDES:
            self._open -= 1
        if kind in _LINES:
            return end + 2, False
        if kind in _BLOBS:
            size = _number(data[at + 1 : end])
            return (end + 2, True) if size < 0 else (end + size + 4, False)
        if kind in _ERRORS:
            return self._note_error(data, at, end), False
        if kind == 95:  # _
            return end + 2, True
        return end + 2, self._group(kind, data[at + 1 : end])

    def _note_error(self, data: bytes, at: int, end: int) -> int:
        if data[at] == 45:
            self._error = _error_number(data[at + 1 : end])
            return end + 2
        size = _number(data[at + 1 : end])
        self._error = _error_number(data[end + 2 : end + 2 + size])
        return end + size + 4

    def _group(self, kind: int, count: bytes) -> bool:
        each = _GROUPS.get(kind) or _ASIDES.get(kind)
        if each is None:
            raise NotRespError(f"unknown kind of reply: {kind}")
        size = _number(count)
        self._open += max(size, 0) * each
        return size < 0


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError as exc:
        raise NotRespError(f"{text[:40]!r} is not a length") from exc
