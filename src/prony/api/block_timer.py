"""Time blocks of a program by name: `with prony.timer("tokenise"): ...`. Standard library only."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NamedTuple

_clock = time.perf_counter_ns


class BlockTimes(NamedTuple):
    """How long the runs of one block took; `total_ms` counts every run, those of several threads at once too."""

    name: str
    runs: int
    p50_ms: float
    min_ms: float
    max_ms: float
    total_ms: float


class TimerSummary(tuple[BlockTimes, ...]):
    """A line for each block, in the order of their first runs; printed as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return "no block was timed"
        rows: list[tuple[str, ...]] = [("block", "runs", "p50", "min", "max", "total")]
        for one in self:
            times = (one.p50_ms, one.min_ms, one.max_ms, one.total_ms)
            rows.append((one.name, str(one.runs), *(f"{value:.6g} ms" for value in times)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )


class _Block:
    """One run of a block. It holds its own beginning, so blocks of one name may nest and run in many threads."""

    __slots__ = ("_add", "_begin_ns")

    def __init__(self, add: array[int]) -> None:
        self._add = add.append

    def __enter__(self) -> None:
        self._begin_ns = _clock()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # Appending is one step of the interpreter: no other thread sees half of it.
        self._add(_clock() - self._begin_ns)


class Timers:
    """Times blocks by name. A block that ends by an error counts too: it took that long."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, array[int]] = {}

    def __call__(self, name: str) -> AbstractContextManager[None]:
        """Return what times one run of the block `name`."""
        found = self._times.get(name)
        return _Block(self._make(name) if found is None else found)

    def summary(self) -> TimerSummary:
        """Return number, median, minimum, maximum and sum of each block's runs so far; those still open are not in."""
        with self._lock:
            copied = {name: array("q", times) for name, times in self._times.items()}
        return TimerSummary(_describe_blocks(copied))

    def durations_ms(self, name: str) -> list[float]:
        """Return how long each run of a block took, in the order in which they ended.

        Raises:
            KeyError: No block has this name.
        """
        return [value / 1e6 for value in array("q", self._times[name])]

    def reset(self) -> None:
        """Forget all blocks; one that is open now is not counted when it ends."""
        with self._lock:
            self._times = {}

    def _make(self, name: str) -> array[int]:
        with self._lock:
            return self._times.setdefault(name, array("q"))


def _describe_blocks(times: dict[str, array[int]]) -> Iterator[BlockTimes]:
    for name, all_ns in times.items():
        if all_ns:
            ordered = sorted(all_ns)
            middle = (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2
            ms = [value / 1e6 for value in (middle, ordered[0], ordered[-1], sum(ordered))]
            yield BlockTimes(name, len(ordered), *ms)


timer = Timers()
