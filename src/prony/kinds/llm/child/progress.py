"""Note in the engine's process, between passes, how many tokens came in which time."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_FORM = struct.Struct("<qqq")


@dataclass(frozen=True)
class TokenProgress:
    """How many passes or answers are over, and of all of them the tokens and the time that was measured."""

    done: int = 0
    tokens: int = 0
    taken_ns: int = 0

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what stands in a file; None where nothing was written yet."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        return cls(*_FORM.unpack(data)) if len(data) == _FORM.size else None


class ProgressNote:
    """A file that the engine's process writes when nothing is timed: nobody wakes up for it."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600) if path else None
        self._now = TokenProgress()

    def add(self, tokens: int, taken_ns: int) -> None:
        """Note one more pass or answer."""
        self._now = TokenProgress(self._now.done + 1, self._now.tokens + tokens, self._now.taken_ns + taken_ns)
        if self._file is not None:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, _FORM.pack(self._now.done, self._now.tokens, self._now.taken_ns))
