"""Keep what running loads report, so that a page that is opened later sees them from their beginning.

Each attempt has a file with one line a second. After every `_MOST` lines the step between two of them doubles: a load
of a week has about ten thousand. When the result is there, its samples answer instead.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

from pydantic import ValidationError

from prony.model.event import Live
from prony.model.picture import LoadRunSeries
from prony.store.result_tar import disk_told

_MOST = 1200
# A tick comes a little early or late; a step is not to be missed for that.
_EARLY = 0.9
# So many files are in mind; where another one stands is read from it.
_MOST_FILES = 1000


class _FileEnd:
    """Where a file ends: its last line, and how many it has."""

    def __init__(self) -> None:
        self._run = -1
        self._at_s = 0.0
        self._count = 0

    def takes(self, live: Live) -> bool:
        """Say whether this is a line of its own. What comes again, because a call was repeated, is not."""
        if live.run != self._run:
            return live.run > self._run
        step_s = float(2 ** (self._count // _MOST))
        return live.elapsed_s >= self._at_s + step_s * _EARLY

    def note(self, live: Live) -> None:
        self._run, self._at_s, self._count = live.run, live.elapsed_s, self._count + 1


class LiveSeries:
    """The files of loads that run. Blocking: call it from a thread."""

    def __init__(self) -> None:
        self._ends: OrderedDict[Path, _FileEnd] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, path: Path, lives: Iterable[Live]) -> None:
        """Add what is new to a file."""
        with self._lock:
            end = self._ends.pop(path, None) or _find_end(path)
            self._ends[path] = end
            if len(self._ends) > _MOST_FILES:
                self._ends.popitem(last=False)
            lines = "".join(f"{live.model_dump_json(exclude_defaults=True)}\n" for live in _choose(end, lives))
            if lines:
                with disk_told(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(lines)


def _choose(end: _FileEnd, lives: Iterable[Live]) -> Iterator[Live]:
    for live in lives:
        if end.takes(live):
            end.note(live)
            yield live


def _find_end(path: Path) -> _FileEnd:
    end = _FileEnd()
    for live in _read_lives(path):
        end.note(live)
    return end


def _read_lives(path: Path) -> Iterator[Live]:
    """Yield the lines of a file; one that was cut short, as by a loss of power, is left out."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield Live.read_json(line)
        except ValidationError:
            continue


def read_live_series(path: Path, points: int) -> tuple[LoadRunSeries, ...]:
    """Return the runs in a file; a run with more than `points` lines is thinned to every second, third, ... of them."""
    runs = groupby(_read_lives(path), key=lambda live: live.run)
    return tuple(_series_of(run, list(lives), points) for run, lives in runs)


def _series_of(run: int, lives: list[Live], points: int) -> LoadRunSeries:
    step = -(-len(lives) // points)
    kept = lives[step - 1 :: step]
    before = Live(elapsed_s=0.0, sent=0, done=0, failed=0, in_flight=0, rate_per_s=0.0)
    return LoadRunSeries(
        repetition=run,
        is_used=True,
        at_s=tuple(round(one.elapsed_s, 3) for one in kept),
        rate_per_s=tuple(round(one.rate_per_s, 3) for one in kept),
        failed_per_s=tuple(_failures_per_s(*pair) for pair in pairwise([before, *kept])),
        in_flight=tuple(float(one.in_flight) for one in kept),
        p50_ms=tuple(one.p50_ms for one in kept),
        p99_ms=tuple(one.p99_ms for one in kept),
    )


def _failures_per_s(before: Live, after: Live) -> float:
    passed_s = after.elapsed_s - before.elapsed_s
    return round((after.failed - before.failed) / passed_s, 3) if passed_s > 0 else 0.0
