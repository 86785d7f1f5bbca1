"""Write the log of a job: what happens to it and what it prints, line by line, with time and source."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from prony.app.read_log import cut_letter
from prony.model.event import Event

JOB_LOG = "job.log"
# Sources beside the files of a result's folder `logs`: what happens to the job, and what its runner complains of.
NOTES, RUNNER = "prony", "runner"
# Beyond this a log fills disks and is read by nobody; the files that were printed stay whole beside it.
MOST_BYTES = 32 * 2**20
# What is read of one file in one look, so that nobody waits long for a script that prints without end.
_MOST_OF_LOOK = 2**20
# A load tells how it goes four times a second; that is kept as numbers, not as lines.
_UNNOTED = frozenset({"load", "meet"})
# Numbers that a script emitted; they are samples of the result.
_NO_TEXT = ".jsonl"
# Older files have ended: a run of a thousand repetitions is no reason to look at a thousand files each second.
_WATCHED = 32
LOOK_S = 1.0


class JobLog:
    """A file of lines `TIME SOURCE TEXT`. TIME is when the line was read, in UTC; SOURCE is `prony`, `runner` or the
    name of a file in the folder `logs` of the result.

    Offsets count bytes of UTF-8. Nothing is written before the folder of `path` is there.
    """

    def __init__(self, path: Path, logs: Path, *, stderr: Path | None = None) -> None:
        self._path = path
        self._logs = logs
        self._files: dict[str, _GrowingFile] = {} if stderr is None else {RUNNER: _GrowingFile(stderr)}
        self._waiting: list[str] = []
        self._size = 0

    def note_event(self, event: Event) -> None:
        """Note what happened; what was printed before it stands before it."""
        if event.kind in _UNNOTED:
            return
        if event.state:
            self.gather()
        self.note(_format_event(event))

    def note(self, text: str) -> None:
        """Add a line of Prony's own."""
        self._write(NOTES, text.splitlines())

    def gather(self, *, is_over: bool = False) -> None:
        """Take over what was printed since the last look; `is_over`: nothing follows, so half a line is a line."""
        while self._look(is_over=is_over) and is_over and self._size <= MOST_BYTES:
            pass

    def _look(self, *, is_over: bool) -> bool:
        """Take over one look's worth of every file; return whether there was anything."""
        with suppress(OSError):  # the folder is not there yet, or is on its way out
            self._notice_files(self._logs, "")
        named = list(self._files.items())
        found = False
        for name, file in named if is_over else [*named[:1], *named[1:][-_WATCHED:]]:
            lines = file.read_lines(is_over=is_over)
            found = found or bool(lines)
            self._write(name, lines)
        return found

    def _notice_files(self, folder: Path, below: str) -> None:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                name = f"{below}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    self._notice_files(folder / entry.name, f"{name}/")
                elif entry.is_file(follow_symlinks=False) and not name.endswith(_NO_TEXT) and name != JOB_LOG:
                    self._files.setdefault("_".join(name.split()), _GrowingFile(folder / entry.name))

    def read(self, offset: int, most: int) -> str:
        """Return the text from an offset on, at most so many bytes."""
        try:
            with self._path.open("rb") as file:
                file.seek(offset)
                block = file.read(most)
        except OSError:
            return ""
        return block.decode(errors="ignore")  # a letter that was cut in two comes whole with the next piece

    def _write(self, source: str, lines: Sequence[str]) -> None:
        if not lines or self._size > MOST_BYTES:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._waiting += [f"{now} {source} {line}\n" for line in lines]
        self._size += sum(len(line.encode(errors="replace")) for line in self._waiting[-len(lines) :])
        if self._size > MOST_BYTES:
            note = f"the log ends here: {MOST_BYTES // 2**20} MiB are enough; the files of the result have everything"
            self._waiting.append(f"{now} {NOTES} {note}\n")
        if not self._path.parent.is_dir():
            return
        # The disk is full: whoever keeps the result will say so.
        with suppress(OSError), self._path.open("ab") as file:
            file.write("".join(self._waiting).encode(errors="replace"))
        self._waiting.clear()


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


class RunLogs:
    """The logs of jobs that run on this machine, each beside its result."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        self._logs = {job_id: JobLog(folder / "logs" / JOB_LOG, folder / "logs") for job_id, folder in folders.items()}
        self._current: JobLog | None = None
        self._looked_s = 0.0

    def note_event(self, event: Event) -> None:
        log = self._logs.get(event.job_id)
        if log is not None:
            self._current = log
            log.note_event(event)
        self.look()

    def note_first(self, on_event: Callable[[Event], None]) -> Callable[[Event], None]:
        """Return what notes an event and then hands it on."""

        def hear(event: Event) -> None:
            self.note_event(event)
            on_event(event)

        return hear

    def look(self) -> None:
        """Take over what the job at work has printed, at most once a second."""
        if self._current is not None and time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            self._current.gather()

    def close(self) -> None:
        """Take over what is left of every job."""
        for log in self._logs.values():
            log.gather(is_over=True)


def _format_event(event: Event) -> str:
    count = f" {event.done}/{event.total}" if event.total else ""
    return " ".join(f"{event.kind}{count} {event.phase} {event.state} {event.message}".split())
