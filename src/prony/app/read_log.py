"""Read a log or another text piece by piece: whole lines, those that are searched for, and nothing that acts."""

from __future__ import annotations

import re
from pathlib import Path

from prony.errors import InputError
from prony.model.log import EVERYTHING, LogFilter, LogPiece
from prony.model.shown import plain_log

MOST_BYTES = 256 * 1024
_LONGEST = 2**40


def read_piece(path: Path, offset: int, wanted: LogFilter = EVERYTHING, *, is_over: bool = False) -> LogPiece:
    """Return the wanted lines from an offset on, a few hundred KiB at most; `is_over`: the file grows no more.

    Where lines are chosen, it reads on until it has found some or is at the end.
    """
    if not 0 <= offset <= _LONGEST:
        raise InputError("no log is as long as this offset", hint="begin at 0", code="bad_offset")
    while True:
        block = _read(path, offset)
        taken = block[: _end_of(block, is_over=is_over, needs_lines=not wanted.is_empty)]
        offset += len(taken)
        text = plain_log(taken.decode(errors="replace"))
        if not wanted.is_empty:
            text = "".join(line for line in re.findall("[^\n]*\n|[^\n]+$", text) if wanted.keeps(line))
        if text or not taken:
            return LogPiece(text.encode(), offset, ended=is_over and not text)


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(MOST_BYTES)
    except FileNotFoundError:
        return b""


def _end_of(block: bytes, *, is_over: bool, needs_lines: bool) -> int:
    """Return how much of a block to take: to the end of a line where more may follow, and no letter cut in two."""
    is_rest = len(block) < MOST_BYTES
    if is_rest and is_over:
        return len(block)
    end = block.rfind(b"\n") + 1
    if end and (needs_lines or not is_rest):
        return end
    if needs_lines and is_rest:
        return 0
    return len(block) - cut_letter(block)


def cut_letter(block: bytes) -> int:
    """Return how many bytes at the end are the beginning of a letter of UTF-8."""
    for count in range(1, min(4, len(block)) + 1):
        first = block[-count]
        if first & 0b1100_0000 != 0b1000_0000:
            length = 4 if first >= 0xF0 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
            return count if length > count else 0
    return 0
