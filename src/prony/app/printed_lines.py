"""Read the files that a job prints to while they grow, and tell new lines to whoever follows it from afar."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from prony.app.read_log import cut_letter
from prony.model.event import Event

JOB_LOG = "job.log"
# Sources beside the files of a result's folder `logs`: what happens to the job, and what its runner complains of.
NOTES, RUNNER = "prony", "runner"
# What is read of one file in one look, so that nobody waits long for a script that prints without end.
_MOST_OF_LOOK = 2**20
# Numbers that a script emitted; they are samples of the result.
_NO_TEXT = ".jsonl"
# Older files have ended: a run of a thousand repetitions is no reason to look at a thousand files each second.
_WATCHED = 32

# What is told of a job: a look at a target reads 256 KiB at most, and its other events must come through.
_TOLD_AT_ONCE, _TOLD_PER_S, _TOLD_IN_ALL = 128 * 1024, 16 * 1024, 8 * 2**20
_LONGEST_EVENT = 16 * 1024


class PrintedFiles:
    """The text files of a result's folder `logs`, and where given what its runner writes to `stderr`."""

    def __init__(self, logs: Path, stderr: Path | None = None) -> None:
        self._logs = logs
        self._files: dict[str, _GrowingFile] = {} if stderr is None else {RUNNER: _GrowingFile(stderr)}

    def read(self, *, is_over: bool) -> Iterator[tuple[str, list[str]]]:
        """Yield the name and the new lines of each file that has some, one look's worth of each."""
        with suppress(OSError):  # the folder is not there yet, or is on its way out
            self._notice_files(self._logs, "")
        named = list(self._files.items())
        for name, file in named if is_over else [*named[:1], *named[1:][-_WATCHED:]]:
            lines = file.read_lines(is_over=is_over)
            if lines:
                yield name, lines

    def _notice_files(self, folder: Path, below: str) -> None:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    self._notice_files(folder / entry.name, f"{name}/")
                elif entry.is_file(follow_symlinks=False) and not name.endswith(_NO_TEXT) and name != JOB_LOG:
                    self._files.setdefault("_".join(name.split()), _GrowingFile(folder / entry.name))


class _GrowingFile:
    """A file that somebody else writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._unfinished = b""

    def read_lines(self, *, is_over: bool) -> list[str]:
        """Return the lines since the last call, without their ends.

        A line that is not ended yet is left, unless it stood like that the last time. A line that was written over
        with carriage returns, as progress bars are, is what was written last.
        """
        block = self._read()
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        rest = block[end:]
        if rest and (is_over or rest == self._unfinished or len(rest) >= _MOST_OF_LOOK):
            end = len(block) - (0 if is_over else cut_letter(rest))
        self._unfinished = block[end:]
        self._at += end
        text = block[:end].decode(errors="replace")
        lines = text.removesuffix("\n").split("\n") if text else []
        return [line.rstrip("\r").rpartition("\r")[2] for line in lines]

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                return file.read(_MOST_OF_LOOK)
        except OSError:
            return b""


class PrintedEvents:
    """Tells lines as events of kind `printed`, as many as whoever looks now and then can read; the others are counted.

    `share` is the number of those that tell of the same job, as the nodes of one do.
    """

    def __init__(
        self, job_id: str, emit: Callable[[Event], None], *, share: int = 1, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._job_id = job_id
        self._emit = emit
        self._now_s = now_s
        self._share = share
        self._room = _TOLD_AT_ONCE / share
        self._left = _TOLD_IN_ALL / share
        self._counted_s = now_s()
        self._skipped = 0

    def tell(self, source: str, lines: Sequence[str]) -> None:
        """Tell the lines that there is room for; the rest is left out."""
        fitting = self._count_fitting(lines)
        if fitting:
            self.tell_skipped()
            for text in _join_lines(lines[:fitting]):
                self._emit(Event(kind="printed", job_id=self._job_id, phase=source, message=text))
        self._skipped += len(lines) - fitting

    def tell_skipped(self) -> None:
        """Say how many lines were left out since the last that was told, if any were."""
        if self._skipped:
            text = f"{self._skipped} lines are not shown here; the files of the result have them"
            self._emit(Event(kind="printed", job_id=self._job_id, phase=NOTES, message=text))
            self._skipped = 0

    def _count_fitting(self, lines: Sequence[str]) -> int:
        now_s = self._now_s()
        more = (now_s - self._counted_s) * _TOLD_PER_S / self._share
        self._room, self._counted_s = min(self._room + more, _TOLD_AT_ONCE / self._share), now_s
        for number, line in enumerate(lines):
            size = len(line.encode(errors="replace")) + 1
            if size > min(self._room, self._left):
                return number
            self._room, self._left = self._room - size, self._left - size
        return len(lines)


def _join_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines as texts that are no longer than an event may be; a longer line is cut into several."""
    held: list[str] = []
    size = 0
    for line in lines:
        for start in range(0, len(line) or 1, _LONGEST_EVENT):
            piece = line[start : start + _LONGEST_EVENT]
            if held and size + len(piece) > _LONGEST_EVENT:
                yield "\n".join(held)
                held, size = [], 0
            held.append(piece)
            size += len(piece) + 1
    if held:
        yield "\n".join(held)
