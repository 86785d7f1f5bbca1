"""Tell how fast tokens come while a job runs, by what the engine's process notes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from prony.kinds.llm.child.progress import TokenProgress
from prony.model.event import Live

_EVERY_NS = 10**9  # more often would only take time from what is measured


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
