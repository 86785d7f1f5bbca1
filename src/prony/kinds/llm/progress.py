"""Tell how fast tokens come while a job runs: the engine's process notes it between passes, the runner reads it."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from prony.model.event import Live

_FORM = struct.Struct("<qqq")
_EVERY_NS = 10**9  # more often would only take time from what is measured


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


class ProgressReader:
    """Reads that file while one repetition runs, at most once a second."""

    def __init__(self, path: Path, run: int, clock_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._path, self._run, self._clock_ns = path, run, clock_ns
        self._begun_ns = self._asked_ns = self._told_ns = clock_ns()
        self._before = TokenProgress()

    def read(self) -> Live | None:
        """Return how it goes since the last time; None where nothing was added, or it was asked a moment ago."""
        now_ns = self._clock_ns()
        if now_ns - self._asked_ns < _EVERY_NS:
            return None
        self._asked_ns = now_ns
        found, before = TokenProgress.read(self._path), self._before
        if found is None or found.taken_ns <= before.taken_ns:
            return None
        seconds, self._told_ns, self._before = (now_ns - self._told_ns) / 1e9, now_ns, found
        return Live(
            run=self._run, elapsed_s=(now_ns - self._begun_ns) / 1e9, sent=found.done + 1, done=found.done, failed=0,
            in_flight=1, rate_per_s=(found.done - before.done) / seconds,
            tokens_per_s=1e9 * (found.tokens - before.tokens) / (found.taken_ns - before.taken_ns),
        )  # fmt: skip
